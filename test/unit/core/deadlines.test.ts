/**
 * Goal: deadlines as contract 1.6 has them: which run where, from which instant, which counts first, and what expiry commits.
 * Method: records at known instants; each instant is tried one ms before and exactly at it.
 */
import { describe, expect, it } from "vitest";
import { decideApproval } from "../../../src/core/workload/approval.ts";
import { decideClaim, decideStart } from "../../../src/core/workload/claim.ts";
import { deadlinesOf, decideExpire, nextDeadline, passedDeadline } from "../../../src/core/workload/deadlines.ts";
import type { Decision } from "../../../src/core/workload/decision.ts";
import { decideConfirmCancel } from "../../../src/core/workload/failure.ts";
import { decideExecutionContext, decideHeartbeat } from "../../../src/core/workload/lease.ts";
import { decideCheckpoint } from "../../../src/core/workload/progress.ts";
import type { Timeouts, WorkloadRecord } from "../../../src/core/workload/record.ts";
import { decideRecover } from "../../../src/core/workload/recovery.ts";
import { workloadStates } from "../../../src/core/workload/states.ts";
import {
  accepted,
  admitted,
  answerOf,
  approve,
  approver,
  cancel,
  changeOf,
  checkpointed,
  claimed,
  committed,
  complete,
  fail,
  fenceOf,
  frozen,
  noDependencies,
  recordIn,
  refusalOf,
  rules,
  running,
  started,
  T0,
} from "./fixtures.ts";

const timeouts: Timeouts = {
  queueMs: 100,
  claimMs: 200,
  executionMs: 300,
  heartbeatMs: 400,
  overallMs: 5000,
  approvalMs: 600,
};
/** Of work that needs no approval. */
const { approvalMs: _none, ...plain } = timeouts;

const namesIn = (record: WorkloadRecord): readonly string[] => deadlinesOf(record).map(({ deadline }) => deadline);
const withTimeouts = (record: WorkloadRecord): WorkloadRecord => frozen({ ...record, timeouts });

describe("which deadlines run", () => {
  const expected: Record<string, readonly string[]> = {
    AWAITING_APPROVAL: ["approval", "overall"],
    READY: ["overall", "queue"],
    CLAIMED: ["overall", "claim", "heartbeat"],
    RUNNING: ["overall", "execution", "heartbeat"],
    CHECKPOINTED: ["overall", "execution", "heartbeat"],
  };
  for (const state of workloadStates)
    it(`is ${(expected[state] ?? ["none"]).join(", ")} in ${state}, in the order of the contract`, () => {
      expect(namesIn(withTimeouts(recordIn[state]()))).toEqual(expected[state] ?? []);
    });

  it("is none in a record of contract version 1", () => {
    for (const state of workloadStates) {
      const record = frozen({ ...withTimeouts(recordIn[state]()), contractVersion: 1 as const });
      expect(deadlinesOf(record)).toEqual([]);
      expect(passedDeadline(record, Number.MAX_SAFE_INTEGER)).toBeUndefined();
    }
  });

  it("is none where no time-out is given", () => {
    for (const state of workloadStates) expect(deadlinesOf(recordIn[state]())).toEqual([]);
  });
});

