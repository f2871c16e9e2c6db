/**
 * Goal: an operator's cancel, time-out and re-arm as contract 1.10 has them (which states they leave: states.test.ts).
 * Method: records in the states that matter; evidence, counters and instants are compared in full.
 */
import { describe, expect, it } from "vitest";
import { decideRetry, decideTimeout } from "../../../src/core/workload/operate.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { decideCancel } from "../../../src/core/workload/operate.ts";
import {
  accepted,
  admitted,
  cancel,
  claimed,
  fail,
  fenceOf,
  frozen,
  recordIn,
  refusalOf,
  refusedWith,
  rules,
  running,
  T0,
} from "./fixtures.ts";

const context = (now: number) => ({ now, rules });
const retry = (record: WorkloadRecord, now: number, reason?: string) =>
  decideRetry(record, { actor: "olga", reason }, context(now));
const timeout = (record: WorkloadRecord, now: number) => decideTimeout(record, { actor: "olga" }, context(now));

describe("a cancellation", () => {
  it("ends work that nobody holds", () => {
    const next = accepted(cancel(admitted(), T0 + 5));
    expect(next.history.at(-1)).toMatchObject({
      to: "CANCELLED",
      actor: "olga",
      at: T0 + 5,
      evidence: { reason: "not needed" },
    });
  });

  it("asks the holder to stop, and the claim stays", () => {
    const record = running();
    const next = accepted(cancel(record, T0 + 5));
    expect(next.state).toBe("CANCELLATION_REQUESTED");
    expect(next.currentClaim).toEqual(record.currentClaim);
    expect(next.attempts).toEqual(record.attempts);
  });

  it("changes nothing when it was requested before", () => {
    expect(cancel(accepted(cancel(running(), T0 + 5)), T0 + 6)).toEqual({
      ok: true,
      answer: { state: "CANCELLATION_REQUESTED" },
    });
  });

  it("is refused with a secret in the reason, before the state is looked at", () => {
    for (const decision of [
      decideCancel(recordIn.SUCCEEDED(), { actor: "o", reason: "fdb_live_1" }, context(T0)),
      decideRetry(recordIn.SUCCEEDED(), { actor: "o", reason: "mandate_live_1" }, context(T0)),
    ])
      expect(refusedWith(decision)).toBe("WORKLOAD_SECRET_REJECTED");
  });
});

describe("an operator's time-out", () => {
  it("ends the attempt and tries again like an expiry that may be retried", () => {
    const record = running();
    const next = accepted(timeout(record, T0 + 5));
    expect(next.state).toBe("READY");
    expect(next.attempts[0]).toMatchObject({ status: "TIMED_OUT", endedAt: T0 + 5 });
    expect(next.attempts[0]?.error).toMatch(/^timeout: /);
    expect(next.history.at(-2)).toMatchObject({
      to: "TIMED_OUT",
      actor: "olga",
      evidence: { timeout: "operator", claimId: record.currentClaim?.claimId, workerId: "w1" },
    });
    expect(next.history.at(-1)?.evidence).toEqual({ decision: "retry" });
    expect([next.retryCount, next.nextAttemptAt]).toEqual([1, T0 + 1005]);
  });

  it("is decided by retryOn and the budget", () => {
    const decisionOf = (record: WorkloadRecord) => {
      const next = accepted(timeout(record, T0 + 5));
      return [next.state, next.history.at(-1)?.evidence["decision"]];
    };
    expect(decisionOf(running({ retryPolicy: { retryOn: [] } }))).toEqual(["DEAD_LETTER", "timeout_not_retryable"]);
    expect(decisionOf(running({ retryPolicy: { maxAttempts: 1 } }))).toEqual([
      "DEAD_LETTER",
      "attempt_budget_exhausted",
    ]);
    expect(decisionOf(admitted({ retryPolicy: { maxAttempts: 1 } }))).toEqual(["READY", "retry"]);
  });

  it("does not touch the previous attempt of a READY workload", () => {
    const record = running();
    const ready = accepted(fail(record, fenceOf(record), { now: T0 + 1 }));
    const next = accepted(timeout(ready, T0 + 5));
    expect(next.attempts).toEqual(ready.attempts);
    expect(next.history.at(-2)?.evidence).toEqual({ timeout: "operator" });
  });

  it("takes nothing of the room that is kept for an end, when it could go on for ever", () => {
    expect(timeout(admitted(), T0 + 5).change?.reserve).toBe(false);
    expect(timeout(running(), T0 + 5).change?.reserve).toBe(true);
    expect(timeout(admitted({ retryPolicy: { retryOn: [] } }), T0 + 5).change?.reserve).toBe(true);
  });
});

