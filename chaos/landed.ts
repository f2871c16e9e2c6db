import type { CallFact } from "./validate/call-facts.ts";
import type { Facts } from "./validate/facts.ts";

/** How far the store's stamps and the run's clock may differ, ms. */
const STAMP_ERROR_MS = 50;

const requestOf = ({ caller, call, requestId, id }: CallFact): string =>
  JSON.stringify([caller, call, requestId ?? `call ${id}`]);

/**
 * How many calls of unknown outcome had taken effect all the same: something that they may have made was committed after
 * they began, and before the same request was tried again.
 */
export function countLanded(facts: Facts): number {
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
  for (const list of tries.values()) {
    const ordered = list.toSorted((left, right) => left.startedAt - right.startedAt);
    count += ordered.filter(landed).length;
  }
  return count;
}
