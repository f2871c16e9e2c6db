import { changeOf, type Decision } from "./decision.ts";
import { leaseEndsAt, type Instant } from "./fence.ts";
import type { WorkloadRecord } from "./record.ts";
import { attemptBudgetOf, decideAfterFailure } from "./retry-policy.ts";
import { heldStates } from "./states.ts";
import { applyMove, endAttempt, instantOf } from "./transition.ts";

/** Whether a record's lease has run out, as far as this node may judge (contract 1.11, 5.5). */
export const isLeaseLost = (record: WorkloadRecord, instant: Instant): boolean =>
  record.currentClaim !== undefined &&
  heldStates.includes(record.state) &&
  leaseEndsAt(record.currentClaim, instant.servingSince) <= instantOf(record, instant.now);

/** Takes the claim of a lost worker away and decides what follows (contract 1.11). Answers whether there was anything to recover. */
export function decideRecover(record: WorkloadRecord, instant: Instant): Decision<boolean> {
  const claim = record.currentClaim;
  if (claim === undefined || !isLeaseLost(record, instant)) return { ok: true, answer: false };
  const at = instantOf(record, instant.now);
  const actor = "authority.recovery";
  const reason = "claim lease expired";
  const evidence = {
    recoveryReason: "lease_expired",
    attemptsUsed: record.attemptCount,
    attemptBudget: attemptBudgetOf(record),
    claimId: claim.claimId,
    workerId: claim.workerId,
    leaseExpiredAt: claim.expiresAt,
    attemptId: record.attempts.at(-1)?.attemptId,
  };
  const lost = endAttempt(record, {
    status: "WORKER_LOST",
    endedAt: at,
    error: `worker_lost: ${reason}`,
  });
  if (record.state === "CANCELLATION_REQUESTED")
    return {
      ok: true,
      answer: true,
      change: changeOf("recover", applyMove(lost, { to: "CANCELLED", actor, at, evidence })),
    };
  const recovering = applyMove(lost, { to: "RECOVERING", actor, at, evidence });
  const next = decideAfterFailure(
    { ...recovering, lastFailure: `worker_lost: ${reason}` },
    { actor, at, retriedAs: "worker_failure", denied: "worker_failure_not_retryable" },
  );
  return { ok: true, answer: true, change: changeOf("recover", next) };
}
