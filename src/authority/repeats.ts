import { MandateError, refuse } from "../core/errors.ts";
import type { StateAnswer } from "../core/workload/failure.ts";
import type { Fence } from "../core/workload/fence.ts";
import { heartbeatAnswer, type HeartbeatAnswer } from "../core/workload/lease.ts";
import type { Checkpoint, Claim, Payload, WorkloadRecord } from "../core/workload/record.ts";

/**
 * Answers to the repeat of a request whose first try was committed (contract 5.3, 6.3), rebuilt from the record and the
 * reference that the operation's id carries. `undefined`: what was done no longer stands, so the rules answer.
 */

/** The same claim and token, while it is held; afterwards a refusal, since another claim would be a second effect. */
export function repeatClaim(record: WorkloadRecord, fencingToken: number): Claim {
  const claim = record.currentClaim;
  if (claim?.fencingToken === fencingToken) return claim;
  throw MandateError.of(
    refuse("WORKLOAD_CLAIM_INVALID", "what this request had claimed is no longer held", { fencingToken }),
  );
}

const heldBy = (record: WorkloadRecord, fence: Fence): Claim | undefined => {
  const claim = record.currentClaim;
  return claim?.claimId === fence.claimId &&
    claim.workerId === fence.workerId &&
    claim.fencingToken === fence.fencingToken
    ? claim
    : undefined;
};

/** The claim that was started, while it is held. */
export const repeatStart =
  (fence: Fence) =>
  (record: WorkloadRecord): Claim | undefined =>
    heldBy(record, fence);

export const repeatHeartbeat =
  (fence: Fence) =>
  (record: WorkloadRecord): HeartbeatAnswer | undefined => {
    const claim = heldBy(record, fence);
    return claim === undefined ? undefined : heartbeatAnswer(record, claim);
  };

export const repeatCheckpoint = (record: WorkloadRecord, sequence: number): Checkpoint<Payload> | undefined =>
  record.checkpoints[sequence - 1];

/** The state that the request led to: the one at the history's length then. */
export const repeatState = (record: WorkloadRecord, historyLength: number): StateAnswer | undefined => {
  const event = record.history[historyLength - 1];
  return event === undefined ? undefined : { state: event.to };
};
