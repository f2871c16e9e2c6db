import { sha256Hex } from "../../base/hash.ts";
import type { Subject } from "../subject.ts";

/** Identities are derived, never drawn (contract 1.3): the same request always meets the same record. */

/** The idempotency scope: no choice of strings makes two scopes coincide. */
export const idempotencyScope = (request: {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly requestedBy: Subject;
  readonly idempotencyKey: string;
}): string =>
  JSON.stringify([
    request.tenantId,
    request.applicationId,
    request.requestedBy.kind,
    request.requestedBy.id,
    request.idempotencyKey,
  ]);

/** The workload's id, from its idempotency scope. */
export const workloadIdOf = (scope: string): string => `workload_${sha256Hex(scope).slice(0, 24)}`;

export const claimIdOf = (workloadId: string, fencingToken: number, workerId: string): string =>
  `claim_${sha256Hex(`${workloadId}:${fencingToken}:${workerId}`).slice(0, 20)}`;

export const leaseIdOf = (fencingToken: number): string => `lease_${fencingToken}`;

export const attemptIdOf = (workloadId: string, attemptCount: number): string =>
  `attempt_${workloadId}_${attemptCount}`;

export const checkpointIdOf = (workloadId: string, sequence: number): string => `checkpoint_${workloadId}_${sequence}`;

/** The result id of a completion that names none: unique by construction, so it needs no reservation (contract 1.8). */
export const defaultResultIdOf = (attemptId: string): string => `result_${attemptId}`;

/** The workload that a result id in the form of {@link defaultResultIdOf} belongs to by construction; no other may take it. */
export const workloadOfDefaultResultId = (resultId: string): string | undefined =>
  /^result_attempt_(workload_[0-9a-f]{24})_\d+$/.exec(resultId)?.[1];
