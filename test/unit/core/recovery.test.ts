/**
 * Goal: recovery of lost workers as contract 1.11 has it, with the grace of contract 5.5.
 * Method: one lease, tried one ms before its end and at it, under policies that decide each way.
 */
import { describe, expect, it } from "vitest";
import { decideHeartbeat } from "../../../src/core/workload/lease.ts";
import { decideRecover, decideSuperseded, isLeaseLost } from "../../../src/core/workload/recovery.ts";
import {
  accepted,
  admitted,
  cancel,
  checkpointed,
  claimed,
  complete,
  fenceOf,
  frozen,
  recordIn,
  running,
  T0,
} from "./fixtures.ts";

const end = T0 + 10_000;
const nothing = { ok: true, answer: false };

describe("recovery", () => {
  it("takes the claim of a lost worker and makes the work READY in one commit", () => {
    const record = running();
    const next = accepted(decideRecover(record, { now: end + 5 }));
    expect(next.state).toBe("READY");
    expect(next.currentClaim).toBeUndefined();
    expect(next.attempts).toEqual([
      { ...record.attempts[0], status: "WORKER_LOST", endedAt: end + 5, error: "worker_lost: claim lease expired" },
    ]);
    expect(next.history.slice(-2)).toEqual([
      {
        sequence: 4,
        type: "workload.recovered",
        from: "RUNNING",
        to: "RECOVERING",
        actor: "authority.recovery",
        at: end + 5,
        evidence: {
          recoveryReason: "lease_expired",
          attemptsUsed: "1",
          attemptBudget: "3",
          claimId: record.currentClaim?.claimId,
          workerId: "w1",
          leaseExpiredAt: String(end),
          attemptId: `attempt_${record.workloadId}_1`,
        },
      },
      {
        sequence: 5,
        type: "workload.ready",
        from: "RECOVERING",
        to: "READY",
        actor: "authority.recovery",
        at: end + 5,
        evidence: { decision: "retry" },
      },
    ]);
  });

  it("comes at the lease's end and not before", () => {
    expect(decideRecover(running(), { now: end - 1 })).toEqual(nothing);
    expect(decideRecover(running(), { now: end }).change).toBeDefined();
  });

  it("leaves retryCount and nextAttemptAt as they are", () => {
    const next = accepted(decideRecover(running({ notBefore: T0 - 9 }), { now: end }));
    expect([next.retryCount, next.nextAttemptAt]).toEqual([0, T0 - 9]);
  });

  it("concerns all held states, and no other", () => {
    const held = claimed(admitted(), T0);
    expect(accepted(decideRecover(held, { now: end })).state).toBe("READY");
    expect(accepted(decideRecover(checkpointed(running(), T0 + 1), { now: end })).state).toBe("READY");
    for (const state of ["READY", "AWAITING_APPROVAL", "SUCCEEDED", "DEAD_LETTER", "RECOVERING"] as const)
      expect(decideRecover(recordIn[state](), { now: T0 + 9e9 })).toEqual(nothing);
  });

  it("cancels what was asked to be cancelled", () => {
    const record = accepted(cancel(running(), T0 + 5));
    const next = accepted(decideRecover(record, { now: end }));
    expect(next.state).toBe("CANCELLED");
    expect(next.attempts[0]?.status).toBe("WORKER_LOST");
    expect(next.history.at(-1)).toMatchObject({
      from: "CANCELLATION_REQUESTED",
      actor: "authority.recovery",
      evidence: { recoveryReason: "lease_expired", leaseExpiredAt: String(end), workerId: "w1" },
    });
  });

  it("dead-letters what the policy does not try again, and what has no attempt left", () => {
    const decisionOf = (retryPolicy: { retryOn?: string[]; maxAttempts?: number }) => {
      const next = accepted(decideRecover(running({ retryPolicy }), { now: end }));
      return [next.state, next.history.at(-2)?.to, next.history.at(-1)?.evidence];
    };
    expect(decisionOf({ retryOn: ["timeout"], maxAttempts: 1 })).toEqual([
      "DEAD_LETTER",
      "RECOVERING",
      { decision: "worker_failure_not_retryable" },
    ]);
    expect(decisionOf({ maxAttempts: 1 })).toEqual([
      "DEAD_LETTER",
      "RECOVERING",
      { decision: "attempt_budget_exhausted" },
    ]);
  });

  it("finds nothing to do on a version that was renewed or completed meanwhile", () => {
    const record = running();
    const renewed = accepted(decideHeartbeat(record, { fence: fenceOf(record), extendMs: 20_000 }, { now: T0 + 9000 }));
    expect(decideRecover(renewed, { now: end })).toEqual(nothing);
    const done = accepted(complete(record, fenceOf(record), { now: T0 + 9000 }));
    expect(decideRecover(done, { now: end })).toEqual(nothing);
    const once = accepted(decideRecover(record, { now: end }));
    expect(decideRecover(once, { now: end })).toEqual(nothing);
  });

  it("waits for the lease's length, thirty seconds at most, when the node has just come back", () => {
    const record = running();
    expect(isLeaseLost(record, { now: T0 + 69_999, servingSince: T0 + 60_000 })).toBe(false);
    expect(isLeaseLost(record, { now: T0 + 70_000, servingSince: T0 + 60_000 })).toBe(true);
    const long = claimed(admitted(), T0, { leaseMs: 3_600_000 });
    expect(isLeaseLost(long, { now: T0 + 9_029_999, servingSince: T0 + 9_000_000 })).toBe(false);
    expect(isLeaseLost(long, { now: T0 + 9_030_000, servingSince: T0 + 9_000_000 })).toBe(true);
  });

  it("judges by the record's own time when the clock was set back", () => {
    const record = frozen({ ...claimed(admitted(), T0), history: running().history });
    expect(decideRecover(record, { now: 0 })).toEqual(nothing);
    const beaten = accepted(decideHeartbeat(record, { fence: fenceOf(record), extendMs: 10 }, { now: 0 }));
    expect(decideRecover(beaten, { now: 0 })).toEqual(nothing);
    expect(accepted(decideRecover(beaten, { now: T0 + 10 })).history.at(-1)?.at).toBe(T0 + 10);
  });
});

