import { expect, it } from "vitest";
import type { Claim } from "../../../src/core/workload/record.ts";
import type { WorkerView } from "../../../src/core/worker/worker-view.ts";
import { Crew, first } from "./crew.ts";
import { outcomeOf, refusal, type Stage } from "./stage.ts";

/** Lets what is under way go on by a few steps. */
async function steps(count: number): Promise<void> {
  for (let step = 0; step < count; step++) await Promise.resolve();
}

/** Contract 2 where calls about one worker meet, or where a node decides on slots that it has not seen yet. */
export function describeWorkerRaces(stage: Stage): void {
  it("refuses the request of a superseded process also at a node that has not heard of its successor", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const worker = await crew.ready({ incarnation: "one" });
    await crew.scene.cluster.hold(b);
    await crew.register({ incarnation: "two" }, a);
    expect((await refusal(crew.next(worker, { incarnation: "one" }, b))).code).toBe("WORKER_SUPERSEDED");
  });

  it("loses no registration to a reconciliation that was under way", async () => {
    const crew = new Crew(stage);
    const { b } = crew.scene;
    const worker = await crew.ready({ concurrency: 1 });
    await crew.admit(1);
    await crew.next(worker, { start: true });
    await crew.scene.together();
    const { workerId, version, capabilityVersion } = worker;
    for (let round = 2; round < 30; round++) {
      const timestamp = crew.scene.cluster.clock.now();
      const reconciled = b.reconcileWorker({ ...crew.scope(), workerId, version, capabilityVersion, timestamp });
      await steps(round);
      await crew.register({ concurrency: round }, b);
      await reconciled;
      expect((await crew.shown(worker, b)).capacity.concurrency).toBe(round);
    }
  });

  it("removes no worker with a claim that the node has not seen", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const worker = await crew.ready();
    await crew.admit(1);
    await crew.scene.cluster.hold(b);
    const held = first(await crew.next(worker, { start: true }));
    const asked = { ...crew.scope(), workerId: worker.workerId };
    const { code } = await refusal(b.removeWorker(asked));
    expect(["WORKER_BUSY", "AUTHORITY_NOT_READY"]).toContain(code);
    expect((await crew.shown(worker, a)).claims).toEqual([held.claimId]);
    await crew.scene.together();
    expect((await refusal(b.removeWorker(asked))).code).toBe("WORKER_BUSY");
    await a.complete(crew.scene.completeArguments(held));
    await b.removeWorker(asked);
  });

  it("calls no worker drained whose claims the node has not seen", async () => {
    const crew = new Crew(stage);
    const { a, c } = crew.scene;
    const worker = await crew.ready();
    await crew.admit(1);
    await crew.scene.cluster.hold(c);
    const held = first(await crew.next(worker, { start: true }));
    await c.drainWorker({ ...crew.scope(), workerId: worker.workerId });
    await outcomeOf(crew.beat(worker, {}, c));
    await c.detectFailures();
    expect(await crew.shown(worker, a)).toMatchObject({ lifecycle: "DRAINING", claims: [held.claimId] });
    await crew.scene.together();
    await a.complete(crew.scene.completeArguments(held));
    await crew.scene.together();
    expect(await c.detectFailures()).toContain(worker.workerId);
  });

  it("gives nothing to the poll of a process whose successor has the name", async () => {
    const crew = new Crew(stage);
    const { b } = crew.scene;
    const worker = await crew.ready({ incarnation: "one" });
    const poll = outcomeOf(crew.next(worker, { waitMs: 20_000, incarnation: "one" }));
    await new Promise((resolve) => setImmediate(resolve));
    await crew.register({ incarnation: "two" }, b);
    await crew.beat(worker, { incarnation: "two" }, b);
    await crew.scene.together();
    await crew.admit(1);
    await crew.scene.together();
    const taken = await crew.next(worker, { incarnation: "two" }, b);
    expect(taken).toHaveLength(1);
    expect(await poll).toEqual({ code: "WORKER_SUPERSEDED" });
  });

  it("takes nothing in a pool that was taken away, nor in one whose members or limit have changed unseen", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const worker = await crew.ready({ concurrency: 4 });
    const request = { ...crew.scope(), name: "presses", workerIds: [worker.workerId], maxConcurrency: 2 };
    const { poolId } = await a.createPool(request);
    const ids = await crew.admit(4, { placement: { poolId } });
    await crew.scene.together();
    await crew.scene.cluster.hold(b);
    const asked = { ...crew.scope(), poolId };
    await a.deletePool(asked);
    expect(await crew.next(worker, {}, b)).toEqual([]);
    await a.createPool({ ...request, maxConcurrency: 1 });
    expect(await crew.next(worker, { max: 3 }, a)).toHaveLength(1);
    expect(await crew.next(worker, { max: 3 }, b)).toEqual([]);
    await a.changePool({ ...asked, remove: [worker.workerId] });
    expect((await refusal(crew.claim(worker, ids[3] ?? "", b))).code).toBe("MESH_PLACEMENT_DENIED");
  });

  it("gives what is behind work whose pool has no more room", async () => {
    const crew = new Crew(stage);
    const { a } = crew.scene;
    const worker = await crew.ready({ concurrency: 3 });
    const pool = { ...crew.scope(), name: "presses", workerIds: [worker.workerId], maxConcurrency: 1 };
    const { poolId } = await a.createPool(pool);
    await crew.admit(2, { placement: { poolId }, priority: 9 });
    const [plain = ""] = await crew.admit(1);
    const given = await crew.next(worker, { max: 3 });
    expect(given).toHaveLength(2);
    expect(given.map(({ workloadId }) => workloadId)).toContain(plain);
  });

  it("changes a pool once for one request, whatever others have done to it since", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const { workerId } = await crew.ready();
    const { poolId } = await a.createPool({ ...crew.scope(), name: "presses" });
    const asked = { ...crew.scope(), poolId };
    const add = { ...asked, add: [workerId], requestId: "r1" };
    expect((await a.changePool(add)).workerIds).toEqual([workerId]);
    await b.changePool({ ...asked, remove: [workerId], requestId: "r2" });
    expect((await b.changePool(add)).workerIds).toEqual([]);
    expect((await a.getPool(asked)).workerIds).toEqual([]);
  });

  it("tells no worker that it has no room because of a claim whose end the node has not seen", async () => {
    const crew = new Crew(stage);
    const { a, c } = crew.scene;
    const worker = await crew.ready();
    const ids = await crew.admit(2);
    const held = first(await crew.next(worker, { start: true }));
    const other = ids.find((workloadId) => workloadId !== held.workloadId) ?? "";
    await crew.scene.together();
    await crew.scene.cluster.hold(c);
    await a.complete(crew.scene.completeArguments(held));
    expect((await crew.claim(worker, other, c)).workerId).toBe(worker.workerId);
  });

  it("tells no worker that it has no room because of two claims that it never had at one moment", async () => {
    const crew = new Crew(stage);
    const { a, c, cluster } = crew.scene;
    const worker = await crew.ready({ concurrency: 2 });
    const ids = await crew.admit(4);
    const claims = await crew.next(worker, { start: true, max: 2 });
    const [early, late] = claims.map((claim) => crew.scene.completeArguments(claim));
    await a.complete(early);
    await crew.scene.together();
    await cluster.hold(c);
    // The node still sees this one, and learns of the next when it can't have the slot that it saw free.
    await a.complete(late);
    const [third = "", fourth = ""] = ids.filter((id) => claims.every(({ workloadId }) => workloadId !== id));
    await crew.claim(worker, third, a);
    expect((await crew.claim(worker, fourth, c)).workerId).toBe(worker.workerId);
  });

  it.each(["removeWorker", "recoverWorker"] as const)(
    "refuses no drained worker's %s because of a claim whose end the node has not seen",
    async (call) => {
      const crew = new Crew(stage);
      const { a, c, cluster } = crew.scene;
      const worker = await crew.ready();
      await crew.admit(1);
      const held = first(await crew.next(worker, { start: true }));
      const asked = { ...crew.scope(), workerId: worker.workerId };
      await a.drainWorker(asked);
      await crew.scene.together();
      await cluster.hold(c);
      await a.complete(crew.scene.completeArguments(held));
      expect((await c[call](asked)).workerId).toBe(worker.workerId);
    },
  );

  it("denies no claim by a worker's record that is older than the call, though the work itself is new", async () => {
    const crew = new Crew(stage);
    const { b } = crew.scene;
    const worker = await crew.register();
    await crew.scene.together();
    await crew.scene.cluster.hold(b);
    await crew.beat(worker);
    const { workloadId } = await crew.scene.admitted();
    // A view that stands still can't give out the slots of a record that came after it, and must not say that it knows better.
    expect(await outcomeOf(crew.claim(worker, workloadId, b))).toEqual({ code: "WORKLOAD_CONFLICT" });
    await crew.scene.together();
    expect((await crew.claim(worker, workloadId, b)).workerId).toBe(worker.workerId);
  });

  it("tells no worker to stop a claim that the node has not seen", async () => {
    const crew = new Crew(stage);
    const { c } = crew.scene;
    const worker = await crew.ready();
    await crew.admit(1);
    await crew.scene.cluster.hold(c);
    const held = first(await crew.next(worker, { start: true }));
    const { workerId, version, capabilityVersion } = worker;
    const timestamp = crew.scene.cluster.clock.now();
    const said = { ...crew.scope(), workerId, version, capabilityVersion, timestamp };
    const answer = await c.heartbeatWorker({ ...said, health: "HEALTHY", runningClaims: [held.claimId, "claim_gone"] });
    expect(answer).toMatchObject({ stopClaims: ["claim_gone"], missingClaims: [] });
    expect(await c.reconcileWorker({ ...said, knownClaims: [held.claimId] })).toMatchObject({ fencedClaims: [] });
  });

  it("tells no worker of many slots to stop a claim that the node has not seen, wherever its slot is", async () => {
    const crew = new Crew(stage);
    const { c, cluster } = crew.scene;
    const worker = await crew.ready({ concurrency: 2000 });
    await crew.admit(1);
    await cluster.hold(c);
    const { claimId, workloadId } = first(await crew.next(worker, { start: true }));
    const claimed = (await crew.scene.a.get(workloadId)).history.find(({ to }) => to === "CLAIMED");
    expect(Number(claimed?.evidence["slot"]), "a slot far from the first").toBeGreaterThan(256);
    const { workerId, version, capabilityVersion } = worker;
    const said = { ...crew.scope(), workerId, version, capabilityVersion, timestamp: cluster.clock.now() };
    const answer = await c.heartbeatWorker({ ...said, health: "HEALTHY", runningClaims: [claimId] });
    expect(answer).toMatchObject({ stopClaims: [], missingClaims: [] });
  });

  it.each(["heartbeat", "reconciliation"])(
    "tells a worker whose concurrency was raised unseen to stop none of its claims: %s",
    async (call) => {
      const crew = new Crew(stage);
      const { c, cluster } = crew.scene;
      await crew.ready({ concurrency: 1, incarnation: "one" });
      await crew.admit(6);
      await cluster.hold(c);
      const worker = await crew.register({ concurrency: 6, incarnation: "two" });
      await crew.beat(worker, { incarnation: "two" });
      const claims = await crew.next(worker, { max: 6, start: true, incarnation: "two" });
      const ids = claims.map(({ claimId }) => claimId);
      expect(ids).toHaveLength(6);
      const { workerId, version, capabilityVersion } = worker;
      const timestamp = cluster.clock.now();
      const said = { ...crew.scope(), workerId, version, capabilityVersion, timestamp, incarnation: "two" };
      if (call === "heartbeat") {
        const answer = await c.heartbeatWorker({ ...said, health: "HEALTHY", runningClaims: ids });
        expect(answer).toMatchObject({ stopClaims: [], missingClaims: [] });
      } else expect(await c.reconcileWorker({ ...said, knownClaims: ids })).toMatchObject({ fencedClaims: [] });
    },
  );

  it("leaves a worker open whose removal it refuses for a claim that the node has not seen", async () => {
    const crew = new Crew(stage);
    const { b, cluster } = crew.scene;
    const worker = await crew.ready({ concurrency: 2 });
    await crew.admit(1);
    await cluster.hold(b);
    await crew.next(worker, { start: true });
    await outcomeOf(b.removeWorker({ ...crew.scope(), workerId: worker.workerId }));
    expect((await crew.shown(worker)).lifecycle).toBe("READY");
  });

  it("wakes a worker whose pools or labels changed while it waited, though another of its former kind gets nothing", async () => {
    const crew = new Crew(stage);
    const { a } = crew.scene;
    const description = { name: "changed", concurrency: 3 };
    const idle = await crew.ready({ name: "idle", concurrency: 3 });
    const changed = await crew.ready(description);
    const wait = async (worker: WorkerView): Promise<{ readonly poll: Promise<readonly Claim[]> }> => {
      const poll = crew.next(worker, { waitMs: 20_000 });
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      return { poll };
    };
    const idling = await wait(idle);
    const since = performance.now();
    const pooled = await wait(changed);
    const { poolId } = await a.createPool({ ...crew.scope(), name: "presses", workerIds: [changed.workerId] });
    await crew.admit(1, { placement: { poolId } });
    expect(await pooled.poll).toHaveLength(1);
    const labelled = await wait(changed);
    await crew.register({ ...description, labels: { zone: "north" } });
    await crew.admit(1, { placement: { requiredLabels: { zone: "north" } } });
    expect(await labelled.poll).toHaveLength(1);
    expect(performance.now() - since, "ms until it was woken twice").toBeLessThan(15_000);
    await crew.admit(1);
    expect(await idling.poll).toHaveLength(1);
  });

  it("answers the repeat of a pool's creation whose answer was lost, and of that one alone", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const worker = await crew.ready();
    const request = { ...crew.scope(), name: "presses", workerIds: [worker.workerId], requestId: "r1" };
    const pool = await a.createPool(request);
    expect(await b.createPool(request)).toEqual(pool);
    expect((await refusal(b.createPool({ ...request, requestId: "r2" }))).code).toBe("WORKER_POOL_EXISTS");
    expect((await refusal(b.createPool({ ...request, requestId: undefined }))).code).toBe("WORKER_POOL_EXISTS");
    const { poolId } = pool;
    await a.changePool({ ...crew.scope(), poolId, remove: [worker.workerId], requestId: "r1" });
    expect(await b.createPool(request)).toMatchObject({ poolId, workerIds: [] });
    await a.deletePool({ ...crew.scope(), poolId });
    expect((await b.createPool({ ...request, requestId: "r3" })).workerIds).toEqual([worker.workerId]);
  });

  it("answers the repeat of a drain whose answer was lost, though the worker is OFFLINE by now", async () => {
    const crew = new Crew(stage);
    const { b, c } = crew.scene;
    const worker = await crew.ready();
    const asked = { ...crew.scope(), workerId: worker.workerId };
    await b.drainWorker({ ...asked, requestId: "r1" });
    await b.detectFailures();
    expect((await c.drainWorker({ ...asked, requestId: "r1" })).lifecycle).toBe("OFFLINE");
    expect((await refusal(c.drainWorker({ ...asked, requestId: "r2" }))).code).toBe("WORKER_TRANSITION_DENIED");
  });
}
