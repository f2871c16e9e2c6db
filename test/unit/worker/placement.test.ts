/**
 * Goal: placement as contract 2.3 has it: who is eligible, who is chosen among them, and what is told about the others.
 * Method: an eligible worker is bent in one place each; then choices between workers that differ in one thing.
 */
import { describe, expect, it } from "vitest";
import { sha256Hex } from "../../../src/base/hash.ts";
import {
  findIneligibility,
  type Ineligibility,
  type PlacementNeed,
  type PoolSeen,
} from "../../../src/core/worker/eligibility.ts";
import {
  denyPlacement,
  evidenceOfPlacement,
  EXPLAINED_WORKERS_MAX,
  explainPlacement,
  place,
  refuseNoWorker,
} from "../../../src/core/worker/placement.ts";
import { normalPlacement, type RequestedPlacement } from "../../../src/core/worker/placement-policy.ts";
import type { PoolRecord, WorkerRecord } from "../../../src/core/worker/record.ts";
import { holdSlot, type WorkerSeen } from "../../../src/core/worker/slots.ts";
import { frozen, T0 } from "../core/fixtures.ts";
import { ready, withClaims } from "./fixtures.ts";

const worker = ready({ labels: { zone: "a", disk: "ssd" }, workloadKinds: ["render"] });

const needOf = (placement: RequestedPlacement = {}, changes: Partial<PlacementNeed> = {}): PlacementNeed =>
  frozen({
    workloadId: "workload_1",
    tenantId: "acme",
    applicationId: "invoices",
    definitionId: "render",
    capabilities: ["cpu"],
    placement: normalPlacement(placement),
    ...changes,
  });

const poolOf = (changes: Partial<PoolRecord> = {}, held = 0): PoolSeen => ({
  record: {
    poolId: "pool_1",
    tenantId: "acme",
    applicationId: "invoices",
    name: "fast",
    capabilities: [],
    requiredLabels: {},
    workerIds: [worker.workerId],
    createdAt: T0,
    ...changes,
  },
  slots: Array.from({ length: held }, (_, index) =>
    holdSlot("pool_1", index, { claimId: `c${index}`, workloadId: "w", workerId: worker.workerId, incarnation: 1 }),
  ),
});

const inPool = needOf({ poolId: "pool_1" });

/** One condition each, in the order in which they are checked: what breaks it, and what is said then. */
const conditions: readonly (readonly [
  Ineligibility["reason"],
  {
    readonly record?: Partial<WorkerRecord>;
    readonly claims?: number;
    readonly need?: PlacementNeed;
    readonly pool?: PoolSeen;
  },
  object,
])[] = [
  ["scope", { record: { tenantId: "other" } }, {}],
  ["scope", { record: { applicationId: "other" } }, {}],
  ["lifecycle", { record: { lifecycle: "DRAINING" } }, { lifecycle: "DRAINING" }],
  ["lifecycle", { record: { lifecycle: "REGISTERED" } }, { lifecycle: "REGISTERED" }],
  ["health", { record: { health: "DEGRADED" } }, { health: "DEGRADED" }],
  ["capacity", { claims: 2 }, { active: 2, concurrency: 2 }],
  ["capabilities", { need: needOf({}, { capabilities: ["cpu", "tpu"] }) }, { missing: ["tpu"] }],
  ["capabilities", { record: { grantedCapabilities: [] } }, { missing: ["cpu"] }],
  ["kind", { need: needOf({}, { definitionId: "mail" }) }, { definitionId: "mail" }],
  ["required_labels", { need: needOf({ requiredLabels: { zone: "b", disk: "ssd" } }) }, { labels: ["zone"] }],
  ["required_labels", { need: needOf({ requiredLabels: { constructor: "x" } }) }, { labels: ["constructor"] }],
  ["anti_affinity", { need: needOf({ antiAffinity: { zone: "a", disk: "hdd" } }) }, { labels: ["zone"] }],
  ["pool_unknown", { need: inPool }, { poolId: "pool_1" }],
  ["pool_unknown", { need: inPool, pool: poolOf({ poolId: "pool_2" }) }, { poolId: "pool_1" }],
  ["pool_unknown", { need: inPool, pool: poolOf({ tenantId: "other" }) }, { poolId: "pool_1" }],
  ["pool_unknown", { need: inPool, pool: poolOf({ applicationId: "other" }) }, { poolId: "pool_1" }],
  ["pool_member", { need: inPool, pool: poolOf({ workerIds: ["worker_x"] }) }, { poolId: "pool_1" }],
  ["pool_capabilities", { need: inPool, pool: poolOf({ capabilities: ["gpu", "tpu"] }) }, { missing: ["tpu"] }],
  ["pool_labels", { need: inPool, pool: poolOf({ requiredLabels: { zone: "b" } }) }, { labels: ["zone"] }],
  ["pool_capacity", { need: inPool, pool: poolOf({ maxConcurrency: 2 }, 2) }, { active: 2, maxConcurrency: 2 }],
];