describe("a superseded worker", () => {
  const claimIdOf = (record: ReturnType<typeof running>): string => record.currentClaim?.claimId ?? "none";

  it("loses its claim at once, and the work is READY in one commit", () => {
    const record = running();
    const next = accepted(decideSuperseded(record, claimIdOf(record), { now: T0 + 5 }));
    expect([next.state, next.currentClaim, next.lastFailure]).toEqual([
      "READY",
      undefined,
      "worker_lost: worker superseded",
    ]);
    expect(next.attempts).toEqual([
      { ...record.attempts[0], status: "WORKER_LOST", endedAt: T0 + 5, error: "worker_lost: worker superseded" },
    ]);
    expect(next.history.slice(-2)).toMatchObject([
      {
        from: "RUNNING",
        to: "RECOVERING",
        actor: "authority.recovery",
        evidence: {
          recoveryReason: "worker_superseded",
          attemptsUsed: "1",
          attemptBudget: "3",
          claimId: claimIdOf(record),
          workerId: "w1",
          attemptId: `attempt_${record.workloadId}_1`,
        },
      },
      { to: "READY", actor: "authority.recovery", evidence: { decision: "retry" } },
    ]);
    expect(next.history.at(-2)?.evidence).not.toHaveProperty("leaseExpiredAt");
  });

  it("is judged by the policy like a lost one, and cancels what was asked to be cancelled", () => {
    const stubborn = running({ retryPolicy: { retryOn: ["timeout"] } });
    const buried = accepted(decideSuperseded(stubborn, claimIdOf(stubborn), { now: T0 + 5 }));
    expect([buried.state, buried.history.at(-1)?.evidence]).toEqual([
      "DEAD_LETTER",
      { decision: "worker_failure_not_retryable" },
    ]);
    const asked = accepted(cancel(running(), T0 + 5));
    expect(accepted(decideSuperseded(asked, claimIdOf(asked), { now: T0 + 6 })).state).toBe("CANCELLED");
  });

  it("loses no claim but that one", () => {
    const record = running();
    const once = accepted(decideSuperseded(record, claimIdOf(record), { now: T0 + 5 }));
    const again = claimed(once, T0 + 10);
    expect(decideSuperseded(record, "claim_other", { now: T0 + 5 })).toEqual(nothing);
    expect(decideSuperseded(once, claimIdOf(record), { now: T0 + 5 })).toEqual(nothing);
    expect(decideSuperseded(again, claimIdOf(record), { now: T0 + 15 })).toEqual(nothing);
    expect(accepted(decideSuperseded(again, claimIdOf(again), { now: T0 + 15 })).state).toBe("READY");
    const done = accepted(complete(record, fenceOf(record), { now: T0 + 2 }));
    expect(decideSuperseded(done, claimIdOf(record), { now: T0 + 5 })).toEqual(nothing);
  });
});
