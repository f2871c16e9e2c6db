import { expect, it } from "vitest";
import { fenceOf, LEASE_MS, refusedWith, Scene, type Stage } from "./stage.ts";

/** Contract 5.3 and 6.3: repeating a request with its requestId gives the same answer, at whichever node, never a second effect. */
export function describeRepeats(stage: Stage): void {
  it("claims once for a repeated request, and hands the same claim out again", async () => {
    const scene = new Scene(stage);
    const { workloadId } = await scene.admitted();
    await scene.together();
    await scene.cluster.hold(scene.b);
    const call = scene.claimArguments(workloadId, { requestId: "r1", start: true });
    const claim = await scene.a.claim(call);
    for (const node of [scene.b, scene.c, scene.a]) expect(await node.claim(call)).toEqual(claim);
    expect((await scene.c.get(workloadId)).attempts).toHaveLength(1);
    expect(await refusedWith(scene.b.claim({ ...call, requestId: "r2" }))).toBe("WORKLOAD_NOT_READY");
  });

  it("never claims again for a request whose claim was lost meanwhile", async () => {
    const scene = new Scene(stage);
    const { workloadId } = await scene.admitted();
    const call = scene.claimArguments(workloadId, { requestId: "r1" });
    await scene.a.claim(call);
    scene.cluster.clock.set(scene.start + LEASE_MS);
    expect(await scene.a.recoverExpired()).toContain(workloadId);
    for (const node of [scene.a, scene.b]) expect(await refusedWith(node.claim(call))).toBe("WORKLOAD_CLAIM_INVALID");
    expect((await scene.c.get(workloadId)).fencingToken).toBe(1);
  });

  it("claims once when the same request comes to all nodes at once", async () => {
    const scene = new Scene(stage);
    const { workloadId } = await scene.admitted();
    await scene.together();
    const call = scene.claimArguments(workloadId, { requestId: "r1" });
    const claims = await Promise.all([scene.a, scene.b, scene.c, scene.a].map((node) => node.claim(call)));
    for (const claim of claims) expect(claim).toEqual(claims[0]);
    expect((await scene.a.get(workloadId)).fencingToken).toBe(1);
  });

  it("takes the requestIds of two workers, and of two calls, for different requests", async () => {
    const scene = new Scene(stage);
    const claim = await scene.claimed({}, { requestId: "r1" });
    const { workloadId } = claim;
    const other = scene.claimArguments(workloadId, { workerId: "w2", requestId: "r1" });
    expect(await refusedWith(scene.b.claim(other))).toBe("WORKLOAD_NOT_READY");
    await scene.b.start({ ...fenceOf(claim), requestId: "r1" });
    expect((await scene.a.get(workloadId)).state).toBe("RUNNING");
  });

  it("takes the requestIds of two operators for different requests", async () => {
    const scene = new Scene(stage);
    const claim = await scene.running({ retryPolicy: { maxAttempts: 1, retryOn: [] } });
    const { workloadId } = claim;
    await scene.a.fail({ ...fenceOf(claim), kind: "bug", error: "x" });
    expect(await scene.a.retry({ workloadId, actor: "olga", requestId: "1" })).toEqual({ state: "READY" });
    expect(await refusedWith(scene.b.retry({ workloadId, actor: "otto", requestId: "1" }))).toBe(
      "WORKLOAD_TRANSITION_DENIED",
    );
    expect(await scene.b.retry({ workloadId, actor: "olga", requestId: "1" })).toEqual({ state: "READY" });
  });

  it("starts, renews and checkpoints once for repeated requests", async () => {
    const scene = new Scene(stage);
    const claim = await scene.claimed();
    const fence = fenceOf(claim);
    const requestId = "r1";
    await scene.together();
    await scene.cluster.hold(scene.b);
    const started = await scene.a.start({ ...fence, requestId });
    expect(await scene.b.start({ ...fence, requestId })).toEqual(started);
    expect(await refusedWith(scene.b.start(fence))).toBe("WORKLOAD_TRANSITION_DENIED");
    const beat = await scene.a.heartbeat({ ...fence, extendMs: 500, requestId });
    scene.cluster.clock.set(scene.start + 100);
    expect(await scene.b.heartbeat({ ...fence, extendMs: 500, requestId })).toEqual(beat);
    const call = { ...fence, state: { page: 1 }, requestId };
    const checkpoint = await scene.a.checkpoint(call);
    for (const node of [scene.b, scene.c]) expect(await node.checkpoint(call)).toEqual(checkpoint);
    expect(await scene.b.checkpoint({ ...call, requestId: "r2" })).toMatchObject({ sequence: 2 });
    expect((await scene.c.get(claim.workloadId)).checkpoints).toHaveLength(2);
  });

  it("completes once for a repeated request, with and without a requestId", async () => {
    const scene = new Scene(stage);
    for (const changes of [{ requestId: "r1" }, {}, { resultId: `mine-${scene.tenantId}` }]) {
      const claim = await scene.running();
      await scene.together();
      await scene.cluster.hold(scene.b);
      const call = scene.completeArguments(claim, changes);
      const result = await scene.a.complete(call);
      for (const node of [scene.b, scene.c, scene.a]) expect(await node.complete(call)).toEqual(result);
      const other = { ...call, output: { pages: 4 } };
      expect(await refusedWith(scene.b.complete(other))).toBe("WORKLOAD_RESULT_CONFLICT");
      await scene.cluster.release(scene.b);
    }
  });

  it("fails once for a repeated report, with and without a requestId", async () => {
    const scene = new Scene(stage);
    for (const changes of [{ requestId: "r1" }, {}]) {
      const claim = await scene.running();
      await scene.together();
      await scene.cluster.hold(scene.b);
      const report = { ...fenceOf(claim), kind: "timeout", error: "too slow", ...changes };
      expect(await scene.a.fail(report)).toEqual({ state: "READY" });
      for (const node of [scene.b, scene.c]) expect(await node.fail(report)).toEqual({ state: "READY" });
      expect(await scene.a.get(claim.workloadId)).toMatchObject({ retryCount: 1, attemptCount: 1 });
      await scene.cluster.release(scene.b);
    }
  });

  it("cancels, times out, re-arms and confirms once for repeated requests", async () => {
    const scene = new Scene(stage);
    const requestId = "r1";
    const first = await scene.running();
    const second = await scene.running({ retryPolicy: { retryOn: [] } });
    await scene.together();
    await scene.cluster.hold(scene.b);
    const cancel = { workloadId: first.workloadId, actor: "olga", requestId };
    expect(await scene.a.cancel(cancel)).toEqual({ state: "CANCELLATION_REQUESTED" });
    const confirm = { ...fenceOf(first), requestId };
    expect(await scene.a.confirmCancel(confirm)).toEqual({ state: "CANCELLED" });
    expect(await scene.b.confirmCancel(confirm)).toEqual({ state: "CANCELLED" });
    expect(await scene.b.cancel(cancel)).toEqual({ state: "CANCELLATION_REQUESTED" });
    const operate = { workloadId: second.workloadId, actor: "olga", requestId };
    expect(await scene.a.timeout(operate)).toEqual({ state: "DEAD_LETTER" });
    expect(await scene.b.timeout(operate)).toEqual({ state: "DEAD_LETTER" });
    expect(await scene.a.retry(operate)).toEqual({ state: "READY" });
    expect(await scene.b.retry(operate)).toEqual({ state: "READY" });
    expect(await scene.c.timeout(operate)).toEqual({ state: "DEAD_LETTER" });
    const { history } = await scene.c.get(second.workloadId);
    expect(history.map(({ to }) => to)).toEqual(["READY", "CLAIMED", "RUNNING", "TIMED_OUT", "DEAD_LETTER", "READY"]);
  });

  it("decides once for a repeated request", async () => {
    const scene = new Scene(stage);
    const workload = await scene.admitted({ approval: {} });
    await scene.together();
    await scene.cluster.hold(scene.b);
    const call = scene.decideArguments(workload, { requestId: "r1" });
    const { decision } = await scene.a.decide(call);
    for (const node of [scene.b, scene.c]) expect((await node.decide(call)).decision).toEqual(decision);
    expect((await scene.c.get(workload.workloadId)).history).toHaveLength(2);
  });

  it("takes one helping for a claimNext request that comes to all nodes, again and again", async () => {
    const scene = new Scene(stage);
    for (let index = 0; index < 6; index++) await scene.admitted();
    await scene.together();
    const call = scene.nextArguments({ max: 2, requestId: "r1" });
    const all = await Promise.all([scene.a, scene.b, scene.c].map((node) => node.claimNext(call)));
    for (const claims of all) expect(claims).toEqual(all[0]);
    expect(all[0]).toHaveLength(2);
    for (const node of [scene.c, scene.b]) expect(await node.claimNext(call)).toEqual(all[0]);
    expect(await scene.b.claimNext({ ...call, requestId: "r2" })).toHaveLength(2);
    const { tenantId } = scene;
    expect((await scene.a.list({ tenantId, state: "CLAIMED" })).workloads).toHaveLength(4);
  });

  it("answers a repeated claimNext at a node whose view offers nothing, or something that is not to be had", async () => {
    const scene = new Scene(stage);
    await scene.admitted();
    await scene.together();
    await scene.cluster.hold(scene.b);
    const call = scene.nextArguments({ requestId: "r1" });
    const claims = await scene.a.claimNext(call);
    expect(claims).toHaveLength(1);
    expect(await scene.b.claimNext(call)).toEqual(claims);
    const late = scene.nextArguments({ requestId: "r2" });
    await scene.a.admit(scene.request());
    const taken = await scene.a.claimNext(late);
    expect(await scene.b.claimNext(late)).toEqual(taken);
    scene.cluster.clock.set(scene.start + LEASE_MS);
    await scene.a.recoverExpired();
    expect(await refusedWith(scene.a.claimNext(late))).toBe("WORKLOAD_CLAIM_INVALID");
  });

  it("answers a repeat that came while the first try still waited with what the first try took", async () => {
    const scene = new Scene(stage);
    const call = scene.nextArguments({ requestId: "r1", waitMs: 400 });
    const both = Promise.all([scene.a.claimNext(call), scene.b.claimNext(call)]);
    await scene.admitted();
    const [first, second] = await both;
    expect(first).toHaveLength(1);
    expect(second).toEqual(first);
  });
}
