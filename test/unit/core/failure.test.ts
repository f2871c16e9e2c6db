/**
 * Goal: failure reports and confirmed cancellations as contract 1.8 has them.
 * Method: a running workload whose policy retries what each case is about; the repeat of each report is put again.
 */
import { describe, expect, it } from "vitest";
import { decideConfirmCancel, keptError } from "../../../src/core/workload/failure.ts";
import type { RetryPolicy, WorkloadRecord } from "../../../src/core/workload/record.ts";
import {
  accepted,
  admitted,
  answerOf,
  cancel,
  changeOf,
  checkpointed,
  claimed,
  complete,
  fail,
  fenceOf,
  refusalOf,
  refusedWith,
  rules,
  running,
  T0,
} from "./fixtures.ts";

const runningWith = (retryPolicy: Partial<RetryPolicy>): WorkloadRecord => running({ retryPolicy });

describe("a failure report", () => {
  it("ends the attempt, drops the claim and tries again after the back-off", () => {
    const record = running();
    const decision = fail(record, fenceOf(record), { now: T0 + 5 });
    const next = accepted(decision);
    expect(answerOf(decision)).toEqual({ state: "READY" });
    expect(next.attempts).toEqual([{ ...record.attempts[0], status: "FAILED", endedAt: T0 + 5, error: "no route" }]);
    expect(next.currentClaim).toBeUndefined();
    expect(next.lastFailure).toBe("transient_connection: no route");
    expect([next.retryCount, next.nextAttemptAt]).toEqual([1, T0 + 1005]);
    expect(next.history.slice(-2)).toEqual([
      {
        sequence: 4,
        type: "workload.failed",
        from: "RUNNING",
        to: "FAILED",
        actor: "w1",
        at: T0 + 5,
        evidence: { failureKind: "transient_connection", attemptId: `attempt_${record.workloadId}_1` },
      },
      {
        sequence: 5,
        type: "workload.ready",
        from: "FAILED",
        to: "READY",
        actor: "authority.retry",
        at: T0 + 5,
        evidence: { decision: "retry" },
      },
    ]);
  });

  it("is allowed from CLAIMED, where the effect is none by default, from RUNNING and from CHECKPOINTED", () => {
    const held = claimed(admitted(), T0);
    expect(accepted(fail(held, fenceOf(held), { now: T0 + 1 })).history.at(-2)?.evidence["effect"]).toBe("none");
    const unsure = accepted(fail(held, fenceOf(held), { now: T0 + 1, effect: "unknown" }));
    expect(unsure.history.at(-2)?.evidence["effect"]).toBe("unknown");
    const point = checkpointed(running(), T0 + 1);
    expect(accepted(fail(point, fenceOf(point), { now: T0 + 2 })).state).toBe("READY");
    const requested = accepted(cancel(running(), T0 + 1));
    expect(refusedWith(fail(requested, fenceOf(requested), { now: T0 + 2 }))).toBe("WORKLOAD_TRANSITION_DENIED");
  });

  it("is refused with a secret in the error before the effect, with another effect before the fence, and by the fence", () => {
    const record = running();
    const stale = { ...fenceOf(record), fencingToken: 9 };
    const secret = fail(record, stale, { now: T0, error: "x BEGIN RSA PRIVATE KEY", effect: "some" });
    expect(refusedWith(secret)).toBe("WORKLOAD_SECRET_REJECTED");
    expect(refusalOf(secret).details).toEqual({ path: "error" });
    const effect = fail(record, stale, { now: T0, effect: "some" });
    expect(refusedWith(effect)).toBe("WORKLOAD_INVALID");
    expect(refusalOf(effect).details?.["paths"]).toEqual(["effect"]);
    expect(refusedWith(fail(record, stale, { now: T0 }))).toBe("WORKLOAD_STALE_FENCE");
    expect(refusedWith(fail(record, fenceOf(record), { now: T0 + 10_000 }))).toBe("WORKLOAD_LEASE_EXPIRED");
  });
});

