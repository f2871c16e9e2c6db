import { isRetryable, passedDeadline } from "./deadlines.ts";
import { afterEnd, budgetOf } from "./retry.ts";
import type { Examination, ExpectedEvent } from "./step.ts";
import { lastAttemptWith } from "./worker-steps.ts";

/** What the passes do, and what a call does in their place (contract 1.6, 1.8, 1.11). */

/** How an attempt ends whose lease ran out, and one whose worker lives on in another process. */
export const LEASE_ENDED_ERROR = "worker_lost: claim lease expired";
export const SUPERSEDED_ERROR = "worker_lost: worker superseded";

interface Found {
  readonly at: number;
  readonly dueAt?: number;
}

/** What an expiry and an operator's time-out have in common: the attempt ends, and the policy decides. */
function examineEnd(
  examination: Examination,
  end: {
    readonly event: ExpectedEvent;
    readonly retriedAs: string | undefined;
    readonly otherwise: string;
    error?: string;
  },
): void {
  const { before, after, at } = examination;
  const claim = before.currentClaim;
  if (claim !== undefined) {
    const error = end.error ?? after.attempts[before.attempts.length - 1]?.error ?? "";
    examination.require(error.startsWith("timeout: "), "succession", `an attempt timed out with the error ${error}`);
    examination.expect({
      currentClaim: undefined,
      attempts: lastAttemptWith(examination, { status: "TIMED_OUT", endedAt: at, error }),
    });
  }
  const next = afterEnd(before, end);
  if (next.to === "READY")
    examination.expect({
      retryCount: before.retryCount + 1,
      nextAttemptAt: at + before.retryPolicy.initialDelayMs,
    });
  examination.expectEvents([end.event, { to: next.to, evidence: { decision: next.decision } }]);
}

export function examineExpire(examination: Examination): Found {
  const { before, at, events } = examination;
  const passed = passedDeadline(before, at);
  const claim = before.currentClaim;
  const named = events[0]?.evidence["deadline"] ?? "";
  if (passed === undefined) examination.breach("timing", `expired at ${at}, before its ${named} deadline`);
  else if (passed.deadline !== named)
    examination.breach("succession", `the ${passed.deadline} deadline counts, not the ${named} deadline`);
  const retryable = isRetryable(named);
  examineEnd(examination, {
    event: {
      to: "TIMED_OUT",
      actor: "authority.deadline",
      evidence: {
        ...(passed === undefined ? {} : { deadlineAt: passed.deadlineAt }),
        claimId: claim?.claimId,
        workerId: claim?.workerId,
      },
    },
    retriedAs: retryable ? "timeout" : undefined,
    otherwise: retryable ? "timeout_not_retryable" : "deadline_not_retryable",
    error: `timeout: ${named} deadline passed`,
  });
  return passed === undefined ? { at } : { at, dueAt: passed.deadlineAt };
}

/** Contract 1.10: like an expiry that is decided by `retryOn` and the budget. */
export function examineTimeout(examination: Examination): Found {
  examineEnd(examination, { event: { to: "TIMED_OUT" }, retriedAs: "timeout", otherwise: "timeout_not_retryable" });
  return { at: examination.at };
}

/** A lease that is over, or a claim whose worker lives on in another process: nobody can use that one any more (contract 2.2). */
export function examineRecover(examination: Examination): Found {
  const { before, at, events, world } = examination;
  const claim = before.currentClaim;
  if (claim === undefined) {
    examination.breach("succession", "recovered without a claim");
    return { at };
  }
  const { recoveryReason: reason } = events[0]?.evidence ?? {};
  const superseded = reason === "worker_superseded";
  if (superseded)
    examination.require(
      world.isSuperseded?.(claim) === true,
      "timing",
      `taken away at ${at} from a process that nobody superseded`,
    );
  else if (claim.expiresAt > at)
    examination.breach("timing", `recovered at ${at}, before its lease ends at ${claim.expiresAt}`);
  const evidence = {
    recoveryReason: superseded ? reason : "lease_expired",
    attemptsUsed: before.attemptCount,
    attemptBudget: budgetOf(before),
    claimId: claim.claimId,
    workerId: claim.workerId,
    leaseExpiredAt: superseded ? undefined : claim.expiresAt,
    attemptId: before.attempts.at(-1)?.attemptId,
  };
  examination.expect({
    currentClaim: undefined,
    attempts: lastAttemptWith(examination, {
      status: "WORKER_LOST",
      endedAt: at,
      error: superseded ? SUPERSEDED_ERROR : LEASE_ENDED_ERROR,
    }),
  });
  const actor = "authority.recovery";
  if (before.state === "CANCELLATION_REQUESTED") examination.expectEvents([{ to: "CANCELLED", actor, evidence }]);
  else {
    const next = afterEnd(before, { retriedAs: "worker_failure", otherwise: "worker_failure_not_retryable" });
    examination.expectEvents([
      { to: "RECOVERING", actor, evidence },
      { to: next.to, actor, evidence: { decision: next.decision } },
    ]);
  }
  return superseded ? { at } : { at, dueAt: claim.expiresAt };
}

/** A claim that met a used-up budget: the work is dead-lettered. */
export function examineExhaust(examination: Examination): Found {
  const { before, at } = examination;
  const budget = budgetOf(before);
  examination.require(before.attemptCount >= budget, "succession", "dead-lettered with attempts left");
  examination.expectEvents([
    {
      to: "DEAD_LETTER",
      actor: "authority.claim",
      evidence: { reason: "attempt_budget_exhausted", attemptsUsed: before.attemptCount, attemptBudget: budget },
    },
  ]);
  return { at };
}

/** A claim finds that the requester's grant has ended (contract 4.2); whether it had is not the model's to say. */
export function examineDisown(examination: Examination): Found {
  const { before, at } = examination;
  examination.require(before.reauthorize !== "never", "succession", "dead-lettered though it keeps what was admitted");
  const evidence = { decision: "authorization_lost", grantId: before.authorization.grantId };
  examination.expectEvents([{ to: "DEAD_LETTER", actor: "authority.claim", evidence }]);
  return { at };
}