function judge(...bends: readonly (typeof conditions)[number][1][]): Ineligibility | undefined {
  const all = Object.assign({}, ...bends) as (typeof conditions)[number][1];
  const record = { ...worker, ...Object.assign({}, ...bends.map((bend) => bend.record)) };
  const claims = Array.from({ length: all.claims ?? 0 }, (_, index) => `claim_${index}`);
  return findIneligibility(withClaims(record, ...claims), all.need ?? needOf(), all.pool);
}

describe("a worker", () => {
  it("is eligible when it meets all that is asked", () => {
    expect(judge({})).toBeUndefined();
    expect(judge({ claims: 1 })).toBeUndefined();
    expect(judge({ need: inPool, pool: poolOf({ maxConcurrency: 2, capabilities: ["gpu"] }, 1) })).toBeUndefined();
    expect(judge({ need: inPool, pool: poolOf({ requiredLabels: { zone: "a" } }) })).toBeUndefined();
    expect(judge({ record: { workloadKinds: [] }, need: needOf({}, { definitionId: "mail" }) })).toBeUndefined();
    expect(
      judge({ need: needOf({ requiredLabels: { zone: "a" }, antiAffinity: { zone: "b", gone: "x" } }) }),
    ).toBeUndefined();
    expect(judge({ need: needOf({ affinity: { zone: "b" } }) })).toBeUndefined();
    const { applicationId: _none, ...ofTenant } = poolOf().record;
    expect(judge({ need: inPool, pool: { record: ofTenant, slots: [] } })).toBeUndefined();
  });

  for (const [reason, bend, details] of conditions)
    it(`is ineligible for ${reason} (${JSON.stringify(details)})`, () => {
      const found = judge(bend);
      expect(found).toEqual({ reason, ...details, message: expect.stringMatching(/^(it|its|there|\d)/) });
    });

  it("is told the first condition that fails, in the order of the contract", () => {
    for (const [place, [earlier, first]] of conditions.entries())
      for (const [later, second] of conditions.slice(place + 1)) {
        const clash = first.need !== undefined && second.need !== undefined;
        if (later === earlier || clash) continue;
        expect([later, judge(second, first)?.reason]).toEqual([later, earlier]);
      }
  });

  it("takes nothing from a pool that the workload does not name", () => {
    expect(judge({ pool: poolOf({ workerIds: [] }) })).toBeUndefined();
  });

  it("does not get work while claims beyond a lowered concurrency take its room", () => {
    const seen = withClaims({ ...worker, concurrency: 1 }, undefined, undefined, "c");
    expect(findIneligibility(seen, needOf(), undefined)?.reason).toBe("capacity");
  });
});

const named = (name: string, changes: Partial<WorkerRecord> = {}, claims = 0): WorkerSeen =>
  withClaims(
    { ...worker, workerId: `worker_${name}`, ...changes },
    ...Array.from({ length: claims }, (_, index) => `${name}_${index}`),
  );

