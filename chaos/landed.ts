import type { CallFact } from "./validate/call-facts.ts";
import type { Facts } from "./validate/facts.ts";

/** How far the store's stamps and the run's clock may differ, ms. */
const STAMP_ERROR_MS = 50;

const requestOf = ({ caller, call, requestId, id }: CallFact): string =>
  JSON.stringify([caller, call, requestId ?? `call ${id}`]);

/** What became of the calls whose outcome their callers did not know; each item of a batch counts. */
export interface Unknowns {
  readonly count: number;
  /** Something that they may have made was committed after they began, and before the same request was tried again. */
  readonly landed: number;
}

/** Looks for the effects of every call of unknown outcome, those among them that were refused without certainty. */
export function countUnknowns(facts: Facts): Unknowns {
  const tries = new Map<string, CallFact[]>();
  for (const call of facts.calls) {
    const known = tries.get(requestOf(call));
    if (known === undefined) tries.set(requestOf(call), [call]);
    else known.push(call);
  }
  const landed = (call: CallFact, index: number, all: readonly CallFact[]): boolean => {
    if (call.kind !== "unknown") return false;
    const until = all[index + 1]?.startedAt ?? Number.POSITIVE_INFINITY;
    return facts
      .effectsOf(call)
      .some(({ storedAt }) => storedAt >= call.startedAt - STAMP_ERROR_MS && storedAt < until);
  };
  let count = 0;
  let landedCount = 0;
  for (const list of tries.values()) {
    const ordered = list.toSorted((left, right) => left.startedAt - right.startedAt);
    count += ordered.filter(({ kind }) => kind === "unknown").length;
    landedCount += ordered.filter(landed).length;
  }
  return { count, landed: landedCount };
}
