import { expect, it } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import { Crew, first } from "./crew.ts";
import { fenceOf, LEASE_MS, refusal, type Changes, type Stage } from "./stage.ts";

/** What is answered of several calls at once, and the codes of what is refused. */
async function race<Answer>(
  calls: readonly Promise<Answer>[],
): Promise<{ readonly answers: readonly Answer[]; readonly codes: readonly unknown[] }> {
  const settled = await Promise.allSettled(calls);
  return {
    answers: settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])),
    codes: settled.flatMap((result) =>
      result.status === "rejected" ? [(result.reason as { code: unknown }).code] : [],
    ),
  };
}

/** Contract 2 through several nodes: a worker never holds more than it has room for, and what it holds is known everywhere. */
export function describeWorkers(stage: Stage): void {
  it("registers a worker once, whoever is asked, and lets it work when it was heard", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const request = { ...crew.scope(), name: "n", runtime: "container", version: "1", concurrency: 2 };
    const { answers } = await race([a.registerWorker(request), b.registerWorker(request)]);
    expect(new Set(answers.map(({ created }) => created))).toEqual(new Set([false, true]));
    const [one, two] = answers;
    expect(one?.worker).toEqual(two?.worker);
    const worker = one?.worker;
    assert(worker !== undefined, "it is registered");
    expect(worker).toMatchObject({ lifecycle: "REGISTERED", health: "UNKNOWN", claims: [] });
    expect((await refusal(crew.next(worker))).code).toBe("MESH_PLACEMENT_DENIED");
    expect(await crew.beat(worker, {}, b)).toMatchObject({ lifecycle: "READY", health: "HEALTHY" });
    expect(await crew.next(worker)).toEqual([]);
  });

  it("gives a worker of capacity one a single claim, however many nodes it asks at once", async () => {
    const crew = new Crew(stage);
    const worker = await crew.ready();
    const ids = await crew.admit(6);
    const nodes = crew.scene.cluster.nodes;
    const calls = [...nodes, ...nodes].map((node, index) =>
      index < 3
        ? crew.next(worker, { max: 3 }, node)
        : crew.claim(worker, ids[index] ?? "", node).then((claim) => [claim]),
    );
    const { answers, codes } = await race(calls);
    expect(answers.flat()).toHaveLength(1);
    for (const code of codes) expect(code).toBe("MESH_PLACEMENT_DENIED");
    for (const node of nodes)
      expect(await crew.shown(worker, node)).toMatchObject({
        lifecycle: "BUSY",
        capacity: { concurrency: 1, active: 1 },
      });
  });

  it("gives a worker as much as it has room for in one request, and the same again to its repeat", async () => {
    const crew = new Crew(stage);
    const worker = await crew.ready({ concurrency: 3 });
    await crew.admit(5);
    const claims = await crew.next(worker, { max: 5, requestId: "r1" }, crew.scene.b);
    expect(claims).toHaveLength(3);
    expect(await crew.next(worker, { max: 5, requestId: "r1" }, crew.scene.c)).toEqual(claims);
    expect((await crew.shown(worker)).claims.toSorted()).toEqual(claims.map(({ claimId }) => claimId).sort());
    expect(await crew.next(worker, { max: 5, requestId: "r2" })).toEqual([]);
  });

  it("frees the slot with every end of a claim, in the same commit", async () => {
    const crew = new Crew(stage);
    const { a, b, c, cluster, start } = crew.scene;
    const worker = await crew.ready();
    const [one = "", two = "", three = "", four = "", five = ""] = await crew.admit(5, {
      timeouts: { executionMs: 500_000 },
    });
    const free = async (): Promise<void> => expect((await crew.shown(worker, c)).claims).toEqual([]);
    await b.complete(crew.scene.completeArguments(await crew.claim(worker, one)));
    await free();
    await b.fail({ ...fenceOf(await crew.claim(worker, two, b)), kind: "bug", error: "no" });
    await free();
    const third = await crew.claim(worker, three, c);
    await a.cancel({ workloadId: three, actor: "ada" });
    await b.confirmCancel(fenceOf(third));
    await free();
    await crew.claim(worker, four);
    await a.timeout({ workloadId: four, actor: "ada" });
    await free();
    await crew.claim(worker, five);
    cluster.clock.set(start + LEASE_MS);
    expect(await c.recoverExpired()).toContain(five);
    await free();
  });

  it("lets a worker whose slots are taken wait, and wakes it when one is free", async () => {
    const crew = new Crew(stage);
    const worker = await crew.ready();
    await crew.admit(2);
    const held = first(await crew.next(worker, { start: true }));
    const poll = crew.next(worker, { waitMs: 20_000 }, crew.scene.b);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    await crew.scene.c.complete(crew.scene.completeArguments(held));
    expect(await poll).toHaveLength(1);
  });

  it("keeps a pool's limit over all its workers and nodes", async () => {
    const crew = new Crew(stage);
    const { a, b, c } = crew.scene;
    const workers = [];
    for (const name of ["p1", "p2", "p3"]) workers.push(await crew.ready({ name, concurrency: 4 }));
    const workerIds = workers.map(({ workerId }) => workerId);
    const { poolId } = await a.createPool({ ...crew.scope(), name: "presses", workerIds, maxConcurrency: 2 });
    await crew.admit(6, { placement: { poolId } });
    const [one, two, three] = workers;
    assert(one !== undefined && two !== undefined && three !== undefined, "there are three");
    const { answers } = await race([
      crew.next(one, { max: 4, start: true }, a),
      crew.next(two, { max: 4, start: true }, b),
      crew.next(three, { max: 4, start: true }, c),
    ]);
    const claims = answers.flat();
    expect(claims).toHaveLength(2);
    expect(await crew.next(one, { max: 4 }, c)).toEqual([]);
    const poll = crew.next(three, { max: 4, waitMs: 20_000 }, a);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    await b.complete(crew.scene.completeArguments(first(claims)));
    expect(await poll).toHaveLength(1);
  });

  it("gives a worker only what its labels, kinds and grants allow", async () => {
    const crew = new Crew(stage);
    const worker = await crew.ready({
      concurrency: 9,
      declaredCapabilities: ["gpu"],
      labels: { zone: "north" },
      workloadKinds: ["render", "bake"],
    });
    const [gpu = ""] = await crew.admit(1, { capabilities: ["gpu"], placement: { requiredLabels: { zone: "north" } } });
    await crew.admit(1, { capabilities: ["cpu"] });
    await crew.admit(1, { placement: { requiredLabels: { zone: "south" } } });
    await crew.admit(1, { placement: { antiAffinity: { zone: "north" } } });
    await crew.admit(1, { definitionId: "mail" });
    const claims = await crew.next(worker, { max: 9 });
    expect(claims.map(({ workloadId }) => workloadId)).toEqual([gpu]);
  });

  it("hands nothing out to a worker that drains, and lets it go when its last claim ends", async () => {
    const crew = new Crew(stage);
    const { b, c } = crew.scene;
    const worker = await crew.ready({ concurrency: 2 });
    await crew.admit(3);
    const held = first(await crew.next(worker, { start: true }));
    await crew.scene.cluster.hold(b);
    expect(await c.drainWorker({ ...crew.scope(), workerId: worker.workerId })).toMatchObject({
      lifecycle: "DRAINING",
    });
    // The node has not heard of it: the commit would, and what follows is built on what it is told then.
    expect(await crew.next(worker, {}, b)).toEqual([]);
    await crew.scene.cluster.release(b);
    expect((await refusal(crew.next(worker, {}, b))).code).toBe("MESH_PLACEMENT_DENIED");
    await c.complete(crew.scene.completeArguments(held));
    expect(await crew.shown(worker)).toMatchObject({ lifecycle: "OFFLINE", claims: [] });
    await crew.scene.together();
    expect(await crew.scene.a.detectFailures()).toContain(worker.workerId);
  });

  it("gives out nothing beyond a concurrency that was lowered, also by a node that has not seen it", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const worker = await crew.ready({ concurrency: 3 });
    await crew.admit(4);
    expect(await crew.next(worker, { max: 2 })).toHaveLength(2);
    await crew.scene.together();
    await crew.scene.cluster.hold(b);
    await crew.register({ concurrency: 1 }, a);
    expect(await crew.next(worker, { max: 3 }, b)).toEqual([]);
    expect((await crew.shown(worker)).capacity).toEqual({ concurrency: 1, active: 2 });
  });

  it("takes the claims of a process away when a new one takes its name, and refuses the old one", async () => {
    const crew = new Crew(stage);
    const { b, c } = crew.scene;
    const worker = await crew.ready({ incarnation: "one" });
    const [workloadId = ""] = await crew.admit(1);
    const old = first(await crew.next(worker, { start: true, incarnation: "one" }));
    const reborn = await crew.register({ incarnation: "two" }, b);
    expect(reborn).toMatchObject({ lifecycle: "REGISTERED", claims: [], incarnation: { number: 2 } });
    expect((await c.get(workloadId)).state).toBe("READY");
    expect((await refusal(crew.beat(worker, { incarnation: "one" }, c))).code).toBe("WORKER_SUPERSEDED");
    expect((await refusal(crew.next(worker, { incarnation: "one" }, c))).code).toBe("WORKER_SUPERSEDED");
    expect((await refusal(crew.register({ incarnation: "one" }, c))).code).toBe("WORKER_SUPERSEDED");
    expect((await refusal(b.complete(crew.scene.completeArguments(old)))).code).toBe("WORKLOAD_CLAIM_INVALID");
    await crew.beat(worker, { incarnation: "two" });
    await crew.scene.together();
    expect(first(await crew.next(worker, { incarnation: "two" }, c)).fencingToken).toBe(2);
  });

  it("gives a silent worker up, keeps its leases, and lets it come back by a reconciliation", async () => {
    const crew = new Crew(stage);
    const { a, b, c, cluster, start } = crew.scene;
    const worker = await crew.ready({ concurrency: 2 });
    await crew.admit(1);
    const held = first(await crew.next(worker, { start: true, leaseMs: 500_000 }));
    cluster.clock.set(start + 29_999);
    expect(await b.detectFailures()).not.toContain(worker.workerId);
    cluster.clock.set(start + 30_000);
    const { answers } = await race([a.detectFailures(), b.detectFailures(), c.detectFailures()]);
    expect(answers.flat().filter((workerId) => workerId === worker.workerId)).toHaveLength(1);
    expect(await crew.shown(worker)).toMatchObject({
      lifecycle: "OFFLINE",
      health: "UNHEALTHY",
      claims: [held.claimId],
    });
    expect((await refusal(crew.beat(worker))).code).toBe("WORKER_RECOVERY_REQUIRED");
    const { workerId, version, capabilityVersion } = worker;
    const answer = await b.reconcileWorker({
      ...crew.scope(),
      workerId,
      version,
      capabilityVersion,
      knownClaims: [held.claimId, "claim_gone"],
      runningAttempts: [`attempt_${held.workloadId}_1`, "attempt_workload_gone_1"],
      timestamp: cluster.clock.now(),
    });
    expect(answer).toMatchObject({ fencedClaims: ["claim_gone"], cancelAttempts: ["attempt_workload_gone_1"] });
    expect(answer.authoritativeClaims.map(({ claimId }) => claimId)).toEqual([held.claimId]);
    expect(answer.worker).toMatchObject({ lifecycle: "READY", health: "HEALTHY" });
  });

  it("removes a worker without claims, also from its pools", async () => {
    const crew = new Crew(stage);
    const { a, b, c } = crew.scene;
    const worker = await crew.ready();
    const asked = { ...crew.scope(), workerId: worker.workerId };
    const { poolId } = await b.createPool({ ...crew.scope(), name: "p", workerIds: [worker.workerId] });
    await crew.admit(1);
    const held = first(await crew.next(worker, { start: true }));
    expect((await refusal(c.removeWorker(asked))).code).toBe("WORKER_BUSY");
    await a.complete(crew.scene.completeArguments(held));
    await c.removeWorker(asked);
    expect((await refusal(a.getWorker(asked))).code).toBe("WORKER_NOT_FOUND");
    expect((await refusal(crew.next(worker))).code).toBe("WORKER_NOT_FOUND");
    expect((await a.getPool({ ...crew.scope(), poolId })).workerIds).toEqual([]);
    expect((await a.listWorkers(crew.scope())).workers).toEqual([]);
    expect((await crew.register({}, b)).incarnation.number).toBe(1);
  });

  it("keeps pools by name, and knows their members", async () => {
    const crew = new Crew(stage);
    const { a, b, c } = crew.scene;
    const worker = await crew.ready();
    const request = { ...crew.scope(), name: "p" };
    const { answers, codes } = await race([a.createPool(request), b.createPool(request), c.createPool(request)]);
    expect(codes).toEqual(["WORKER_POOL_EXISTS", "WORKER_POOL_EXISTS"]);
    const poolId = answers[0]?.poolId ?? "";
    const asked = { ...crew.scope(), poolId };
    expect((await b.changePool({ ...asked, add: [worker.workerId] })).workerIds).toEqual([worker.workerId]);
    expect((await refusal(c.changePool({ ...asked, add: ["worker_none"] }))).code).toBe("WORKER_NOT_FOUND");
    expect((await c.listPools(crew.scope())).pools.map((pool) => pool.poolId)).toEqual([poolId]);
    await a.deletePool(asked);
    expect((await refusal(b.getPool(asked))).code).toBe("WORKER_POOL_NOT_FOUND");
  });

  it("names who should run a workload, or why nobody may", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const [workloadId = ""] = await crew.admit(1, { placement: { affinity: { zone: "north" } } });
    const asked = { ...crew.scope(), workloadId };
    expect((await refusal(a.place(asked))).code).toBe("MESH_NO_ELIGIBLE_WORKER");
    expect(await a.explain(workloadId)).toEqual([]);
    const south = await crew.register({ name: "south", labels: { zone: "south" } });
    expect((await b.explain(workloadId)).at(-1)).toMatchObject({
      reason: "worker",
      workers: { eligible: 0, ineligible: 1 },
    });
    await crew.beat(south);
    const north = await crew.ready({ name: "north", labels: { zone: "north" } });
    expect(await b.place(asked)).toMatchObject({ selectedWorker: north.workerId });
    const claim = await b.placeAndClaim({ ...asked, workerId: north.workerId, leaseMs: LEASE_MS });
    expect(claim.executionContextId).toBe(`context_${claim.claimId}`);
    const claimed = (await a.get(workloadId)).history.findLast(({ type }) => type === "workload.claimed");
    expect(claimed?.evidence).toMatchObject({ slot: "0", eligibleCount: "1", eligibleWorkers: north.workerId });
  });

  it("tells a resource whether a claim still counts", async () => {
    const crew = new Crew(stage);
    const { a, b } = crew.scene;
    const worker = await crew.ready({ declaredCapabilities: ["gpu", "net"] });
    const [workloadId = ""] = await crew.admit(1, { capabilities: ["gpu"] });
    const claim = await b.placeAndClaim({
      ...crew.scope(),
      workloadId,
      workerId: worker.workerId,
      leaseMs: LEASE_MS,
      start: true,
    });
    const asked = { ...crew.scope(), ...claim };
    expect(await a.validateClaim(asked)).toEqual({ valid: true });
    const code = async (changes: Changes): Promise<string> =>
      (await refusal(a.validateClaim({ ...asked, ...changes }))).code;
    expect(await code({ fencingToken: 2 })).toBe("MESH_STALE_FENCE");
    expect(await code({ capabilities: ["net"] })).toBe("MESH_CAPABILITY_DENIED");
    const other = await crew.ready({ name: "other" });
    expect(await code({ workerId: other.workerId })).toBe("MESH_CLAIM_SCOPE_DENIED");
    // Work of another tenant is as unknown as work that is not there: nobody learns which of the two it is.
    const denials = [{ tenantId: "other" }, { applicationId: "other" }, { workloadId: "workload_none" }].map(
      (changes) => refusal(a.validateClaim({ ...asked, ...changes })),
    );
    for (const { code: denied, details } of await Promise.all(denials))
      expect({ denied, details }).toEqual({ denied: "MESH_CLAIM_SCOPE_DENIED", details: { fields: ["workloadId"] } });
    await b.complete(crew.scene.completeArguments({ ...claim, claimedAt: 0, lastHeartbeat: 0 }));
    expect(await code({})).toBe("MESH_STALE_FENCE");
    await crew.admit(1);
    const handedOut = first(await crew.next(worker, {}, b));
    expect(await a.validateClaim({ ...crew.scope(), ...handedOut })).toEqual({ valid: true });
  });

  it("names what is wrong with a request", async () => {
    const crew = new Crew(stage);
    const wrong = { ...crew.scope(), name: "n", runtime: "vm", version: "1", concurrency: 1 };
    const refused = await refusal(crew.scene.a.registerWorker(wrong));
    expect(refused).toMatchObject({ code: "WORKER_INVALID", details: { paths: ["runtime"] } });
    expect((await refusal(crew.register({ concurrency: 0 }))).details).toMatchObject({ paths: ["concurrency"] });
  });
}
