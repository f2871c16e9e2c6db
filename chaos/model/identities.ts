import { createHash } from "node:crypto";
import { canonicalJson, type Json } from "../../src/base/json.ts";
import type { Subject } from "../../src/core/subject.ts";

/** Identities as contract 1.3 derives them. */

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** What tells one requester's key from all others: the requester and the key within a tenant and application. */
export interface Scope {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly requestedBy: Subject;
  readonly idempotencyKey: string;
}

export const workloadIdOf = ({ tenantId, applicationId, requestedBy, idempotencyKey }: Scope): string =>
  `workload_${sha256(JSON.stringify([tenantId, applicationId, requestedBy.kind, requestedBy.id, idempotencyKey])).slice(0, 24)}`;

export const claimIdOf = (workloadId: string, fencingToken: number, workerId: string): string =>
  `claim_${sha256(`${workloadId}:${fencingToken}:${workerId}`).slice(0, 20)}`;

export const leaseIdOf = (fencingToken: number): string => `lease_${fencingToken}`;

export const attemptIdOf = (workloadId: string, attempt: number): string => `attempt_${workloadId}_${attempt}`;

export const checkpointIdOf = (workloadId: string, sequence: number): string => `checkpoint_${workloadId}_${sequence}`;

/** The result id of a completion that names none. */
export const ownResultIdOf = (attemptId: string): string => `result_${attemptId}`;

/** The id of a worker of the registry, from its name (contract 2.1). */
export const workerIdOf = (named: {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly name: string;
}): string => `worker_${sha256(JSON.stringify([named.tenantId, named.applicationId, named.name])).slice(0, 24)}`;

/** Whether an id is one that the registry gives out. */
export const isRegisteredId = (workerId: string): boolean => /^worker_[0-9a-f]{24}$/.test(workerId);

/** SHA-256 over the canonical form (RFC 8785) of a JSON value. */
export const hashOf = (value: unknown): string => sha256(canonicalJson(value as Json));

/** SHA-256 of a text. */
export const hashOfText = sha256;
