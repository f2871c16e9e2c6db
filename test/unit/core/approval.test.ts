/**
 * Goal: decisions as contract 1.9 has them: order of checks, repeats, the race, the quorum.
 * Method: a command with every fault at once; the faults are mended one by one.
 */
import { describe, expect, it } from "vitest";
import type { AdmitRequest } from "../../../src/core/workload/admission.ts";
import { decideApproval, type DecideCommand } from "../../../src/core/workload/approval.ts";
import { decideClaim } from "../../../src/core/workload/claim.ts";
import { decideExpire } from "../../../src/core/workload/deadlines.ts";
import { decideRetry } from "../../../src/core/workload/operate.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import {
  accepted,
  admitted,
  answerOf,
  approve,
  cancel,
  claimed,
  fail,
  fenceOf,
  frozen,
  noDependencies,
  refusalOf,
  refusedWith,
  requester,
  rules,
  T0,
} from "./fixtures.ts";

const gated = (changes: Partial<AdmitRequest> = {}): WorkloadRecord => admitted({ approval: {}, ...changes });

const decide = (record: WorkloadRecord, changes: Partial<DecideCommand> = {}, now: number = T0 + 1) =>
  decideApproval(
    record,
    {
      decider: { kind: "human", id: "ada" },
      outcome: "approved",
      grantId: "grant_2",
      inputHash: record.inputHash,
      ...changes,
    },
    { now, rules },
  );

describe("a decision", () => {
  it("approves: stored once, READY, with its evidence", () => {
    const decision = decide(gated(), { reason: "fine" });
    const next = accepted(decision);
    const expected = {
      outcome: "approved",
      decidedBy: { kind: "human", id: "ada" },
      decidedAt: T0 + 1,
      reason: "fine",
      grantId: "grant_2",
      inputHash: next.inputHash,
    };
    expect(answerOf(decision)).toEqual({ decision: expected, replayed: false });
    expect(next.approval).toEqual({ policy: { approverKinds: ["human"], approvers: [] }, decision: expected });
    expect(next.history.at(-1)).toEqual({
      sequence: 2,
      type: "workload.ready",
      from: "AWAITING_APPROVAL",
      to: "READY",
      actor: "ada",
      at: T0 + 1,
      evidence: { decidedBy: "ada", deciderKind: "human", grantId: "grant_2", reason: "fine" },
    });
  });

  it("rejects: REJECTED, which is final", () => {
    const next = accepted(decide(gated(), { outcome: "rejected", reason: "no" }));
    expect(next.state).toBe("REJECTED");
    expect(next.history.at(-1)?.type).toBe("workload.rejected");
    expect(refusedWith(cancel(next, T0 + 2))).toBe("WORKLOAD_TRANSITION_DENIED");
    expect(refusedWith(decideRetry(next, { actor: "o" }, { now: T0 + 2, rules }))).toBe("WORKLOAD_TRANSITION_DENIED");
    expect(refusedWith(decide(next))).toBe("WORKLOAD_APPROVAL_DECIDED");
    const claim = decideClaim(
      next,
      { workerId: "w", capabilities: [], leaseMs: 1 },
      { now: T0, dependencies: noDependencies },
    );
    expect(refusedWith(claim)).toBe("WORKLOAD_REJECTED");
  });

  it("needs no reason to approve, and has none as evidence then", () => {
    const next = accepted(decide(gated()));
    expect(next.approval?.decision).not.toHaveProperty("reason");
    expect(next.history.at(-1)?.evidence).not.toHaveProperty("reason");
  });

  it("keeps 512 characters of the reason, well formed", () => {
    const next = accepted(decide(gated(), { reason: "r".repeat(600) }));
    expect(next.approval?.decision?.reason).toBe("r".repeat(512));
    const split = accepted(decide(gated(), { reason: `${"r".repeat(511)}😀` }));
    expect(split.approval?.decision?.reason?.isWellFormed()).toBe(true);
    expect(split.approval?.decision?.reason).toHaveLength(512);
  });

  it("stands for all attempts", () => {
    const record = claimed(accepted(approve(gated(), T0 + 1)), T0 + 2, { start: true });
    const again = claimed(accepted(fail(record, fenceOf(record), { now: T0 + 3 })), T0 + 2000);
    expect(again.attemptCount).toBe(2);
  });

  it("is dated by the record when the clock was set back", () => {
    expect(answerOf(decide(gated(), {}, 5)).decision.decidedAt).toBe(T0);
  });
});

