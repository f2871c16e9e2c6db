import type { WorkloadRecord } from "../workload/record.ts";

/**
 * Which slots a claim holds is evidence of its CLAIMED event, so that whoever ends the claim, on whatever node and after
 * whatever restart, frees the same ones in the same commit (contract 2.3).
 */

/** A slot by its owner, which is a worker or a pool. */
export interface SlotPlace {
  readonly ownerId: string;
  readonly index: number;
}

/** The slots that a claim takes. */
export interface ClaimSlots {
  readonly worker: SlotPlace;
  readonly pool?: SlotPlace | undefined;
}

/** The slots of a claim as evidence. */
export const slotEvidence = ({ worker, pool }: ClaimSlots): { readonly [name: string]: string } => ({
  slot: String(worker.index),
  ...(pool === undefined ? {} : { poolId: pool.ownerId, poolSlot: String(pool.index) }),
});

/** The slots that a workload's current claim holds; none for a worker that is not registered. */
export function slotsOfClaim(record: WorkloadRecord): readonly SlotPlace[] {
  const { currentClaim, history } = record;
  if (currentClaim === undefined) return [];
  const claimed = history.findLast(({ type }) => type === "workload.claimed");
  const { slot, poolId, poolSlot } = claimed?.evidence ?? {};
  if (slot === undefined) return [];
  const worker = { ownerId: currentClaim.workerId, index: Number(slot) };
  return poolId === undefined ? [worker] : [worker, { ownerId: poolId, index: Number(poolSlot) }];
}
