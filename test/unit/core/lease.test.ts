/**
 * Goal: the fence and what a lease is good for (contract 1.8, 5.5): order of refusals, heartbeat, execution context, grace.
 * Method: one running workload; its fence is bent part by part, its clock moved to the edge of the lease.
 */
import { describe, expect, it } from "vitest";
import { checkFence, LEASE_GRACE_MAX_MS, leaseEndsAt } from "../../../src/core/workload/fence.ts";
import { decideExecutionContext, decideHeartbeat } from "../../../src/core/workload/lease.ts";
import {
  accepted,
  admitted,
  answerOf,
  cancel,
  changeOf,
  checkpointed,
  claimed,
  fail,
  fenceOf,
  recordIn,
  refusalOf,
  refusedWith,
  running,
  started,
  T0,
} from "./fixtures.ts";

describe("the fence", () => {
  const record = running();
  const fence = fenceOf(record);

  it("lets the holder pass until the lease's end, which is no longer part of it", () => {
    expect(checkFence(record, fence, { now: T0 + 9999 })).toBeUndefined();
    expect(checkFence(record, fence, { now: T0 + 10_000 })?.code).toBe("WORKLOAD_LEASE_EXPIRED");
    expect(checkFence(record, fence, { now: T0 + 10_000 })?.details).toEqual({ expiresAt: T0 + 10_000 });
  });

  it("asks for a claim first, then for its three parts, then for the time", () => {
    const bent = { ...fence, claimId: "other" };
    const late = { now: T0 + 90_000 };
    expect(checkFence(recordIn.SUCCEEDED(), bent, late)?.code).toBe("WORKLOAD_CLAIM_INVALID");
    expect(checkFence(record, bent, late)?.code).toBe("WORKLOAD_STALE_FENCE");
    expect(checkFence(record, fence, late)?.code).toBe("WORKLOAD_LEASE_EXPIRED");
  });

  it("is stale when any of the three parts differs", () => {
    for (const bent of [{ claimId: "other" }, { workerId: "w9" }, { fencingToken: 2 }])
      expect(checkFence(record, { ...fence, ...bent }, { now: T0 })?.code).toBe("WORKLOAD_STALE_FENCE");
  });

  it("is stale for a former holder once the work was given to another", () => {
    const again = claimed(accepted(fail(record, fence, { now: T0 + 1 })), T0 + 2000, { workerId: "w2" });
    expect(checkFence(again, fence, { now: T0 + 2000 })?.code).toBe("WORKLOAD_STALE_FENCE");
    expect(checkFence(again, fenceOf(again), { now: T0 + 2000 })).toBeUndefined();
  });
});

describe("the grace of a node that has just come back", () => {
  const claim = (leaseMs: number) => {
    const { currentClaim } = claimed(admitted(), T0, { leaseMs });
    if (currentClaim === undefined) throw new TypeError("no claim");
    return currentClaim;
  };

  it("is none when the node has served all along", () => {
    expect(leaseEndsAt(claim(10_000), undefined)).toBe(T0 + 10_000);
    expect(leaseEndsAt(claim(10_000), 0)).toBe(T0 + 10_000);
    expect(leaseEndsAt(claim(10_000), T0)).toBe(T0 + 10_000);
  });

  it("lets a lease end only after the node has served for the lease's length", () => {
    expect(leaseEndsAt(claim(10_000), T0 + 60_000)).toBe(T0 + 70_000);
    expect(leaseEndsAt(claim(10_000), T0 + 4000)).toBe(T0 + 14_000);
  });

  it("is thirty seconds at most", () => {
    expect(LEASE_GRACE_MAX_MS).toBe(30_000);
    expect(leaseEndsAt(claim(3_600_000), T0 + 9_000_000)).toBe(T0 + 9_030_000);
  });

  it("measures the length of the lease as last renewed", () => {
    const record = running();
    const beat = accepted(decideHeartbeat(record, { fence: fenceOf(record), extendMs: 2000 }, { now: T0 + 5000 }));
    const { currentClaim } = beat;
    expect(currentClaim === undefined ? 0 : leaseEndsAt(currentClaim, T0 + 60_000)).toBe(T0 + 62_000);
  });

  it("holds for the holder's calls as for recovery", () => {
    const record = running();
    const instant = { now: T0 + 65_000, servingSince: T0 + 60_000 };
    expect(checkFence(record, fenceOf(record), instant)).toBeUndefined();
    expect(checkFence(record, fenceOf(record), { ...instant, now: T0 + 70_000 })?.code).toBe("WORKLOAD_LEASE_EXPIRED");
  });
});

