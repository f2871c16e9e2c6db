import { changeOf, type Decision } from "./decision.ts";
import { leaseEndsAt, type Instant } from "./fence.ts";
import type { Claim, WorkloadRecord } from "./record.ts";
import { attemptBudgetOf, decideAfterFailure } from "./retry-policy.ts";
import { heldStates } from "./states.ts";
import { applyMove, endAttempt, instantOf } from "./transition.ts";

/** Whether a record's lease has run out, as far as this node may judge (contract 1.11, 5.5). */
export const isLeaseLost = (record: WorkloadRecord, instant: Instant): boolean =>
  record.currentClaim !== undefined &&
  heldStates.includes(record.state) &&
  leaseEndsAt(record.currentClaim, instant.servingSince) <= instantOf(record, instant.now);

/** Why a claim is taken away from its worker. */
interface Loss {
  /** As evidence has it. */
  readonly recoveryReason: "lease_expired" | "worker_superseded";
  /** As error texts have it. */
  readonly text: string;
}

/** Takes the current claim away and decides what follows (contract 1.11). */
function recoverFrom(record: WorkloadRecord, claim: Claim, how: Loss & { readonly at: number }): Decision<boolean> {
  const { at, recoveryReason, text } = how;
  const actor = "authority.recovery";
  const evidence = {
    recoveryReason,
    attemptsUsed: record.attemptCount,
    attemptBudget: attemptBudgetOf(record),
    claimId: claim.claimId,
    workerId: claim.workerId,
    leaseExpiredAt: recoveryReason === "lease_expired" ? claim.expiresAt : undefined,
    attemptId: record.attempts.at(-1)?.attemptId,
  };
  const lost = endAttempt(record, {
    status: "WORKER_LOST",
    endedAt: at,
    error: `worker_lost: ${text}`,
  });
  if (record.state === "CANCELLATION_REQUESTED")
    return {
      ok: true,
      answer: true,
      change: changeOf("recover", applyMove(lost, { to: "CANCELLED", actor, at, evidence })),
    };
  const recovering = applyMove(lost, { to: "RECOVERING", actor, at, evidence });
  const next = decideAfterFailure(
    { ...recovering, lastFailure: `worker_lost: ${text}` },
    { actor, at, retriedAs: "worker_failure", denied: "worker_failure_not_retryable" },
  );
  return { ok: true, answer: true, change: changeOf("recover", next) };
}

/** Takes the claim of a lost worker away and decides what follows (contract 1.11). Answers whether there was anything to recover. */
export function decideRecover(record: WorkloadRecord, instant: Instant): Decision<boolean> {
  const claim = record.currentClaim;
  if (claim === undefined || !isLeaseLost(record, instant)) return { ok: true, answer: false };
  const at = instantOf(record, instant.now);
  return recoverFrom(record, claim, { recoveryReason: "lease_expired", text: "claim lease expired", at });
}

/**
 * Takes a claim away whose worker lives on in another process: nobody can still use it, so its lease is not waited for.
 * Answers whether there was anything to take: not when the workload's claim is another one, or none.
 */
export function decideSuperseded(record: WorkloadRecord, claimId: string, instant: Instant): Decision<boolean> {
  const claim = record.currentClaim;
  if (claim?.claimId !== claimId || !heldStates.includes(record.state)) return { ok: true, answer: false };
  const at = instantOf(record, instant.now);
  return recoverFrom(record, claim, { recoveryReason: "worker_superseded", text: "worker superseded", at });
}