describe("the order of checks", () => {
  it("names one fault after the other", () => {
    const faults: DecideCommand = {
      decider: requester,
      outcome: "rejected",
      reason: " ",
      grantId: "g",
      inputHash: "other",
    };
    const open = admitted();
    expect(refusedWith(decide(open, faults))).toBe("WORKLOAD_INVALID");
    expect(refusalOf(decide(open, faults)).details?.["paths"]).toEqual(["reason"]);
    const { reason: _none, ...silent } = faults;
    expect(refusedWith(decide(open, silent))).toBe("WORKLOAD_INVALID");

    const secret = { ...faults, reason: "sk-123" };
    expect(refusedWith(decide(open, secret))).toBe("WORKLOAD_SECRET_REJECTED");
    expect(refusalOf(decide(open, secret)).details).toEqual({ path: "reason" });

    const reasoned = { ...faults, reason: "no" };
    expect(refusedWith(decide(open, reasoned))).toBe("WORKLOAD_APPROVAL_NOT_REQUIRED");

    const decided = accepted(approve(gated(), T0 + 1));
    expect(refusedWith(decide(decided, reasoned))).toBe("WORKLOAD_APPROVER_NOT_PERMITTED");

    const permitted = { ...reasoned, decider: { kind: "human", id: "bob" } } as const;
    expect(refusedWith(decide(decided, permitted))).toBe("WORKLOAD_APPROVAL_STALE");
    expect(refusalOf(decide(decided, permitted)).details).toEqual({ inputHash: decided.inputHash });

    const current = { ...permitted, inputHash: decided.inputHash };
    expect(refusedWith(decide(decided, current))).toBe("WORKLOAD_APPROVAL_DECIDED");

    const cancelled = accepted(cancel(gated(), T0 + 1));
    expect(refusedWith(decide(cancelled, current))).toBe("WORKLOAD_APPROVAL_NOT_ACTIONABLE");
    expect(refusalOf(decide(cancelled, current)).details).toEqual({ state: "CANCELLED" });
  });

  it("permits the kinds and the approvers of the policy, and never the requester", () => {
    const listed = gated({
      approval: {
        approverKinds: ["human", "service"],
        approvers: [{ kind: "human", id: "ada" }, requester],
      },
    });
    const by = (kind: "human" | "service" | "agent", id: string) => decide(listed, { decider: { kind, id } });
    expect(answerOf(by("human", "ada")).replayed).toBe(false);
    for (const refusal of [by("human", "bob"), by("service", "ada"), by("agent", "ada"), by("service", "billing")])
      expect(refusedWith(refusal)).toBe("WORKLOAD_APPROVER_NOT_PERMITTED");
    expect(refusedWith(decide(gated(), { decider: { kind: "service", id: "x" } }))).toBe(
      "WORKLOAD_APPROVER_NOT_PERMITTED",
    );
    expect(answerOf(decide(gated(), { decider: { kind: "human", id: "billing" } })).replayed).toBe(false);
  });
});

describe("after a decision", () => {
  const approved = accepted(decide(gated(), { reason: "first" }));

  it("the same outcome by anyone permitted is a repeat that commits nothing", () => {
    const again = decide(approved, { decider: { kind: "human", id: "bob" }, reason: "second", grantId: "g9" }, T0 + 50);
    expect(again).toEqual({ ok: true, answer: { decision: approved.approval?.decision, replayed: true } });
  });

  it("the opposite outcome is told who decided what and when", () => {
    const other = decide(approved, { outcome: "rejected", reason: "late" });
    expect(refusedWith(other)).toBe("WORKLOAD_APPROVAL_DECIDED");
    expect(refusalOf(other).details).toEqual({
      outcome: "approved",
      decidedBy: { kind: "human", id: "ada" },
      decidedAt: T0 + 1,
    });
  });

  it("both answers stay the same however the workload went on", () => {
    const record = claimed(approved, T0 + 2);
    expect(answerOf(decide(record)).replayed).toBe(true);
    expect(answerOf(decide(accepted(cancel(approved, T0 + 3)))).replayed).toBe(true);
  });
});

describe("work whose approval deadline passed", () => {
  it("goes back to AWAITING_APPROVAL when it is re-armed, and its deadline starts anew", () => {
    const dead = accepted(decideExpire(gated({ timeouts: { approvalMs: 10 } }), "approval", T0 + 10));
    expect(dead.state).toBe("DEAD_LETTER");
    expect(refusedWith(decide(dead))).toBe("WORKLOAD_APPROVAL_NOT_ACTIONABLE");
    const again = accepted(decideRetry(dead, { actor: "olga" }, { now: T0 + 100, rules }));
    expect(again.state).toBe("AWAITING_APPROVAL");
    expect(accepted(decide(again, {}, T0 + 109)).state).toBe("READY");
    expect(refusalOf(decide(again, {}, T0 + 110)).code).toBe("WORKLOAD_TIMED_OUT");
  });
});

describe("a quorum", () => {
  const two = gated({ approval: { requiredApprovals: 2 } });
  const by = (record: WorkloadRecord, id: string, changes: Partial<DecideCommand> = {}, now?: number) =>
    decide(record, { decider: { kind: "human", id }, ...changes }, now);

  it("needs that many distinct approvers", () => {
    const first = accepted(by(two, "ada"));
    expect(first.state).toBe("AWAITING_APPROVAL");
    expect(first.history).toEqual(two.history);
    expect(first.approval?.decision).toBeUndefined();
    expect(answerOf(by(first, "ada"))).toEqual({ decision: first.approval?.given?.[0], replayed: true });
    expect(by(first, "ada").ok && by(first, "ada").change).toBeUndefined();
    const second = accepted(by(first, "bob", {}, T0 + 5));
    expect(second.state).toBe("READY");
    expect(second.approval?.decision?.decidedBy.id).toBe("bob");
    expect(second.approval?.given?.map(({ decidedBy }) => decidedBy.id)).toEqual(["ada", "bob"]);
    expect(answerOf(by(second, "ada")).replayed).toBe(true);
    expect(answerOf(by(second, "eve")).replayed).toBe(true);
  });

  it("is ended by any rejection, of one who approved before as well", () => {
    const first = accepted(by(two, "ada"));
    for (const id of ["ada", "bob"]) {
      const next = accepted(by(first, id, { outcome: "rejected", reason: "no" }));
      expect(next.state).toBe("REJECTED");
      expect(next.approval?.decision?.outcome).toBe("rejected");
    }
  });

  it("lets no claim through before it is reached, whatever the state says", () => {
    const forged = frozen({ ...accepted(by(two, "ada")), state: "READY" as const });
    const claim = decideClaim(
      forged,
      { workerId: "w", capabilities: [], leaseMs: 1 },
      { now: T0 + 9, dependencies: noDependencies },
    );
    expect(refusedWith(claim)).toBe("WORKLOAD_APPROVAL_PENDING");
  });
});
