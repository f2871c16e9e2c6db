/**
 * Goal: attempt budget and back-off as contract 1.5 has them.
 * Method: the delay's own function, with small and with absurd numbers, and the records that failures leave.
 */
import { describe, expect, it } from "vitest";
import type { RetryPolicy } from "../../../src/core/workload/record.ts";
import { attemptBudgetOf, backoffMs, defaultRetryPolicy } from "../../../src/core/workload/retry-policy.ts";
import { decideRetry } from "../../../src/core/workload/operate.ts";
import { accepted, admitted, claimed, fail, fenceOf, recordIn, running, rules, T0 } from "./fixtures.ts";

const delay = (policy: Partial<RetryPolicy>, retry: number, attemptCount = 1): number =>
  backoffMs({ workloadId: "workload_1", attemptCount, retryPolicy: { ...defaultRetryPolicy, ...policy } }, retry);

describe("the back-off", () => {
  it("doubles with each retry up to the most", () => {
    expect([1, 2, 3, 4, 8, 9, 10, 11].map((retry) => delay({}, retry))).toEqual([
      1000, 2000, 4000, 8000, 128_000, 256_000, 300_000, 300_000,
    ]);
  });

  it("stays the same when it is fixed, and is still bounded", () => {
    expect([1, 2, 50].map((retry) => delay({ backoff: "fixed" }, retry))).toEqual([1000, 1000, 1000]);
    expect(delay({ backoff: "fixed", maxDelayMs: 10 }, 1)).toBe(10);
  });

  it("saturates at any number of retries and never leaves the whole numbers", () => {
    const huge = Number.MAX_SAFE_INTEGER;
    for (const retry of [1, 53, 54, 63, 64, 1023, 1024, 1025, 5000, 2 ** 31, 2 ** 53])
      for (const initialDelayMs of [0, 1, 1000, huge])
        for (const maxDelayMs of [0, 1, 300_000, huge])
          for (const jitter of [0, 0.5, 1]) {
            const found = delay({ initialDelayMs, maxDelayMs, jitter }, retry);
            expect(Number.isSafeInteger(found)).toBe(true);
            expect(found).toBeGreaterThanOrEqual(0);
            expect(found).toBeLessThanOrEqual(maxDelayMs);
            if (initialDelayMs === 0) expect(found).toBe(0);
          }
    expect(delay({ maxDelayMs: huge }, 2000)).toBe(huge);
  });

  it("draws a jitter that repeats for the same workload and attempt, and only shortens", () => {
    const first = delay({ jitter: 0.5 }, 3, 1);
    expect(delay({ jitter: 0.5 }, 3, 1)).toBe(first);
    expect(first).toBeGreaterThanOrEqual(2000);
    expect(first).toBeLessThanOrEqual(4000);
    const draws = new Set(Array.from({ length: 50 }, (_, attempt) => delay({ jitter: 1 }, 3, attempt)));
    expect(draws.size).toBeGreaterThan(40);
  });

  it("sets nextAttemptAt to the instant plus the delay of the n-th retry", () => {
    let record = running({ retryPolicy: { maxAttempts: 5 } });
    for (const [retry, delayMs] of [1000, 2000, 4000, 8000].entries()) {
      const now = record.updatedAt + 7;
      record = accepted(fail(record, fenceOf(record), { now }));
      expect(record.retryCount).toBe(retry + 1);
      expect(record.nextAttemptAt).toBe(now + delayMs);
      record = claimed(record, now + delayMs, { start: true });
    }
  });

  it("never sets an instant beyond the whole numbers", () => {
    const huge = Number.MAX_SAFE_INTEGER;
    const record = running({ retryPolicy: { initialDelayMs: huge, maxDelayMs: huge } });
    expect(accepted(fail(record, fenceOf(record), { now: T0 + 1 })).nextAttemptAt).toBe(huge);
  });
});

describe("the attempt budget", () => {
  it("is maxAttempts and one more for each re-arm", () => {
    let record = recordIn.DEAD_LETTER();
    expect(attemptBudgetOf(record)).toBe(3);
    record = accepted(decideRetry(record, { actor: "olga" }, { now: T0 + 9, rules }));
    expect(attemptBudgetOf(record)).toBe(4);
  });

  it("does not count the authority's own retries", () => {
    const record = running();
    expect(attemptBudgetOf(accepted(fail(record, fenceOf(record), { now: T0 + 1 })))).toBe(3);
    expect(attemptBudgetOf(admitted({ retryPolicy: { maxAttempts: 1 } }))).toBe(1);
  });
});