describe("what follows a failure", () => {
  const cases: readonly {
    readonly what: string;
    readonly policy: Partial<RetryPolicy>;
    readonly kind: string;
    readonly effect?: string;
    readonly state: string;
    readonly decision: string;
  }[] = [
    { what: "a kind of the policy", policy: {}, kind: "timeout", state: "READY", decision: "retry" },
    { what: "another kind", policy: {}, kind: "bug", state: "DEAD_LETTER", decision: "failure_kind_not_retryable" },
    {
      what: "a kind without an effect",
      policy: {},
      kind: "timeout",
      effect: "none",
      state: "READY",
      decision: "retry",
    },
    {
      what: "an unknown effect that the policy takes as a lost worker",
      policy: { retryOn: ["worker_failure"] },
      kind: "bug",
      effect: "unknown",
      state: "READY",
      decision: "retry",
    },
    {
      what: "an unknown effect that the policy does not",
      policy: { retryOn: ["bug"] },
      kind: "bug",
      effect: "unknown",
      state: "DEAD_LETTER",
      decision: "effect_unknown_not_retryable",
    },
    {
      what: "the last attempt",
      policy: { maxAttempts: 1 },
      kind: "timeout",
      state: "DEAD_LETTER",
      decision: "attempt_budget_exhausted",
    },
    {
      what: "another kind in the last attempt",
      policy: { maxAttempts: 1 },
      kind: "bug",
      state: "DEAD_LETTER",
      decision: "failure_kind_not_retryable",
    },
    {
      what: "an unknown effect in the last attempt",
      policy: { maxAttempts: 1 },
      kind: "bug",
      effect: "unknown",
      state: "DEAD_LETTER",
      decision: "attempt_budget_exhausted",
    },
  ];
  for (const { what, policy, kind, effect, state, decision } of cases)
    it(`is ${decision} for ${what}`, () => {
      const record = runningWith(policy);
      const next = accepted(
        fail(record, fenceOf(record), { now: T0 + 1, kind, ...(effect === undefined ? {} : { effect }) }),
      );
      expect(next.state).toBe(state);
      expect(next.history.at(-1)).toMatchObject({ actor: "authority.retry", evidence: { decision } });
      expect(next.history.at(-2)?.evidence["effect"]).toBe(effect);
      expect(next.retryCount).toBe(state === "READY" ? 1 : 0);
    });
});