describe("a re-arm", () => {
  it("grants one more attempt at once", () => {
    const record = recordIn.DEAD_LETTER();
    const next = accepted(retry(record, T0 + 50, "fixed it"));
    expect(next.state).toBe("READY");
    expect(next.nextAttemptAt).toBe(T0 + 50);
    expect(next.history.at(-1)).toMatchObject({
      from: "DEAD_LETTER",
      to: "READY",
      actor: "olga",
      at: T0 + 50,
      evidence: { retry: "operator", operatorRetry: "1", attemptBudget: "4", reason: "fixed it" },
    });
  });

  it("is possible maxAttempts times, and each lets one attempt more through", () => {
    let record = running({ retryPolicy: { maxAttempts: 2 } });
    record = accepted(fail(record, fenceOf(record), { now: T0 + 1, kind: "bug" }));
    for (let rearm = 1; rearm <= 2; rearm++) {
      record = accepted(retry(record, record.updatedAt + 10));
      expect(record.history.at(-1)?.evidence).toEqual({
        retry: "operator",
        operatorRetry: String(rearm),
        attemptBudget: String(2 + rearm),
      });
      record = claimed(record, record.updatedAt, { start: true });
      record = accepted(fail(record, fenceOf(record), { now: record.updatedAt, kind: "bug" }));
    }
    expect(record.attemptCount).toBe(3);
    const refused = retry(record, record.updatedAt);
    expect(refusedWith(refused)).toBe("WORKLOAD_RETRY_EXHAUSTED");
    expect(refusalOf(refused).details).toEqual({ rearms: 2, rearmsMax: 2 });
  });

  it("lets spent work run again, though its budget was used up", () => {
    const record = running({ retryPolicy: { maxAttempts: 1 } });
    const dead = accepted(fail(record, fenceOf(record), { now: T0 + 1 }));
    expect(dead.state).toBe("DEAD_LETTER");
    expect(claimed(accepted(retry(dead, T0 + 2)), T0 + 2).attemptCount).toBe(2);
  });

  it("looks at the state before the number of re-arms", () => {
    const record = frozen({ ...running(), retryPolicy: { ...running().retryPolicy, maxAttempts: 0 } });
    expect(refusedWith(retry(record, T0))).toBe("WORKLOAD_TRANSITION_DENIED");
  });

  it("keeps 256 characters of the reason", () => {
    const next = accepted(retry(recordIn.DEAD_LETTER(), T0 + 50, `${"r".repeat(255)}😀`));
    expect(next.history.at(-1)?.evidence["reason"]).toHaveLength(256);
    expect(next.history.at(-1)?.evidence["reason"]?.isWellFormed()).toBe(true);
  });

  it("sends work that was never approved back to its approvers", () => {
    const gated = frozen({
      ...recordIn.DEAD_LETTER(),
      approval: { policy: { approverKinds: ["human"], approvers: [] } },
    } as const);
    const next = accepted(retry(gated, T0 + 50));
    expect([next.state, next.nextAttemptAt]).toEqual(["AWAITING_APPROVAL", T0 + 50]);
  });

  it("does not run time backwards", () => {
    const record = recordIn.DEAD_LETTER();
    const next = accepted(retry(record, 1));
    expect(next.nextAttemptAt).toBe(record.history.at(-1)?.at);
  });
});
