import type { CallFact } from "./call-facts.ts";
import type { Facts } from "./facts.ts";

/**
 * What everybody could have known to be committed at an instant: the highest revision of a shard that an answer had
 * reflected by then. It rests on answers alone, not on any clock of the store.
 */
export class KnownRevisions {
  readonly #byShard = new Map<number, { readonly times: number[]; readonly revisions: number[] }>();

  constructor(facts: Facts) {
    const seen: { readonly shard: number; readonly revision: number; readonly at: number }[] = [];
    for (const call of facts.calls) {
      if (call.kind !== "acknowledged") continue;
      if (call.position !== undefined) seen.push({ ...call.position, at: call.endedAt });
      const effect = surelySeen(facts, call);
      if (effect !== undefined) seen.push({ ...effect, at: call.endedAt });
    }
    seen.sort((left, right) => left.at - right.at);
    for (const { shard, revision, at } of seen) {
      const known = this.#byShard.get(shard) ?? { times: [], revisions: [] };
      this.#byShard.set(shard, known);
      const highest = known.revisions.at(-1) ?? 0;
      if (revision <= highest) continue;
      known.times.push(at);
      known.revisions.push(revision);
    }
  }

  /** The highest revision of a shard that was known before an instant; 0 when none was. */
  before(shard: number, at: number): number {
    const known = this.#byShard.get(shard);
    if (known === undefined) return 0;
    let low = 0;
    let high = known.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((known.times[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return known.revisions[low - 1] ?? 0;
  }
}

/** The effect that a call's answer proves: the earliest, when the call's values fit several. */
function surelySeen(facts: Facts, call: CallFact): { readonly shard: number; readonly revision: number } | undefined {
  const [first, ...others] = facts.effectsOf(call);
  if (first === undefined) return undefined;
  // The claims of one answer are all proved; of other calls only one of the fitting effects is theirs.
  if (call.call !== "claimNext") return first;
  return others.reduce((last, version) => (version.revision > last.revision ? version : last), first);
}