describe("a heartbeat", () => {
  const record = running({ timeouts: { executionMs: 60_000, heartbeatMs: 20_000 } });
  const beat = (now: number, extendMs = 5000) => decideHeartbeat(record, { fence: fenceOf(record), extendMs }, { now });

  it("renews the lease without an event", () => {
    const next = accepted(beat(T0 + 3000));
    expect(next).toEqual({
      ...record,
      updatedAt: T0 + 3000,
      currentClaim: { ...record.currentClaim, lastHeartbeat: T0 + 3000, expiresAt: T0 + 8000 },
    });
  });

  it("says which deadline comes next and whether to stop", () => {
    expect(answerOf(beat(T0 + 3000))).toEqual({
      claim: changeOf(beat(T0 + 3000)).record.currentClaim,
      cancellationRequested: false,
      nextDeadline: { deadline: "heartbeat", deadlineAt: T0 + 23_000 },
    });
    const requested = accepted(cancel(record, T0 + 10));
    const answer = answerOf(decideHeartbeat(requested, { fence: fenceOf(record), extendMs: 1 }, { now: T0 + 20 }));
    expect(answer.cancellationRequested).toBe(true);
    expect(answer).not.toHaveProperty("nextDeadline");
  });

  it("is refused to whoever does not hold the fence", () => {
    expect(refusedWith(beat(T0 + 10_000))).toBe("WORKLOAD_LEASE_EXPIRED");
    const bent = { ...fenceOf(record), workerId: "w9" };
    expect(refusedWith(decideHeartbeat(record, { fence: bent, extendMs: 5 }, { now: T0 }))).toBe(
      "WORKLOAD_STALE_FENCE",
    );
  });

  it("takes now as the last event's instant when the clock was set back", () => {
    const late = started(claimed(admitted(), T0 + 700), T0 + 800);
    const next = accepted(decideHeartbeat(late, { fence: fenceOf(late), extendMs: 100 }, { now: 5 }));
    expect(next.currentClaim?.lastHeartbeat).toBe(T0 + 800);
    expect(next.currentClaim?.expiresAt).toBe(T0 + 900);
    expect(next.updatedAt).toBe(T0 + 800);
  });

  it("never takes updatedAt back", () => {
    const first = accepted(beat(T0 + 3000));
    const second = accepted(decideHeartbeat(first, { fence: fenceOf(first), extendMs: 9000 }, { now: T0 + 1000 }));
    expect(second.updatedAt).toBe(T0 + 3000);
  });

  it("leaves updatedAt where it was when a move follows under a clock that was set back", () => {
    const beaten = accepted(beat(T0 + 3000));
    const next = accepted(cancel(beaten, T0 + 1000));
    expect(next.history.at(-1)?.at).toBe(T0 + 1000);
    expect(next.updatedAt).toBe(T0 + 3000);
  });

  it("never sets an end beyond the whole numbers", () => {
    const next = accepted(beat(T0, Number.MAX_SAFE_INTEGER));
    expect(next.currentClaim?.expiresAt).toBe(Number.MAX_SAFE_INTEGER);
    expect(claimed(admitted(), T0, { leaseMs: Number.MAX_SAFE_INTEGER }).currentClaim?.expiresAt).toBe(
      Number.MAX_SAFE_INTEGER,
    );
  });
});

describe("the execution context", () => {
  it("has what an attempt needs, checkpoints of earlier attempts included, and commits nothing", () => {
    const first = checkpointed(running({ capabilities: ["gpu"], connectionScopes: ["db"] }), T0 + 1);
    const again = claimed(accepted(fail(first, fenceOf(first), { now: T0 + 2 })), T0 + 2000, {
      workerId: "w2",
      start: true,
    });
    const record = checkpointed(again, T0 + 2001);
    const secretReferences = ["secret://vault/a", "secret://"];
    const decision = decideExecutionContext(record, { fence: fenceOf(record), secretReferences }, { now: T0 + 2002 });
    expect(decision).toEqual({
      ok: true,
      answer: {
        attemptId: `attempt_${record.workloadId}_2`,
        capabilities: ["gpu"],
        connectionScopes: ["db"],
        expiresAt: T0 + 12_000,
        fencingToken: 2,
        input: { json: '{"invoice":42}' },
        checkpoints: record.checkpoints,
        secretReferences,
      },
    });
    expect(record.checkpoints.map(({ sequence, attemptId }) => [sequence, attemptId])).toEqual([
      [1, `attempt_${record.workloadId}_1`],
      [2, `attempt_${record.workloadId}_2`],
    ]);
  });

  it("takes secret:// references alone and names the wrong one, not its text", () => {
    const record = running();
    const decision = decideExecutionContext(
      record,
      { fence: fenceOf(record), secretReferences: ["secret://a", "SECRET://hunter2"] },
      { now: T0 },
    );
    expect(refusedWith(decision)).toBe("WORKLOAD_SECRET_REJECTED");
    expect(JSON.stringify(refusalOf(decision))).not.toContain("hunter2");
    expect(refusalOf(decision).details).toEqual({ path: "secretReferences[1]" });
  });

  it("is fenced", () => {
    const record = running();
    const bent = { ...fenceOf(record), fencingToken: 7 };
    expect(refusedWith(decideExecutionContext(record, { fence: bent, secretReferences: ["x"] }, { now: T0 }))).toBe(
      "WORKLOAD_STALE_FENCE",
    );
  });
});
