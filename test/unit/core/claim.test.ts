/**
 * Goal: claiming and starting as contract 1.8 has them.
 * Method: a record with every obstacle at once; they are cleared one after the other, and each time the next is named.
 */
import { describe, expect, it } from "vitest";
import { sha256Hex } from "../../../src/base/hash.ts";
import { decideClaim, decideStart, type ClaimCommand } from "../../../src/core/workload/claim.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import type { WorkloadState } from "../../../src/core/workload/states.ts";
import {
  accepted,
  admitted,
  answerOf,
  approve,
  changeOf,
  claimed,
  committed,
  fail,
  fenceOf,
  frozen,
  recordIn,
  refusalOf,
  refusedWith,
  running,
  T0,
} from "./fixtures.ts";

const claim = (
  record: WorkloadRecord,
  now: number,
  changes: Partial<ClaimCommand> & { readonly dependencies?: ReadonlyMap<string, WorkloadState> } = {},
) => {
  const { dependencies = new Map<string, WorkloadState>(), ...command } = changes;
  return decideClaim(record, { workerId: "w1", capabilities: [], leaseMs: 10_000, ...command }, { now, dependencies });
};

describe("a claim", () => {
  it("takes the next fencing token and begins an attempt", () => {
    const record = admitted({ capabilities: ["gpu"] });
    const decision = claim(record, T0 + 5, { capabilities: ["gpu", "cpu"] });
    const next = accepted(decision);
    const { workloadId } = record;
    const claimId = `claim_${sha256Hex(`${workloadId}:1:w1`).slice(0, 20)}`;
    const expected = {
      claimId,
      workloadId,
      workerId: "w1",
      leaseId: "lease_1",
      fencingToken: 1,
      capabilities: ["gpu"],
      claimedAt: T0 + 5,
      expiresAt: T0 + 10_005,
      lastHeartbeat: T0 + 5,
    };
    expect(answerOf(decision)).toEqual(expected);
    expect(next.currentClaim).toEqual(expected);
    expect([next.fencingToken, next.attemptCount, next.state]).toEqual([1, 1, "CLAIMED"]);
    expect(next.attempts).toEqual([
      {
        attemptId: `attempt_${workloadId}_1`,
        workloadId,
        workerId: "w1",
        claimId,
        fencingToken: 1,
        inputHash: record.inputHash,
        resourceUsage: {},
        status: "CLAIMED",
      },
    ]);
    expect(next.history.at(-1)).toEqual({
      sequence: 2,
      type: "workload.claimed",
      from: "READY",
      to: "CLAIMED",
      actor: "w1",
      at: T0 + 5,
      evidence: { fencingToken: "1" },
    });
  });

  it("starts in the same commit when asked to", () => {
    const decision = claim(admitted(), T0 + 5, { start: true });
    const next = accepted(decision);
    expect(answerOf(decision)).toEqual(next.currentClaim);
    expect(next.history.map(({ to, actor, at }) => [to, actor, at])).toEqual([
      ["READY", "authority", T0],
      ["CLAIMED", "w1", T0 + 5],
      ["RUNNING", "w1", T0 + 5],
    ]);
    expect(next.attempts[0]).toMatchObject({ status: "RUNNING", startedAt: T0 + 5 });
  });

  it("comes to the same record as a claim and a start", () => {
    const apart = claimed(admitted(), T0 + 5);
    const next = accepted(decideStart(apart, fenceOf(apart), { now: T0 + 5 }));
    expect(next).toEqual(committed(claim(admitted(), T0 + 5, { start: true })));
  });

  it("grows the token by one each time, whoever claims", () => {
    let record = admitted({ retryPolicy: { maxAttempts: 9, backoff: "fixed" } });
    for (let token = 1; token <= 5; token++) {
      record = claimed(record, record.updatedAt + 1000, { workerId: `w${token % 2}` });
      expect([record.fencingToken, record.attemptCount, record.currentClaim?.leaseId]).toEqual([
        token,
        token,
        `lease_${token}`,
      ]);
      record = accepted(fail(record, fenceOf(record), { now: record.updatedAt }));
    }
    expect(new Set(record.attempts.map(({ claimId }) => claimId)).size).toBe(5);
  });
});