describe("the choice", () => {
  const choose = (need: PlacementNeed, ...candidates: readonly WorkerSeen[]) =>
    place(need, candidates, { evaluatedAt: T0 });

  it("falls on the most affinity labels, then the least active, then the most concurrency, then the id", () => {
    const near = named("d", { labels: { zone: "a", disk: "hdd", rack: "7" }, concurrency: 4 }, 3);
    const idle = named("c", { concurrency: 2 });
    const wide = named("b", { concurrency: 9 });
    const need = needOf({ affinity: { zone: "a", rack: "7" } });
    expect(choose(need, idle, wide, near).selectedWorker).toBe("worker_d");
    expect(choose(needOf(), named("a", { concurrency: 50 }, 1), idle, near).selectedWorker).toBe("worker_c");
    expect(choose(needOf(), idle, wide).selectedWorker).toBe("worker_b");
    expect(choose(needOf(), idle, named("a")).selectedWorker).toBe("worker_a");
  });

  it("never falls on a worker that is not eligible, however well it would fit", () => {
    const sick = named("a", { health: "UNHEALTHY", labels: { zone: "z" } });
    const decision = choose(needOf({ affinity: { zone: "z" } }), sick, named("b"));
    expect([decision.selectedWorker, decision.eligibleWorkers]).toEqual(["worker_b", ["worker_b"]]);
  });

  it("is the same whatever the order of the candidates, and has an id of its inputs", () => {
    const candidates = [named("c"), named("a", {}, 1), named("b")];
    const decision = choose(needOf(), ...candidates);
    expect(choose(needOf(), ...candidates.toReversed())).toEqual(decision);
    const text = JSON.stringify(["workload_1", T0, "worker_b", "worker_a", "worker_b", "worker_c"]);
    expect(decision).toEqual({
      decisionId: `placement_${sha256Hex(text).slice(0, 20)}`,
      workloadId: "workload_1",
      eligibleWorkers: ["worker_a", "worker_b", "worker_c"],
      selectedWorker: "worker_b",
      reason: "best of 3: 0 affinity labels, 0 of 2 active",
      evaluatedAt: T0,
    });
    expect(place(needOf(), candidates, { evaluatedAt: T0 + 1 }).decisionId).not.toBe(decision.decisionId);
  });

  it("falls on nobody when nobody is eligible", () => {
    const decision = choose(needOf(), named("a", { health: "UNKNOWN" }));
    const text = JSON.stringify(["workload_1", T0, null]);
    expect(decision).toStrictEqual({
      decisionId: `placement_${sha256Hex(text).slice(0, 20)}`,
      workloadId: "workload_1",
      eligibleWorkers: [],
      reason: "none of 1 workers is eligible",
      evaluatedAt: T0,
    });
    expect(choose(needOf()).selectedWorker).toBeUndefined();
  });

  it("asks the pool too", () => {
    const pool = poolOf({ workerIds: ["worker_b"] });
    expect(place(inPool, [named("a"), named("b")], { pool, evaluatedAt: T0 }).selectedWorker).toBe("worker_b");
  });

  it("is bounded as evidence, however many workers there are", () => {
    const many = Array.from({ length: 50 }, (_, index) => named(`w${100 + index}`));
    const decision = choose(needOf(), ...many);
    const evidence = evidenceOfPlacement(decision);
    expect(evidence).toMatchObject({ placement: decision.decisionId, eligibleCount: "50", evaluatedAt: String(T0) });
    expect(evidence["eligibleWorkers"]?.split(" ")).toHaveLength(EXPLAINED_WORKERS_MAX);
  });
});

describe("an explanation", () => {
  it("says of each worker why not, those that could first", () => {
    const explanation = explainPlacement(
      needOf(),
      [named("c", { health: "UNKNOWN" }), named("b", {}, 2), named("d")],
      undefined,
    );
    expect(explanation).toMatchObject({
      eligible: 1,
      ineligible: 2,
      workers: [
        { workerId: "worker_d" },
        { workerId: "worker_b", ineligible: { reason: "capacity" } },
        { workerId: "worker_c", ineligible: { reason: "health" } },
      ],
    });
    expect(explanation.workers[0]).not.toHaveProperty("ineligible");
  });

  it("is bounded, and counts what it leaves out", () => {
    const many = Array.from({ length: 50 }, (_, index) => named(`w${index}`, { health: "UNKNOWN" }));
    const explanation = explainPlacement(needOf(), many, undefined);
    expect([explanation.workers.length, explanation.ineligible]).toEqual([EXPLAINED_WORKERS_MAX, 50]);
  });

  it("becomes the refusal when nobody may run the workload", () => {
    const refusal = refuseNoWorker(explainPlacement(needOf(), [named("a", { health: "UNKNOWN" })], undefined));
    expect(refusal).toMatchObject({
      code: "MESH_NO_ELIGIBLE_WORKER",
      details: {
        ineligible: 1,
        workers: [{ workerId: "worker_a", ineligible: { reason: "health", health: "UNKNOWN" } }],
      },
    });
  });

  it("has one worker's reason when that one was named", () => {
    const ineligible = judge({ claims: 2 });
    expect(ineligible && denyPlacement("worker_a", ineligible)).toEqual({
      code: "MESH_PLACEMENT_DENIED",
      message: "worker_a may not run the workload: 2 of its 2 slots are taken",
      details: { workerId: "worker_a", ineligible },
    });
  });
});

describe("a placement policy", () => {
  it("has every part once it asks for anything, and is none otherwise", () => {
    expect(normalPlacement({ affinity: { zone: "a" } })).toStrictEqual({
      requiredLabels: {},
      affinity: { zone: "a" },
      antiAffinity: {},
    });
    for (const empty of [undefined, {}, { requiredLabels: {}, affinity: {}, antiAffinity: {}, poolId: undefined }])
      expect(normalPlacement(empty)).toBeUndefined();
    expect(normalPlacement({ poolId: "p" })?.poolId).toBe("p");
  });
});