describe("the instants", () => {
  const instant = (record: WorkloadRecord, name: string): number | undefined =>
    deadlinesOf(record).find(({ deadline }) => deadline === name)?.deadlineAt;

  it("counts the approval from the last AWAITING_APPROVAL event", () => {
    expect(instant(admitted({ approval: {}, timeouts: { approvalMs: 600 } }), "approval")).toBe(T0 + 600);
  });

  it("counts overall from createdAt, in every attempt", () => {
    const record = running({ timeouts: { overallMs: 5000 } });
    const again = accepted(fail(record, fenceOf(record), { now: T0 + 9 }));
    expect([instant(record, "overall"), instant(again, "overall")]).toEqual([T0 + 5000, T0 + 5000]);
  });

  it("counts the queue from the last READY event or the eligibility, whichever is later", () => {
    expect(instant(admitted({ timeouts: { queueMs: 100 } }), "queue")).toBe(T0 + 100);
    expect(instant(admitted({ timeouts: { queueMs: 100 }, notBefore: T0 - 50 }), "queue")).toBe(T0 + 100);
    expect(instant(admitted({ timeouts: { queueMs: 100 }, notBefore: T0 + 50 }), "queue")).toBe(T0 + 150);
    const gated = admitted({ approval: {}, timeouts: { queueMs: 100 } });
    expect(instant(accepted(approve(gated, T0 + 30)), "queue")).toBe(T0 + 130);
    const record = running({ timeouts: { queueMs: 100 } });
    expect(instant(accepted(fail(record, fenceOf(record), { now: T0 + 9 })), "queue")).toBe(T0 + 9 + 1000 + 100);
  });

  it("counts the claim from claimedAt, the execution from startedAt and the heartbeat from the last one", () => {
    const held = claimed(admitted({ timeouts: plain }), T0 + 10);
    expect(instant(held, "claim")).toBe(T0 + 210);
    expect(instant(held, "heartbeat")).toBe(T0 + 410);
    const run = started(held, T0 + 20);
    expect(instant(run, "execution")).toBe(T0 + 320);
    expect(instant(checkpointed(run, T0 + 40), "execution")).toBe(T0 + 320);
    const beat = accepted(decideHeartbeat(run, { fence: fenceOf(run), extendMs: 500 }, { now: T0 + 50 }));
    expect(instant(beat, "heartbeat")).toBe(T0 + 450);
  });

  it("stays within the whole numbers however long the time-out", () => {
    const record = admitted({ timeouts: { queueMs: Number.MAX_SAFE_INTEGER, overallMs: Number.MAX_SAFE_INTEGER } });
    for (const { deadlineAt } of deadlinesOf(record)) expect(deadlineAt).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("passes exactly at the instant", () => {
    const record = admitted({ timeouts: { queueMs: 100 } });
    expect(passedDeadline(record, T0 + 99)).toBeUndefined();
    expect(passedDeadline(record, T0 + 100)).toEqual({ deadline: "queue", deadlineAt: T0 + 100 });
  });

  it("takes the first passed one in the contract's order, not in time", () => {
    const record = claimed(admitted({ timeouts: { ...plain, overallMs: 1000 } }), T0);
    expect(passedDeadline(record, T0 + 300)?.deadline).toBe("claim");
    expect(passedDeadline(record, T0 + 500)?.deadline).toBe("claim");
    expect(passedDeadline(record, T0 + 1000)?.deadline).toBe("overall");
    const run = started(claimed(admitted({ timeouts: { executionMs: 900, heartbeatMs: 50 } }), T0), T0);
    expect(passedDeadline(run, T0 + 100)?.deadline).toBe("heartbeat");
    expect(passedDeadline(run, T0 + 950)?.deadline).toBe("execution");
  });

  it("tells the next one in time", () => {
    expect(nextDeadline(claimed(admitted({ timeouts: plain }), T0))).toEqual({
      deadline: "claim",
      deadlineAt: T0 + 200,
    });
    expect(nextDeadline(admitted())).toBeUndefined();
  });
});

describe("expiry", () => {
  it("takes the claim, ends the attempt and tries again", () => {
    const record = running({ timeouts: { executionMs: 300 } });
    const next = accepted(decideExpire(record, "execution", T0 + 305));
    expect(next.state).toBe("READY");
    expect(next.currentClaim).toBeUndefined();
    expect(next.attempts[0]).toEqual({
      ...record.attempts[0],
      status: "TIMED_OUT",
      endedAt: T0 + 305,
      error: "timeout: execution deadline passed",
    });
    expect(next.lastFailure).toBe("timeout: execution deadline passed");
    expect(next.history.slice(-2)).toEqual([
      {
        sequence: 4,
        type: "workload.timed_out",
        from: "RUNNING",
        to: "TIMED_OUT",
        actor: "authority.deadline",
        at: T0 + 305,
        evidence: {
          deadline: "execution",
          deadlineAt: String(T0 + 300),
          claimId: record.currentClaim?.claimId,
          workerId: "w1",
        },
      },
      {
        sequence: 5,
        type: "workload.ready",
        from: "TIMED_OUT",
        to: "READY",
        actor: "authority.deadline",
        at: T0 + 305,
        evidence: { decision: "retry" },
      },
    ]);
    expect(next.retryCount).toBe(1);
    expect(next.nextAttemptAt).toBe(T0 + 305 + 1000);
  });

  it("waits initialDelayMs at every retry: an expiry does not back off", () => {
    let record = running({ timeouts: { executionMs: 300 }, retryPolicy: { maxAttempts: 9 } });
    for (let round = 1; round < 4; round++) {
      const now = record.updatedAt + 300;
      record = accepted(decideExpire(record, "execution", now));
      expect([record.retryCount, record.nextAttemptAt]).toEqual([round, now + 1000]);
      record = claimed(record, now + 1000, { start: true });
    }
  });

  const decisions: readonly (readonly [
    string,
    () => WorkloadRecord,
    "approval" | "overall" | "queue" | "claim",
    string,
  ])[] = [
    [
      "an approval",
      () => admitted({ approval: {}, timeouts: { approvalMs: 1 } }),
      "approval",
      "deadline_not_retryable",
    ],
    ["an overall", () => running({ timeouts: { overallMs: 1 } }), "overall", "deadline_not_retryable"],
    ["a queue", () => admitted({ timeouts: { queueMs: 1 } }), "queue", "deadline_not_retryable"],
    [
      "a claim deadline whose policy lacks timeout",
      () =>
        claimed(
          admitted({ timeouts: { claimMs: 1 }, retryPolicy: { retryOn: ["worker_failure"], maxAttempts: 1 } }),
          T0,
        ),
      "claim",
      "timeout_not_retryable",
    ],
    [
      "a claim deadline in the last attempt",
      () => claimed(admitted({ timeouts: { claimMs: 1 }, retryPolicy: { maxAttempts: 1 } }), T0),
      "claim",
      "attempt_budget_exhausted",
    ],
  ];
  for (const [what, build, name, decision] of decisions)
    it(`sends ${what} to DEAD_LETTER as ${decision}`, () => {
      const next = accepted(decideExpire(build(), name, T0 + 1));
      expect(next.state).toBe("DEAD_LETTER");
      expect(next.history.at(-2)?.to).toBe("TIMED_OUT");
      expect(next.history.at(-1)?.evidence).toEqual({ decision });
      expect(next.history.at(-1)?.actor).toBe("authority.deadline");
      expect(next.retryCount).toBe(0);
    });

  it("does not touch the previous attempt of a READY workload, and names no claim", () => {
    const record = running({ timeouts: { queueMs: 100 } });
    const ready = accepted(fail(record, fenceOf(record), { now: T0 + 1 }));
    const next = accepted(decideExpire(ready, "queue", T0 + 1101));
    expect(next.attempts).toEqual(ready.attempts);
    expect(next.history.at(-2)?.evidence).toEqual({ deadline: "queue", deadlineAt: String(T0 + 1101) });
  });

  it("changes nothing when the same deadline is no longer passed on the committed version", () => {
    const record = running({ timeouts: { heartbeatMs: 100, executionMs: 1000 } });
    const beat = accepted(decideHeartbeat(record, { fence: fenceOf(record), extendMs: 500 }, { now: T0 + 90 }));
    expect(decideExpire(beat, "heartbeat", T0 + 120)).toEqual({ ok: true, answer: false });
    expect(decideExpire(record, "execution", T0 + 120)).toEqual({ ok: true, answer: false });
    expect(decideExpire(recordIn.SUCCEEDED(), "overall", T0 + 9e9)).toEqual({ ok: true, answer: false });
    expect(answerOf(decideExpire(beat, "heartbeat", T0 + 190))).toBe(true);
  });

  it("keeps the record's own time when now runs backwards", () => {
    const record = claimed(admitted({ timeouts: { claimMs: 1 } }, T0), T0 + 500);
    expect(decideExpire(record, "claim", T0 - 9e5)).toEqual({ ok: true, answer: false });
    const late = frozen({ ...record, timeouts: { overallMs: 400 } });
    const next = accepted(decideExpire(late, "overall", 0));
    expect(next.history.map(({ at }) => at)).toEqual([T0, T0 + 500, T0 + 500, T0 + 500]);
    expect(next.updatedAt).toBe(T0 + 500);
  });
});

describe("enforcement before calls", () => {
  const run = running({ timeouts: { executionMs: 300 } });
  const fence = fenceOf(run);
  const stale = { ...fence, fencingToken: 9, claimId: "other" };
  const now = T0 + 300;
  const secret = { password: "x" };

  const calls: Record<string, Decision<unknown>> = {
    claim: decideClaim(run, { workerId: "w2", capabilities: [], leaseMs: 1 }, { now, dependencies: noDependencies }),
    start: decideStart(run, stale, { now }),
    heartbeat: decideHeartbeat(run, { fence, extendMs: 5 }, { now }),
    executionContext: decideExecutionContext(run, { fence, secretReferences: ["bad"] }, { now }),
    checkpoint: decideCheckpoint(run, { fence, state: secret }, { now, rules }),
    complete: complete(run, fence, { now, reservedFor: "workload_other", resultId: "taken" }),
    fail: fail(run, stale, { now, effect: "bad" }),
  };
  for (const [name, decision] of Object.entries(calls))
    it(`expires the workload before ${name} and refuses the call`, () => {
      expect(refusalOf(decision).code).toBe("WORKLOAD_TIMED_OUT");
      expect(refusalOf(decision).details).toEqual({ deadline: "execution", deadlineAt: T0 + 300 });
      expect(changeOf(decision)).toEqual(changeOf(decideExpire(run, "execution", now)));
    });

  it("expires a waiting workload before a decision, but not before who may decide is settled", () => {
    const gated = admitted({ approval: {}, timeouts: { approvalMs: 50 } });
    const late = approve(gated, T0 + 50);
    expect(refusalOf(late).details).toEqual({ deadline: "approval", deadlineAt: T0 + 50 });
    expect(committed(late).state).toBe("DEAD_LETTER");
    const stranger = {
      decider: { kind: "agent", id: "x" },
      outcome: "approved",
      grantId: "g",
      inputHash: "x",
    } as const;
    expect(refusalOf(decideApproval(gated, stranger, { now: T0 + 50, rules })).code).toBe(
      "WORKLOAD_APPROVER_NOT_PERMITTED",
    );
    const otherInput = decideApproval(gated, { ...stranger, decider: approver }, { now: T0 + 50, rules });
    expect(refusalOf(otherInput).code).toBe("WORKLOAD_APPROVAL_STALE");
    expect(otherInput.change).toBeUndefined();
  });

  it("answers a repeated decision even when a deadline has passed since", () => {
    const decided = accepted(approve(admitted({ approval: {}, timeouts: { queueMs: 10 } }), T0 + 1));
    expect(answerOf(approve(decided, T0 + 500)).replayed).toBe(true);
    expect(refusalOf(approve(decided, T0 + 500, "rejected")).code).toBe("WORKLOAD_APPROVAL_DECIDED");
  });

  it("does not come before confirmCancel, cancel, and recovery", () => {
    const requested = accepted(cancel(run, T0 + 10));
    const late = frozen({ ...requested, timeouts });
    expect(accepted(decideConfirmCancel(late, fence, { now: T0 + 6000 })).state).toBe("CANCELLED");
    expect(accepted(cancel(run, now)).state).toBe("CANCELLATION_REQUESTED");
    expect(accepted(decideRecover(run, { now: T0 + 10_000 })).history.at(-2)?.to).toBe("RECOVERING");
  });

  it("never comes in a record of contract version 1", () => {
    const old = frozen({ ...run, contractVersion: 1 as const });
    expect(accepted(complete(old, fence, { now: T0 + 9000 })).state).toBe("SUCCEEDED");
  });
});