describe("a repeated failure report", () => {
  const record = running({ timeouts: { queueMs: 1 } });
  const fence = fenceOf(record);
  const failed = accepted(fail(record, fence, { now: T0 + 5, effect: "unknown" }));
  const same = { ok: true, answer: { state: "READY" } };

  it("answers the current state and commits nothing, with the effect absent or equal", () => {
    expect(fail(failed, fence, { now: T0 + 6 })).toEqual(same);
    expect(fail(failed, fence, { now: T0 + 6, effect: "unknown" })).toEqual(same);
  });

  it("commits nothing even when a deadline has passed since", () => {
    expect(fail(failed, fence, { now: T0 + 999_000 })).toEqual(same);
  });

  it("answers whatever the state has become", () => {
    const again = claimed(failed, T0 + 1005, { workerId: "w2", start: true });
    expect(answerOf(fail(again, fence, { now: T0 + 1005 }))).toEqual({ state: "RUNNING" });
    const done = accepted(complete(again, fenceOf(again), { now: T0 + 1006 }));
    expect(fail(done, fence, { now: T0 + 1007 })).toEqual({ ok: true, answer: { state: "SUCCEEDED" } });
  });

  it("meets the fence when kind, error or effect differ, or the attempt is another", () => {
    const now = T0 + 5;
    expect(refusedWith(fail(failed, fence, { now, kind: "timeout" }))).toBe("WORKLOAD_CLAIM_INVALID");
    expect(refusedWith(fail(failed, fence, { now, error: "other" }))).toBe("WORKLOAD_CLAIM_INVALID");
    expect(refusedWith(fail(failed, fence, { now, effect: "none" }))).toBe("WORKLOAD_CLAIM_INVALID");
    expect(refusedWith(fail(failed, { ...fence, fencingToken: 2 }, { now }))).toBe("WORKLOAD_CLAIM_INVALID");
    const again = claimed(failed, T0 + 1005, { workerId: "w2" });
    expect(refusedWith(fail(again, fence, { now: T0 + 1005, error: "other" }))).toBe("WORKLOAD_STALE_FENCE");
  });

  it("tells an effect that was not said from one that is said now", () => {
    const plain = accepted(fail(running(), fence, { now: T0 + 5 }));
    expect(refusedWith(fail(plain, fence, { now: T0 + 6, effect: "none" }))).toBe("WORKLOAD_CLAIM_INVALID");
    const held = claimed(admitted(), T0);
    const unstarted = accepted(fail(held, fenceOf(held), { now: T0 + 5 }));
    expect(fail(unstarted, fenceOf(held), { now: T0 + 6, effect: "none" })).toEqual(same);
  });

  it("does not take a completed or lost attempt for one that reported", () => {
    const done = accepted(complete(record, fence, { now: T0 + 5 }));
    expect(refusedWith(fail(done, fence, { now: T0 + 6 }))).toBe("WORKLOAD_CLAIM_INVALID");
  });

  it("recognizes an error text that was cut", () => {
    const error = "x".repeat(10_000);
    const long = accepted(fail(record, fence, { now: T0 + 5, error }));
    expect(long.attempts[0]?.error).toBe(`${"x".repeat(4096)}… (5904 more)`);
    expect(fail(long, fence, { now: T0 + 6, error })).toEqual(same);
    const tail = `${error.slice(0, -20)}BEGIN PRIVATE KEY---`;
    expect(tail).toHaveLength(error.length);
    expect(refusalOf(fail(long, fence, { now: T0 + 5, error: tail })).code).toBe("WORKLOAD_SECRET_REJECTED");
  });
});

describe("the error text", () => {
  it("is kept well formed, so that it never keeps work from ending", () => {
    const record = running();
    const next = accepted(fail(record, fenceOf(record), { now: T0 + 1, error: "a\ud800b" }));
    expect(next.attempts[0]?.error).toBe("a\ufffdb");
    expect(keptError(`${"x".repeat(4095)}😀`, rules).isWellFormed()).toBe(true);
    expect(keptError("short", rules)).toBe("short");
  });
});

describe("a confirmed cancellation", () => {
  const record = running();
  const requested = accepted(cancel(record, T0 + 5));
  const fence = fenceOf(record);

  it("ends the attempt and the workload", () => {
    const decision = decideConfirmCancel(requested, fence, { now: T0 + 9 });
    const next = accepted(decision);
    expect(answerOf(decision)).toEqual({ state: "CANCELLED" });
    expect(next.attempts).toEqual([{ ...requested.attempts[0], status: "CANCELLED", endedAt: T0 + 9 }]);
    expect(next.currentClaim).toBeUndefined();
    expect(next.history.at(-1)).toMatchObject({
      from: "CANCELLATION_REQUESTED",
      to: "CANCELLED",
      actor: "w1",
      at: T0 + 9,
    });
    expect(changeOf(decision).payloads).toEqual([]);
  });

  it("is fenced, and only possible once it was requested", () => {
    expect(refusedWith(decideConfirmCancel(requested, { ...fence, claimId: "x" }, { now: T0 + 9 }))).toBe(
      "WORKLOAD_STALE_FENCE",
    );
    expect(refusedWith(decideConfirmCancel(requested, fence, { now: T0 + 10_000 }))).toBe("WORKLOAD_LEASE_EXPIRED");
    expect(refusedWith(decideConfirmCancel(record, fence, { now: T0 + 9 }))).toBe("WORKLOAD_TRANSITION_DENIED");
    const next = accepted(decideConfirmCancel(requested, fence, { now: T0 + 9 }));
    expect(refusedWith(decideConfirmCancel(next, fence, { now: T0 + 9 }))).toBe("WORKLOAD_CLAIM_INVALID");
  });
});
