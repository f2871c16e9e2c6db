import { expect, it } from "vitest";
import type { Authority } from "../../../src/testing.ts";
import { fenceOf, LEASE_MS, refusal, refusedWith, Scene, type Changes, type Stage } from "./stage.ts";

/** Contract 1.13, and what a restart must not change. */
export function describeReading(stage: Stage): void {
  const pages = async (scene: Scene, filter: Changes): Promise<readonly string[][]> => {
    const found: string[][] = [];
    let cursor: string | undefined;
    do {
      const page = await scene.b.list({
        tenantId: scene.tenantId,
        ...filter,
        ...(cursor === undefined ? {} : { cursor }),
      });
      found.push(page.workloads.map(({ workloadId }) => workloadId));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  };

  it("lists by priority and age in pages that leave nothing out and nothing twice", async () => {
    const scene = new Scene(stage);
    const ids: { readonly workloadId: string; readonly priority: number; readonly createdAt: number }[] = [];
    for (let index = 0; index < 23; index++) {
      scene.cluster.clock.set(scene.start + (index % 5));
      ids.push(await scene.admitted({ priority: index % 3 }));
    }
    const sorted = [...ids].sort(
      (left, right) =>
        right.priority - left.priority ||
        left.createdAt - right.createdAt ||
        (left.workloadId < right.workloadId ? -1 : 1),
    );
    const wanted = sorted.map(({ workloadId }) => workloadId);
    for (const limit of [1, 4, 23, 100]) {
      const found = await pages(scene, { limit });
      expect(found.flat()).toEqual(wanted);
      for (const page of found) expect(page.length).toBeLessThanOrEqual(limit);
    }
  });

  it("filters by state, definition, requester, worker, application and time", async () => {
    const scene = new Scene(stage);
    const { tenantId } = scene;
    const plain = await scene.admitted({ definitionId: "one" });
    const other = { kind: "human", id: "otto" };
    const authorization = { grantId: "g", issuer: "i", subject: other, tenantId, applicationId: scene.applicationId };
    scene.cluster.clock.set(scene.start + 10);
    const second = await scene.admitted({ definitionId: "two", requestedBy: other, authorization });
    await scene.a.claim(scene.claimArguments(second.workloadId, { workerId: "w9" }));
    const found = async (filter: Changes): Promise<readonly string[]> => (await pages(scene, filter)).flat();
    const one = [plain.workloadId];
    const two = [second.workloadId];
    expect(await found({ state: "READY" })).toEqual(one);
    expect(await found({ state: ["CLAIMED", "RUNNING"] })).toEqual(two);
    expect(await found({ definitionId: "one" })).toEqual(one);
    expect(await found({ requestedBy: other })).toEqual(two);
    expect(await found({ workerId: "w9" })).toEqual(two);
    expect(await found({ createdFrom: scene.start + 10 })).toEqual(two);
    expect(await found({ createdTo: scene.start + 10 })).toEqual(one);
    expect(await found({ applicationId: "else" })).toEqual([]);
    expect(await found({ applicationId: scene.applicationId })).toEqual([...one, ...two]);
  });

  it("lists what was acknowledged by another node before it was asked", async () => {
    const scene = new Scene(stage);
    const { tenantId } = scene;
    for (let round = 1; round <= 10; round++) {
      await scene.a.admit(scene.request());
      expect((await scene.b.list({ tenantId })).workloads).toHaveLength(round);
    }
  });

  it("refuses a cursor that was never answered, and a filter that is none", async () => {
    const scene = new Scene(stage);
    for (const filter of [{ cursor: "x" }, { limit: 0 }, { limit: 1001 }, { state: "WAITING" }, { tenant: "x" }])
      expect(await refusedWith(scene.a.list(filter))).toBe("WORKLOAD_INVALID");
  });

  it("shows nothing across tenants, even to who knows the id, when the call is bound to a scope", async () => {
    const scene = new Scene(stage);
    const other = new Scene(stage);
    const { workloadId } = await scene.admitted();
    const { tenantId, applicationId } = other;
    const scope = { scope: { tenantId, applicationId } };
    expect(await refusedWith(scene.b.call("get", { workloadId }, scope))).toBe("WORKLOAD_NOT_FOUND");
    expect(await refusedWith(scene.b.call("cancel", { workloadId, actor: "x" }, scope))).toBe("WORKLOAD_NOT_FOUND");
    expect(await refusedWith(scene.b.call("explain", { workloadId }, scope))).toBe("WORKLOAD_NOT_FOUND");
    const listed = await scene.b.call("list", { tenantId: scene.tenantId }, scope);
    expect(listed.answer.workloads).toEqual([]);
  });

  it("takes no dependency of another application for fulfilled", async () => {
    const scene = new Scene(stage);
    const other = new Scene(stage);
    const done = await other.running();
    await other.a.complete(other.completeArguments(done));
    const { workloadId } = await scene.admitted({ dependencies: [{ workloadId: done.workloadId }] });
    expect(await refusal(scene.b.claim(scene.claimArguments(workloadId)))).toMatchObject({
      code: "WORKLOAD_DEPENDENCY_PENDING",
      details: { dependencies: [{ workloadId: done.workloadId, requiredState: "SUCCEEDED" }] },
    });
  });

  it("says that a workload does not exist, by every call", async () => {
    const { a } = new Scene(stage);
    const workloadId = "workload_000000000000000000000000";
    const fence = { workloadId, claimId: "c", workerId: "w", fencingToken: 1 };
    const calls = [
      a.get(workloadId),
      a.explain(workloadId),
      a.claim({ workloadId, workerId: "w", leaseMs: 1 }),
      a.start(fence),
      a.heartbeat({ ...fence, extendMs: 1 }),
      a.executionContext(fence),
      a.checkpoint({ ...fence, state: 1 }),
      a.complete({ ...fence, output: 1 }),
      a.fail({ ...fence, kind: "k", error: "e" }),
      a.confirmCancel(fence),
      a.cancel({ workloadId, actor: "x" }),
      a.timeout({ workloadId, actor: "x" }),
      a.retry({ workloadId, actor: "x" }),
      a.decide({ workloadId, decider: { kind: "human", id: "h" }, outcome: "approved", grantId: "g", inputHash: "x" }),
    ];
    for (const call of calls) expect(await refusedWith(call)).toBe("WORKLOAD_NOT_FOUND");
  });

  it("finds a workload that its view has never heard of", async () => {
    const scene = new Scene(stage);
    await scene.cluster.hold(scene.b);
    const { workloadId } = await scene.admitted();
    expect((await scene.b.get(workloadId)).workloadId).toBe(workloadId);
    expect(await scene.b.explain(workloadId)).toEqual([]);
    const claim = await scene.b.claim(scene.claimArguments(workloadId, { start: true }));
    await scene.b.complete(scene.completeArguments(claim));
  });

  it("explains everything that keeps work from running", async () => {
    const scene = new Scene(stage);
    const first = await scene.admitted();
    const workload = await scene.admitted({
      approval: {},
      notBefore: scene.start + 10,
      dependencies: [{ workloadId: first.workloadId }],
    });
    const { workloadId } = workload;
    const reasons = async (): Promise<readonly string[]> =>
      (await scene.b.explain(workloadId)).map(({ reason }) => reason);
    expect(await reasons()).toEqual(["approval", "time", "dependency"]);
    await scene.a.decide(scene.decideArguments(workload));
    expect(await reasons()).toEqual(["time", "dependency"]);
    scene.cluster.clock.set(scene.start + 10);
    expect(await reasons()).toEqual(["dependency"]);
    const claim = await scene.a.claim(scene.claimArguments(first.workloadId, { start: true }));
    await scene.a.complete(scene.completeArguments(claim));
    expect(await reasons()).toEqual([]);
    await scene.a.claim(scene.claimArguments(workloadId));
    expect(await reasons()).toEqual(["state"]);
  });

  it("renews many claims in one call, each answered on its own", async () => {
    const scene = new Scene(stage);
    const [one, two] = [await scene.running(), await scene.running()];
    await scene.a.complete(scene.completeArguments(two));
    const answers = await scene.b.heartbeatMany([
      { ...fenceOf(one), extendMs: 2 * LEASE_MS },
      { ...fenceOf(two), extendMs: LEASE_MS },
      { extendMs: 3 },
    ]);
    expect(answers).toMatchObject([
      { ok: true, claim: { expiresAt: scene.start + 2 * LEASE_MS }, cancellationRequested: false },
      { ok: false, error: { code: "WORKLOAD_CLAIM_INVALID" } },
      { ok: false, error: { code: "WORKLOAD_INVALID" } },
    ]);
  });

  it("is the same after a restart from the store alone", async () => {
    const scene = new Scene(stage);
    const { tenantId } = scene;
    const done = await scene.running();
    await scene.a.complete(scene.completeArguments(done));
    await scene.running({ priority: 3 });
    await scene.admitted({ approval: {} });
    await scene.admitted({ dependencies: [{ workloadId: done.workloadId }], notBefore: scene.start + 5 });
    const before = await scene.b.list({ tenantId });
    await scene.cluster.restart(scene.b);
    expect(await scene.b.list({ tenantId })).toEqual(before);
    expect(await scene.a.list({ tenantId })).toEqual(before);
    const countsOf = (node: Authority): ReadonlyMap<string, number> =>
      new Map([...node.counts()].filter(([, count]) => count > 0));
    expect(countsOf(scene.b)).toEqual(countsOf(scene.a));
    scene.cluster.clock.set(scene.start + 5);
    expect(await scene.b.claimNext(scene.nextArguments())).toHaveLength(1);
  });
}
