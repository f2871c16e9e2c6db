import type { SlotHold } from "../../src/core/worker/record.ts";
import type { Facts } from "./facts.ts";
import { commitsOf, versionBefore, type OwnerFacts, type SlotVersion } from "./registry-facts.ts";
import type { PoolVersion, WorkerVersion } from "./registry-facts.ts";
import type { Findings, Validator } from "./validator.ts";

/** How many claims an owner may hold as it is committed; nothing when it is not there, or has no limit and so no slots. */
const limitOf = ({ record }: WorkerVersion | PoolVersion): number | undefined =>
  record === undefined ? undefined : "concurrency" in record ? record.concurrency : record.maxConcurrency;

/** One slot that a commit takes. */
function findWrongTaking(taken: SlotVersion, holds: ReadonlyMap<number, SlotHold>, limit: number): string | undefined {
  const { index, held, before } = taken;
  if (held === undefined) return undefined;
  if (before !== undefined) return `slot ${index} went from ${before.claimId} to ${held.claimId}`;
  if (index >= limit) return `slot ${index} was taken by ${held.claimId} at a concurrency of ${limit}`;
  const twice = [...holds].find(([other, hold]) => other !== index && hold.claimId === held.claimId);
  return twice === undefined ? undefined : `${held.claimId} holds the slots ${twice[0]} and ${index}`;
}

/**
 * All commits that change slots of one owner, in their order. Claims that were there when the concurrency was lowered may
 * stay; but whatever takes a slot must leave no more claims than are allowed at its very revision.
 */
function checkOwner<Version extends WorkerVersion | PoolVersion>(
  { id, versions, slots }: OwnerFacts<Version>,
  findings: Findings,
): void {
  const holds = new Map<number, SlotHold>();
  for (const commit of commitsOf(slots)) {
    for (const { index, held } of commit)
      if (held === undefined) holds.delete(index);
      else holds.set(index, held);
    const taken = commit.filter(({ held }) => held !== undefined);
    const [first] = taken;
    if (first === undefined) continue;
    findings.count(taken.length);
    const { revision } = first;
    const where = { workloadId: first.held?.workloadId, evidence: { owner: id, revision, holds: [...holds.values()] } };
    const current = versionBefore(versions, revision);
    const limit = current === undefined ? undefined : limitOf(current);
    if (limit === undefined) {
      findings.violation(`revision ${revision} took a slot of ${id}, which was not there to be held`, where);
      continue;
    }
    const wrong = taken.map((slot) => findWrongTaking(slot, holds, limit)).find((found) => found !== undefined);
    if (wrong !== undefined) findings.violation(`revision ${revision}, ${id}: ${wrong}`, where);
    else if (holds.size > limit)
      findings.violation(
        `revision ${revision} gave ${id} its ${holds.size}. claim at a concurrency of ${limit}`,
        where,
      );
  }
}

/** Whether anybody was given work as a worker of the registry. */
export const hasSlots = ({ registry }: Facts): boolean =>
  [...registry.workers.values()].some(({ slots }) => slots.length > 0);

export const slotCapacity: Validator = {
  validator: "slot-capacity",
  guarantee: "no worker and no pool is ever given more claims than its concurrency, and none is counted twice",
  expectsFacts: hasSlots,
  validate: ({ registry }, findings) => {
    for (const worker of registry.workers.values()) checkOwner(worker, findings);
    for (const pool of registry.pools.values()) checkOwner(pool, findings);
  },
};
