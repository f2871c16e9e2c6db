import { refuse } from "../errors.ts";
import { lacksApproval } from "./claim.ts";
import { applyTimeout } from "./deadlines.ts";
import { changeOf, refused, type Decision } from "./decision.ts";
import type { StateAnswer } from "./failure.ts";
import type { WorkloadRecord } from "./record.ts";
import { attemptBudgetOf, rearmsOf } from "./retry-policy.ts";
import type { WorkloadRules } from "./rules.ts";
import { findSecretText } from "./secrets.ts";
import type { WorkloadState } from "./states.ts";
import { applyMove, denyMove, instantOf } from "./transition.ts";

/** Operators' calls (contract 1.10). `actor` is recorded as it is given. */
export interface OperateCommand {
  readonly actor: string;
  readonly reason?: string | undefined;
}

interface OperateContext {
  readonly now: number;
  readonly rules: WorkloadRules;
}

/** Longest reason that is kept as evidence (contract 1.10). */
export const OPERATOR_REASON_LENGTH_MAX = 256;

const keptReason = (reason: string | undefined): string | undefined =>
  reason?.slice(0, OPERATOR_REASON_LENGTH_MAX).toWellFormed();

const cancelledAtOnce: readonly WorkloadState[] = ["CREATED", "READY", "AWAITING_APPROVAL", "FAILED", "DEAD_LETTER"];
const cancelledByWorker: readonly WorkloadState[] = ["CLAIMED", "RUNNING", "CHECKPOINTED"];

/** Cancels, or asks the worker to stop (contract 1.10). */
export function decideCancel(
  record: WorkloadRecord,
  command: OperateCommand,
  context: OperateContext,
): Decision<StateAnswer> {
  const secret = findSecretText(command.reason, "reason", context.rules);
  if (secret !== undefined) return refused(secret);
  if (record.state === "CANCELLATION_REQUESTED") return { ok: true, answer: { state: record.state } };
  const to = cancelledAtOnce.includes(record.state)
    ? "CANCELLED"
    : cancelledByWorker.includes(record.state)
      ? "CANCELLATION_REQUESTED"
      : undefined;
  if (to === undefined) return refused(denyMove(record, "cancelled"));
  const at = instantOf(record, context.now);
  const next = applyMove(record, {
    to,
    actor: command.actor,
    at,
    evidence: { reason: keptReason(command.reason) },
  });
  return { ok: true, answer: { state: to }, change: changeOf("cancel", next) };
}

const timedOutByOperator: readonly WorkloadState[] = ["READY", "CLAIMED", "RUNNING", "CHECKPOINTED"];

/** An operator times the work out; decided by `retryOn` and the budget (contract 1.10). */
export function decideTimeout(
  record: WorkloadRecord,
  command: OperateCommand,
  context: OperateContext,
): Decision<StateAnswer> {
  if (!timedOutByOperator.includes(record.state)) return refused(denyMove(record, "timed out"));
  const next = applyTimeout(record, {
    at: instantOf(record, context.now),
    actor: command.actor,
    reason: "timed out by an operator",
    retryable: true,
    evidence: { timeout: "operator" },
  });
  // Work that nobody holds uses no attempt by it, so this alone could go on for ever: it must leave room for an end.
  const reserve = record.currentClaim !== undefined || next.state !== "READY";
  return { ok: true, answer: { state: next.state }, change: changeOf("timeout", next, { reserve }) };
}

const rearmedStates: readonly WorkloadState[] = ["FAILED", "DEAD_LETTER", "TIMED_OUT"];

/** Re-arms ended work with one more attempt (contract 1.10). */
export function decideRetry(
  record: WorkloadRecord,
  command: OperateCommand,
  context: OperateContext,
): Decision<StateAnswer> {
  const secret = findSecretText(command.reason, "reason", context.rules);
  if (secret !== undefined) return refused(secret);
  if (!rearmedStates.includes(record.state)) return refused(denyMove(record, "re-armed"));
  const operatorRetry = rearmsOf(record) + 1;
  if (operatorRetry > record.retryPolicy.maxAttempts)
    return refused(
      refuse(
        "WORKLOAD_RETRY_EXHAUSTED",
        `the workload was re-armed ${operatorRetry - 1} times, the most its policy allows`,
        {
          rearms: operatorRetry - 1,
          rearmsMax: record.retryPolicy.maxAttempts,
        },
      ),
    );
  const at = instantOf(record, context.now);
  const to = lacksApproval(record) ? "AWAITING_APPROVAL" : "READY";
  const moved = applyMove(record, {
    to,
    actor: command.actor,
    at,
    evidence: {
      retry: "operator",
      operatorRetry,
      attemptBudget: attemptBudgetOf(record) + 1,
      reason: keptReason(command.reason),
    },
  });
  return {
    ok: true,
    answer: { state: to },
    change: changeOf("retry", { ...moved, nextAttemptAt: at }),
  };
}
