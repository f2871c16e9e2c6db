import type { WorkloadRecord } from "../../src/core/workload/record.ts";

/** Contract 1.5. */

/** How often an operator re-armed the workload. */
export const rearmsOf = (record: WorkloadRecord): number =>
  record.history.filter(({ evidence }) => evidence["retry"] === "operator").length;

/** How many attempts the workload may ever have. */
export const budgetOf = (record: WorkloadRecord): number => record.retryPolicy.maxAttempts + rearmsOf(record);

/** The shortest and the longest wait before the n-th retry, ms: equal unless the policy has a jitter. */
export function backoffOf(record: WorkloadRecord, retry: number): readonly [shortest: number, longest: number] {
  const { initialDelayMs, maxDelayMs, backoff, jitter = 0 } = record.retryPolicy;
  let delayMs = initialDelayMs;
  if (backoff === "exponential") for (let n = 1; n < retry && delayMs < maxDelayMs && delayMs > 0; n++) delayMs *= 2;
  delayMs = Math.min(delayMs, maxDelayMs);
  return [Math.floor(delayMs * (1 - jitter)), jitter === 0 ? delayMs : Math.ceil(delayMs * (1 + jitter))];
}

/** What the rules say after an attempt ended badly: READY again or DEAD_LETTER, and the decision to be recorded. */
export function afterEnd(
  record: WorkloadRecord,
  end: { readonly retriedAs: string | undefined; readonly otherwise: string },
): { readonly to: "READY" | "DEAD_LETTER"; readonly decision: string } {
  if (end.retriedAs === undefined || !record.retryPolicy.retryOn.includes(end.retriedAs))
    return { to: "DEAD_LETTER", decision: end.otherwise };
  if (record.attemptCount >= budgetOf(record)) return { to: "DEAD_LETTER", decision: "attempt_budget_exhausted" };
  return { to: "READY", decision: "retry" };
}
