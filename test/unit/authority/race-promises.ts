import { expect, it } from "vitest";
import { eventsOf, fenceOf, LEASE_MS, refusal, refusedWith, requester, Scene, type Stage } from "./stage.ts";

/** Contract 1.8 to 1.11: of racing reports one is committed, and every loser is told by the committed state. */
export function describeRaces(stage: Stage): void {
  it("hands a workload to one of many workers who claim it at all nodes at once", async () => {
    const scene = new Scene(stage);
    const { workloadId } = await scene.admitted();
    await scene.together();
    const calls = Array.from({ length: 12 }, (_, index) => {
      const node = [scene.a, scene.b, scene.c][index % 3] ?? scene.a;
      return node.claim(scene.claimArguments(workloadId, { workerId: `w${index}` }));
    });
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of settled)
      if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "WORKLOAD_NOT_READY" });
    expect((await scene.b.get(workloadId)).fencingToken).toBe(1);
  });

  it("commits one of a completion and a failure that race, and tells the other by the fence", async () => {
    const scene = new Scene(stage);
    for (const first of ["complete", "fail"] as const) {
      const claim = await scene.running();
      await scene.together();
      await scene.cluster.hold(scene.b);
      const report = { ...fenceOf(claim), kind: "bug", error: "broken" };
      if (first === "complete") {
        await scene.a.complete(scene.completeArguments(claim));
        expect(await refusedWith(scene.b.fail(report))).toBe("WORKLOAD_CLAIM_INVALID");
        expect((await scene.b.get(claim.workloadId)).state).toBe("SUCCEEDED");
      } else {
        await scene.a.fail(report);
        expect(await refusedWith(scene.b.complete(scene.completeArguments(claim)))).toBe("WORKLOAD_CLAIM_INVALID");
        expect((await scene.b.get(claim.workloadId)).state).toBe("DEAD_LETTER");
      }
      await scene.cluster.release(scene.b);
    }
  });

  it("lets no recovery overwrite a completion that was committed between its read and its write", async () => {
    const scene = new Scene(stage);
    const claim = await scene.running();
    await scene.together();
    await scene.cluster.hold(scene.b);
    scene.cluster.clock.set(scene.start + LEASE_MS - 1);
    const result = await scene.a.complete(scene.completeArguments(claim));
    scene.cluster.clock.set(scene.start + LEASE_MS);
    expect(await scene.b.recoverExpired()).not.toContain(claim.workloadId);
    const workload = await scene.b.get(claim.workloadId);
    expect(workload.result).toEqual(result);
    expect(eventsOf(workload)).toEqual(["READY", "CLAIMED", "RUNNING", "SUCCEEDED"]);
  });

  it("lets no recovery take a lease that was renewed between its read and its write", async () => {
    const scene = new Scene(stage);
    const claim = await scene.running();
    await scene.together();
    await scene.cluster.hold(scene.b);
    scene.cluster.clock.set(scene.start + LEASE_MS - 1);
    await scene.a.heartbeat({ ...fenceOf(claim), extendMs: LEASE_MS });
    scene.cluster.clock.set(scene.start + LEASE_MS);
    expect(await scene.b.recoverExpired()).not.toContain(claim.workloadId);
    await scene.b.complete(scene.completeArguments(claim));
  });

  it("refuses a late worker whose successor has begun, at every node", async () => {
    const scene = new Scene(stage);
    const late = await scene.running();
    await scene.together();
    await scene.cluster.hold(scene.b);
    scene.cluster.clock.set(scene.start + LEASE_MS);
    expect(await scene.a.recoverExpired()).toContain(late.workloadId);
    const next = await scene.a.claim(scene.claimArguments(late.workloadId, { workerId: "w2", start: true }));
    expect(next.fencingToken).toBe(late.fencingToken + 1);
    const fence = fenceOf(late);
    for (const node of [scene.b, scene.a]) {
      expect(await refusedWith(node.complete(scene.completeArguments(late)))).toBe("WORKLOAD_STALE_FENCE");
      expect(await refusedWith(node.fail({ ...fence, kind: "bug", error: "x" }))).toBe("WORKLOAD_STALE_FENCE");
      expect(await refusedWith(node.checkpoint({ ...fence, state: 1 }))).toBe("WORKLOAD_STALE_FENCE");
      expect(await refusedWith(node.heartbeat({ ...fence, extendMs: LEASE_MS }))).toBe("WORKLOAD_STALE_FENCE");
      expect(await refusedWith(node.executionContext(fence))).toBe("WORKLOAD_STALE_FENCE");
    }
    await scene.b.complete(scene.completeArguments(next));
    const { attempts } = await scene.a.get(late.workloadId);
    expect(attempts.map(({ status }) => status)).toEqual(["WORKER_LOST", "SUCCEEDED"]);
  });

  it("lets a cancellation that was committed first stop a completion", async () => {
    const scene = new Scene(stage);
    const claim = await scene.running();
    await scene.together();
    await scene.cluster.hold(scene.b);
    expect(await scene.a.cancel({ workloadId: claim.workloadId, actor: "olga" })).toEqual({
      state: "CANCELLATION_REQUESTED",
    });
    expect(await refusedWith(scene.b.complete(scene.completeArguments(claim)))).toBe("WORKLOAD_TRANSITION_DENIED");
    expect(await scene.b.heartbeat({ ...fenceOf(claim), extendMs: 5 })).toMatchObject({ cancellationRequested: true });
    expect(await scene.b.confirmCancel(fenceOf(claim))).toEqual({ state: "CANCELLED" });
  });

  it("lets a completion that was committed first refuse a cancellation", async () => {
    const scene = new Scene(stage);
    const claim = await scene.running();
    await scene.together();
    await scene.cluster.hold(scene.b);
    await scene.a.complete(scene.completeArguments(claim));
    const call = scene.b.cancel({ workloadId: claim.workloadId, actor: "olga" });
    expect(await refusedWith(call)).toBe("WORKLOAD_TRANSITION_DENIED");
  });

  it("takes one of an approval and a rejection that race at all nodes", async () => {
    const scene = new Scene(stage);
    const workload = await scene.admitted({ approval: { approverKinds: ["human", "service"] } });
    await scene.together();
    const verdicts = Array.from({ length: 9 }, (_, index) => {
      const node = [scene.a, scene.b, scene.c][index % 3] ?? scene.a;
      const outcome = index % 2 === 0 ? "approved" : "rejected";
      const decider = { kind: "human", id: `h${index}` };
      return node.decide(scene.decideArguments(workload, { decider, outcome, reason: "r" }));
    });
    const settled = await Promise.allSettled(verdicts);
    const { approval, state } = await scene.a.get(workload.workloadId);
    const decided = approval?.decision?.outcome;
    expect(state).toBe(decided === "approved" ? "READY" : "REJECTED");
    const answers = settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    for (const { decision } of answers) expect(decision).toEqual(approval?.decision);
    for (const [index, result] of settled.entries()) {
      const same = (index % 2 === 0 ? "approved" : "rejected") === decided;
      if (result.status === "rejected")
        expect([same, result.reason]).toMatchObject([false, { code: "WORKLOAD_APPROVAL_DECIDED" }]);
      else expect(same).toBe(true);
    }
  });

  it("tells an approver at a node that has not heard of it who decided otherwise, and when", async () => {
    const scene = new Scene(stage);
    const workload = await scene.admitted({ approval: {} });
    await scene.together();
    await scene.cluster.hold(scene.b);
    await scene.a.decide(scene.decideArguments(workload, { outcome: "rejected", reason: "no" }));
    const error = await refusal(
      scene.b.decide(scene.decideArguments(workload, { decider: { kind: "human", id: "bob" } })),
    );
    expect(error).toMatchObject({
      code: "WORKLOAD_APPROVAL_DECIDED",
      details: { outcome: "rejected", decidedBy: { kind: "human", id: "ada" }, decidedAt: scene.start },
    });
    expect(await refusedWith(scene.b.claim(scene.claimArguments(workload.workloadId)))).toBe("WORKLOAD_REJECTED");
    expect(await refusedWith(scene.b.decide(scene.decideArguments(workload, { decider: requester })))).toBe(
      "WORKLOAD_APPROVER_NOT_PERMITTED",
    );
  });

  it("lets an expiry and a heartbeat of the same moment end one way", async () => {
    const scene = new Scene(stage);
    const timeouts = { heartbeatMs: 100 };
    const claim = await scene.running({ timeouts, retryPolicy: { retryOn: [] } });
    await scene.together();
    scene.cluster.clock.set(scene.start + 99);
    await scene.cluster.hold(scene.b);
    await scene.a.heartbeat({ ...fenceOf(claim), extendMs: LEASE_MS });
    scene.cluster.clock.set(scene.start + 100);
    expect(await scene.b.enforceDeadlines()).not.toContain(claim.workloadId);
    expect((await scene.a.get(claim.workloadId)).state).toBe("RUNNING");
    scene.cluster.clock.set(scene.start + 199);
    const late = scene.a.heartbeat({ ...fenceOf(claim), extendMs: LEASE_MS });
    const [passed, beaten] = await Promise.all([scene.c.enforceDeadlines(), refusal(late)]);
    expect(["WORKLOAD_TIMED_OUT", "WORKLOAD_CLAIM_INVALID"]).toContain(beaten.code);
    const told = passed.includes(claim.workloadId) ? 1 : 0;
    expect(told + (beaten.code === "WORKLOAD_TIMED_OUT" ? 1 : 0)).toBeGreaterThanOrEqual(1);
    const { state, history } = await scene.a.get(claim.workloadId);
    expect(state).toBe("DEAD_LETTER");
    expect(history.filter(({ to }) => to === "TIMED_OUT")).toHaveLength(1);
  });

  it("re-arms once when operators at all nodes re-arm at once", async () => {
    const scene = new Scene(stage);
    const claim = await scene.running({ retryPolicy: { maxAttempts: 1 } });
    await scene.a.fail({ ...fenceOf(claim), kind: "bug", error: "x" });
    await scene.together();
    const { workloadId } = claim;
    const settled = await Promise.allSettled(
      [scene.a, scene.b, scene.c].map((node, index) => node.retry({ workloadId, actor: `o${index}` })),
    );
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const { history } = await scene.b.get(workloadId);
    expect(history.filter(({ evidence }) => evidence["retry"] === "operator")).toHaveLength(1);
  });
}
