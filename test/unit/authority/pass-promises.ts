import { expect, it } from "vitest";
import type { Claim } from "../../../src/core/workload/record.ts";
import { eventsOf, fenceOf, LEASE_MS, refusal, refusedWith, Scene, type Stage } from "./stage.ts";

/** Contract 1.6 and 1.11: the passes of every node, and deadlines before every call. */
export function describePasses(stage: Stage): void {
  it("recovers a lost lease once when all nodes pass at once, and says where", async () => {
    const scene = new Scene(stage);
    const claims = await Promise.all(Array.from({ length: 20 }, () => scene.running()));
    await scene.together();
    scene.cluster.clock.set(scene.start + LEASE_MS - 1);
    expect(await scene.a.recoverExpired()).toEqual([]);
    scene.cluster.clock.set(scene.start + LEASE_MS);
    const told = (await Promise.all([scene.a, scene.b, scene.c].map((node) => node.recoverExpired()))).flat();
    for (const { workloadId } of claims) {
      expect(told.filter((id) => id === workloadId)).toHaveLength(1);
      const workload = await scene.b.get(workloadId);
      expect(eventsOf(workload)).toEqual(["READY", "CLAIMED", "RUNNING", "RECOVERING", "READY"]);
      expect(workload.attempts).toMatchObject([{ status: "WORKER_LOST", error: "worker_lost: claim lease expired" }]);
    }
    expect(await scene.c.recoverExpired()).toEqual([]);
  });

  it("passes a deadline once when all nodes pass at once", async () => {
    const scene = new Scene(stage);
    const claims = await Promise.all(
      Array.from({ length: 20 }, () => scene.running({ timeouts: { executionMs: 100 } })),
    );
    await scene.together();
    scene.cluster.clock.set(scene.start + 100);
    const told = (await Promise.all([scene.a, scene.b, scene.c].map((node) => node.enforceDeadlines()))).flat();
    for (const { workloadId } of claims) {
      expect(told.filter((id) => id === workloadId)).toHaveLength(1);
      expect(eventsOf(await scene.b.get(workloadId)).slice(3)).toEqual(["TIMED_OUT", "READY"]);
    }
  });

  it("reports nothing about what another node's pass did first, and does not fail", async () => {
    const scene = new Scene(stage);
    const { workloadId } = await scene.running();
    await scene.together();
    await scene.cluster.hold(scene.b);
    scene.cluster.clock.set(scene.start + LEASE_MS);
    expect(await scene.a.recoverExpired()).toContain(workloadId);
    expect(await scene.b.recoverExpired()).not.toContain(workloadId);
    expect((await scene.b.get(workloadId)).history).toHaveLength(5);
  });

  it.each([
    ["queue", { queueMs: 50 }, "deadline_not_retryable"],
    ["overall", { overallMs: 50 }, "deadline_not_retryable"],
    ["approval", { approvalMs: 50 }, "deadline_not_retryable"],
    ["claim", { claimMs: 50 }, "retry"],
    ["execution", { executionMs: 50 }, "retry"],
    ["heartbeat", { heartbeatMs: 50 }, "retry"],
  ])(
    "enforces the %s deadline before a call at any node, though no pass has run",
    async (deadline, timeouts, decision) => {
      const scene = new Scene(stage);
      const changes = { timeouts, ...(deadline === "approval" ? { approval: {} } : {}) };
      const held = ["claim", "execution", "heartbeat"].includes(deadline);
      const claim = held ? await scene.claimed(changes, { start: deadline !== "claim" }) : undefined;
      const workload = claim === undefined ? await scene.admitted(changes) : await scene.a.get(claim.workloadId);
      const { workloadId } = workload;
      scene.cluster.clock.set(scene.start + 50);
      const call =
        claim !== undefined
          ? scene.b.heartbeat({ ...fenceOf(claim), extendMs: 5 })
          : deadline === "approval"
            ? scene.b.decide(scene.decideArguments(workload))
            : scene.b.claim(scene.claimArguments(workloadId));
      expect(await refusal(call)).toMatchObject({
        code: "WORKLOAD_TIMED_OUT",
        definite: true,
        details: { deadline, deadlineAt: scene.start + 50 },
      });
      const { history } = await scene.c.get(workloadId);
      expect(history.slice(-2)).toMatchObject([
        { to: "TIMED_OUT", actor: "authority.deadline", evidence: { deadline } },
        { evidence: { decision } },
      ]);
    },
  );

  it("times out a queue from when the work became eligible, not from when it came", async () => {
    const scene = new Scene(stage);
    const workload = await scene.admitted({ notBefore: scene.start + 100, timeouts: { queueMs: 50 } });
    scene.cluster.clock.set(scene.start + 149);
    expect(await scene.a.enforceDeadlines()).toEqual([]);
    scene.cluster.clock.set(scene.start + 150);
    expect(await scene.a.enforceDeadlines()).toEqual([workload.workloadId]);
  });

  it("ends cancelled work of a lost worker as cancelled, and confirms a cancellation whatever deadline has passed", async () => {
    const scene = new Scene(stage);
    const lost = await scene.running();
    const alive = await scene.running({ timeouts: { executionMs: 5, overallMs: 5 } }, { leaseMs: 2 * LEASE_MS });
    for (const { workloadId } of [lost, alive]) await scene.a.cancel({ workloadId, actor: "olga" });
    scene.cluster.clock.set(scene.start + LEASE_MS);
    expect(await scene.a.enforceDeadlines()).toEqual([]);
    expect(await scene.a.recoverExpired()).toEqual([lost.workloadId]);
    expect((await scene.b.get(lost.workloadId)).state).toBe("CANCELLED");
    expect(await scene.b.confirmCancel(fenceOf(alive))).toEqual({ state: "CANCELLED" });
  });

  it("buries work whose attempts are used, and lets an operator re-arm it, as often as the policy allows", async () => {
    const scene = new Scene(stage);
    const { workloadId } = await scene.admitted({ retryPolicy: { maxAttempts: 2 } });
    let at = scene.start;
    const lose = async (): Promise<Claim> => {
      const claim = await scene.a.claim(scene.claimArguments(workloadId));
      at += LEASE_MS;
      scene.cluster.clock.set(at);
      expect(await scene.b.recoverExpired()).toEqual([workloadId]);
      return claim;
    };
    await lose();
    await lose();
    expect(await refusedWith(scene.c.claim(scene.claimArguments(workloadId)))).toBe("WORKLOAD_NOT_READY");
    for (const expected of [3, 4]) {
      expect(await scene.c.retry({ workloadId, actor: "olga", reason: "again" })).toEqual({ state: "READY" });
      expect((await lose()).fencingToken).toBe(expected);
    }
    expect(await refusedWith(scene.c.retry({ workloadId, actor: "olga" }))).toBe("WORKLOAD_RETRY_EXHAUSTED");
  });

  it("judges by a record's own time when the clock is set back, and by nothing else", async () => {
    const scene = new Scene(stage);
    const { workloadId } = await scene.admitted({ retryPolicy: { maxAttempts: 1 } });
    const claim = await scene.a.claim(scene.claimArguments(workloadId, { leaseMs: 10 }));
    scene.cluster.clock.set(scene.start + 500);
    await scene.a.cancel({ workloadId, actor: "olga" });
    const other = await scene.running({ retryPolicy: { maxAttempts: 1 } });
    await scene.a.fail({ ...fenceOf(other), kind: "bug", error: "x" });
    await scene.a.retry({ workloadId: other.workloadId, actor: "olga" });
    scene.cluster.clock.set(scene.start - 400);
    expect(await refusedWith(scene.b.confirmCancel(fenceOf(claim)))).toBe("WORKLOAD_LEASE_EXPIRED");
    expect(await scene.b.recoverExpired()).toEqual([workloadId]);
    const { history, updatedAt } = await scene.b.get(workloadId);
    expect(history.map(({ at }) => at - scene.start)).toEqual([0, 0, 500, 500]);
    expect(updatedAt).toBe(scene.start + 500);
    const [next] = await scene.b.claimNext(scene.nextArguments());
    expect(next).toMatchObject({ workloadId: other.workloadId, claimedAt: scene.start + 500 });
    expect(await scene.b.admit(scene.request())).toMatchObject({ workload: { createdAt: scene.start - 400 } });
  });

  it("waits for work that is months away, and gives it out at its instant", async () => {
    const scene = new Scene(stage);
    const awayMs = 2_147_483_647 + 86_400_000;
    const { workloadId } = await scene.admitted({ notBefore: scene.start + awayMs });
    expect(await scene.b.claimNext(scene.nextArguments({ waitMs: 20 }))).toEqual([]);
    scene.cluster.clock.set(scene.start + awayMs - 1);
    const error = await refusal(scene.b.claim(scene.claimArguments(workloadId)));
    expect(error).toMatchObject({
      code: "WORKLOAD_NOT_YET_ELIGIBLE",
      details: { nextAttemptAt: scene.start + awayMs },
    });
    expect(await scene.b.claimNext(scene.nextArguments())).toEqual([]);
    scene.cluster.clock.set(scene.start + awayMs);
    expect(await scene.b.claimNext(scene.nextArguments())).toHaveLength(1);
    scene.cluster.clock.set(scene.start);
  });
}
