import { spreadHash } from "../../base/hash.ts";
import type { RetryPolicy, WorkloadRecord } from "./record.ts";
import { applyMove } from "./transition.ts";

/** Contract 1.5. */
export const defaultRetryPolicy: RetryPolicy = {
  maxAttempts: 3,
  initialDelayMs: 1000,
  maxDelayMs: 300_000,
  backoff: "exponential",
  retryOn: ["timeout", "transient_connection", "worker_failure"],
};

/** How many times an operator re-armed the workload. */
export const rearmsOf = (record: WorkloadRecord): number =>
  record.history.reduce((count, event) => (event.evidence["retry"] === "operator" ? count + 1 : count), 0);

/** How many attempts the workload may ever have: the policy's, and one for each re-arm (contract 1.5). */
export const attemptBudgetOf = (record: WorkloadRecord): number => record.retryPolicy.maxAttempts + rearmsOf(record);

/** The delay after the n-th retry, ms; saturates, never overflows (contract 1.5). The draw of a jitter repeats for the same workload and attempt. */
export function backoffMs(
  record: Pick<WorkloadRecord, "retryPolicy" | "workloadId" | "attemptCount">,
  retry: number,
): number {
  const { initialDelayMs, maxDelayMs, backoff, jitter = 0 } = record.retryPolicy;
  // 2^1023 is the largest power a double has; beyond, the minimum has long decided.
  const factor = backoff === "fixed" ? 1 : 2 ** Math.min(Math.max(retry - 1, 0), 1023);
  const delayMs = initialDelayMs === 0 ? 0 : Math.min(initialDelayMs * factor, maxDelayMs);
  const draw = spreadHash(`${record.workloadId}:${record.attemptCount}`) / 4_294_967_296;
  return Math.round(delayMs * (1 - jitter * draw));
}

/** How a failure is decided in the commit that records it. */
export interface AfterFailure {
  readonly actor: string;
  readonly at: number;
  /** What in `retryOn` would let it be tried again; `undefined` when nothing does. */
  readonly retriedAs: string | undefined;
  /** The decision to record when the policy does not allow another try. */
  readonly denied: string;
  /** Given: the retry is counted, and this says when the next attempt may start. */
  readonly nextAttemptAt?: (retry: number) => number;
}

/** Decides what follows a failure, a time-out or a lost worker (contract 1.6, 1.8, 1.11): READY again, or DEAD_LETTER. */
export function decideAfterFailure(record: WorkloadRecord, after: AfterFailure): WorkloadRecord {
  const { actor, at } = after;
  const bury = (decision: string): WorkloadRecord =>
    applyMove(record, { to: "DEAD_LETTER", actor, at, evidence: { decision } });
  if (after.retriedAs === undefined || !record.retryPolicy.retryOn.includes(after.retriedAs)) return bury(after.denied);
  if (record.attemptCount >= attemptBudgetOf(record)) return bury("attempt_budget_exhausted");
  const ready = applyMove(record, { to: "READY", actor, at, evidence: { decision: "retry" } });
  if (after.nextAttemptAt === undefined) return ready;
  const retryCount = record.retryCount + 1;
  return {
    ...ready,
    retryCount,
    nextAttemptAt: after.nextAttemptAt(retryCount),
  };
}
