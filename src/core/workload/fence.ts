import { refuse, type Refusal } from "../errors.ts";
import type { Revocations } from "../grant/revocation.ts";
import type { Attempt, Claim, WorkloadRecord } from "./record.ts";

/** What every worker call names (contract 1.8). */
export interface Fence {
  readonly workloadId: string;
  readonly claimId: string;
  readonly workerId: string;
  readonly fencingToken: number;
}

/** Longest time that a node waits after it came back before it lets a lease end that nobody could have renewed, ms (contract 5.5). */
export const LEASE_GRACE_MAX_MS = 30_000;

/** When a decision is taken, and since when the node that takes it has been able to serve (contract 5.5). */
export interface Instant {
  readonly now: number;
  /** Epoch ms. Absent: always. */
  readonly servingSince?: number;
  /** What is known of revocations then. Absent: nothing is revoked. */
  readonly revocations?: Revocations;
}

/**
 * The instant a lease ends: its own, or later, when the node that judges has not yet been able to serve for the
 * lease's length (30 s at most). While no node could take a renewal, no lease runs out (contract 5.5).
 */
export function leaseEndsAt(claim: Claim, servingSince: number | undefined): number {
  if (servingSince === undefined) return claim.expiresAt;
  const lengthMs = Math.min(Math.max(claim.expiresAt - claim.lastHeartbeat, 0), LEASE_GRACE_MAX_MS);
  return Math.max(claim.expiresAt, servingSince + lengthMs);
}

/** Whether an attempt is the one that a fence names. */
export const fenceNamesAttempt = (fence: Fence, attempt: Attempt): boolean =>
  attempt.claimId === fence.claimId &&
  attempt.workerId === fence.workerId &&
  attempt.fencingToken === fence.fencingToken;

/** Refuses whoever does not hold the workload now (contract 1.8, in its order). */
export function checkFence(record: WorkloadRecord, fence: Fence, instant: Instant): Refusal | undefined {
  const claim = record.currentClaim;
  if (claim === undefined)
    return refuse("WORKLOAD_CLAIM_INVALID", `the workload has no current claim; its state is ${record.state}`, {
      state: record.state,
    });
  const differing = (["claimId", "workerId", "fencingToken"] as const).filter((name) => claim[name] !== fence[name]);
  if (differing.length > 0)
    return refuse("WORKLOAD_STALE_FENCE", `${differing.join(" and ")} differ from the current claim's`, {
      fields: differing,
      fencingToken: claim.fencingToken,
    });
  if (leaseEndsAt(claim, instant.servingSince) <= instant.now)
    return refuse("WORKLOAD_LEASE_EXPIRED", `the lease ended at ${claim.expiresAt}`, {
      expiresAt: claim.expiresAt,
    });
  return undefined;
}