describe("the order of refusals", () => {
  const dependencies = [
    { workloadId: "workload_a" },
    { workloadId: "workload_b", requiredState: "CANCELLED" as const },
  ];
  const gated = admitted({
    approval: {},
    notBefore: T0 + 100,
    dependencies,
    capabilities: ["cpu", "gpu"],
  });

  it("names one obstacle after the other", () => {
    expect(refusedWith(claim(gated, T0))).toBe("WORKLOAD_APPROVAL_PENDING");
    expect(refusedWith(claim(accepted(approve(gated, T0 + 1, "rejected")), T0 + 2))).toBe("WORKLOAD_REJECTED");
    const record = accepted(approve(gated, T0 + 1));

    const early = claim(record, T0 + 99);
    expect(refusedWith(early)).toBe("WORKLOAD_NOT_YET_ELIGIBLE");
    expect(refusalOf(early).details).toEqual({ nextAttemptAt: T0 + 100 });
    expect(refusalOf(early).message).toContain(String(T0 + 100));

    const half = new Map<string, WorkloadState>([["workload_b", "RUNNING"]]);
    const pending = claim(record, T0 + 100, { dependencies: half });
    expect(refusedWith(pending)).toBe("WORKLOAD_DEPENDENCY_PENDING");
    expect(refusalOf(pending).details).toEqual({
      dependencies: [
        { workloadId: "workload_a", requiredState: "SUCCEEDED" },
        { workloadId: "workload_b", requiredState: "CANCELLED", state: "RUNNING" },
      ],
    });

    const met = new Map<string, WorkloadState>([
      ["workload_a", "SUCCEEDED"],
      ["workload_b", "CANCELLED"],
    ]);
    const weak = claim(record, T0 + 100, { dependencies: met, capabilities: ["cpu"] });
    expect(refusedWith(weak)).toBe("WORKLOAD_CAPABILITY_DENIED");
    expect(refusalOf(weak).details).toEqual({ missing: ["gpu"] });

    expect(accepted(claim(record, T0 + 100, { dependencies: met, capabilities: ["gpu", "cpu"] })).state).toBe(
      "CLAIMED",
    );
  });

  it("is NOT_READY for all other states, with the state", () => {
    for (const state of ["CLAIMED", "RUNNING", "SUCCEEDED", "DEAD_LETTER", "CANCELLATION_REQUESTED"] as const)
      expect(refusalOf(claim(recordIn[state](), T0 + 10))).toMatchObject({
        code: "WORKLOAD_NOT_READY",
        details: { state },
      });
  });

  it("asks for the approval on record whatever the state says", () => {
    const forged = frozen({
      ...admitted({ notBefore: T0 + 999 }),
      approval: { policy: { approverKinds: ["human"], approvers: [] } },
    } as const);
    expect(refusedWith(claim(forged, T0))).toBe("WORKLOAD_APPROVAL_PENDING");
  });

  it("asserts dependencies whose required state could be left again, and no others", () => {
    const record = admitted({
      dependencies: [{ workloadId: "a" }, { workloadId: "b", requiredState: "DEAD_LETTER" }],
    });
    const met = new Map<string, WorkloadState>([
      ["a", "SUCCEEDED"],
      ["b", "DEAD_LETTER"],
    ]);
    expect(changeOf(claim(record, T0, { dependencies: met })).assertedDependencies).toEqual(["b"]);
  });
});

describe("an exhausted budget", () => {
  const exhausted = (): WorkloadRecord => {
    const record = running();
    const ready = accepted(fail(record, fenceOf(record), { now: T0 + 1 }));
    return frozen({ ...ready, retryPolicy: { ...ready.retryPolicy, maxAttempts: 1 }, capabilities: ["gpu"] });
  };

  it("dead-letters a READY workload before anything else is looked at", () => {
    const decision = claim(exhausted(), T0 + 2);
    expect(refusalOf(decision)).toMatchObject({
      code: "WORKLOAD_ATTEMPTS_EXHAUSTED",
      details: { attemptsUsed: 1, attemptBudget: 1 },
    });
    expect(committed(decision).state).toBe("DEAD_LETTER");
    expect(committed(decision).history.at(-1)).toMatchObject({
      actor: "authority.claim",
      evidence: { reason: "attempt_budget_exhausted", attemptsUsed: "1", attemptBudget: "1" },
    });
  });

  it("comes after the deadlines", () => {
    const late = frozen({ ...exhausted(), timeouts: { overallMs: 5 } });
    const decision = claim(late, T0 + 5);
    expect(refusalOf(decision).code).toBe("WORKLOAD_TIMED_OUT");
    expect(committed(decision).history.at(-1)?.evidence).toEqual({ decision: "deadline_not_retryable" });
  });

  it("does not concern a workload in another state", () => {
    const spent = frozen({ ...running({ retryPolicy: { maxAttempts: 1 } }) });
    expect(refusedWith(claim(spent, T0 + 1))).toBe("WORKLOAD_NOT_READY");
  });
});

describe("a start", () => {
  it("sets the attempt RUNNING from now", () => {
    const record = claimed(admitted(), T0 + 5);
    const next = accepted(decideStart(record, fenceOf(record), { now: T0 + 9 }));
    expect(next.attempts).toEqual([{ ...record.attempts[0], status: "RUNNING", startedAt: T0 + 9 }]);
    expect(next.history.at(-1)).toMatchObject({ from: "CLAIMED", to: "RUNNING", actor: "w1", at: T0 + 9 });
  });

  it("is refused to a stale fence before the state is looked at", () => {
    const record = running();
    expect(refusedWith(decideStart(record, { ...fenceOf(record), fencingToken: 9 }, { now: T0 }))).toBe(
      "WORKLOAD_STALE_FENCE",
    );
    expect(refusedWith(decideStart(record, fenceOf(record), { now: T0 }))).toBe("WORKLOAD_TRANSITION_DENIED");
  });

  it("does not run its times backwards when the clock was set back", () => {
    const record = claimed(admitted(), T0 + 500);
    const next = accepted(decideStart(record, fenceOf(record), { now: 3 }));
    expect(next.attempts[0]?.startedAt).toBe(T0 + 500);
    expect(next.history.at(-1)?.at).toBe(T0 + 500);
  });
});
