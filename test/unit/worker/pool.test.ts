/**
 * Goal: pools as contract 2.2 has them: created once, with members that exist, bounded only where that can be guarded.
 * Method: one request, changed a little in each test.
 */
import { describe, expect, it } from "vitest";
import { sha256Hex } from "../../../src/base/hash.ts";
import {
  decideCreatePool,
  decideDeletePool,
  decidePoolMembers,
  withoutMember,
  type CreatePoolRequest,
  type KnownWorkers,
  type PoolMembersCommand,
} from "../../../src/core/worker/pool.ts";
import type { PoolDecision } from "../../../src/core/worker/decision.ts";
import type { PoolRecord } from "../../../src/core/worker/record.ts";
import { assert } from "../../../src/base/assert.ts";
import { frozen, T0 } from "../core/fixtures.ts";
import { refusalOf, refusedWith } from "./fixtures.ts";

const workers: KnownWorkers = new Map([
  ["w1", { tenantId: "acme", applicationId: "invoices" }],
  ["w2", { tenantId: "acme", applicationId: "invoices" }],
  ["w3", { tenantId: "acme", applicationId: "letters" }],
  ["w4", { tenantId: "other", applicationId: "invoices" }],
]);

const create = (changes: Partial<CreatePoolRequest> = {}, existing?: PoolRecord) =>
  decideCreatePool(
    existing,
    { tenantId: "acme", applicationId: "invoices", name: "fast", workerIds: ["w2", "w1", "w2"], ...changes },
    { workers, now: T0 },
  );

function accepted(decision: PoolDecision<PoolRecord>): PoolRecord {
  assert(decision.ok && decision.record !== undefined, "nothing would be committed");
  expect(decision.answer).toBe(decision.record);
  return frozen(decision.record);
}

describe("creating a pool", () => {
  it("keeps sets in order, and every default", () => {
    expect(
      accepted(create({ capabilities: ["b", "a", "b"], requiredLabels: { zone: "a" }, maxConcurrency: 3 })),
    ).toEqual({
      poolId: `pool_${sha256Hex('["acme","invoices","fast"]').slice(0, 24)}`,
      tenantId: "acme",
      applicationId: "invoices",
      name: "fast",
      capabilities: ["a", "b"],
      requiredLabels: { zone: "a" },
      workerIds: ["w1", "w2"],
      maxConcurrency: 3,
      createdAt: T0,
    });
    expect(accepted(create({ applicationId: undefined, workerIds: undefined }))).toStrictEqual({
      poolId: `pool_${sha256Hex('["acme",null,"fast"]').slice(0, 24)}`,
      tenantId: "acme",
      name: "fast",
      capabilities: [],
      requiredLabels: {},
      workerIds: [],
      createdAt: T0,
    });
  });

  it("is refused when the name is taken, by the same pool too", () => {
    const pool = accepted(create());
    expect(refusalOf(create({}, pool))).toMatchObject({ code: "WORKER_POOL_EXISTS", details: { poolId: pool.poolId } });
  });

  it("is refused with a limit that is none, or that no application's store guards", () => {
    for (const [changes, paths] of [
      [{ maxConcurrency: 0 }, ["maxConcurrency"]],
      [{ maxConcurrency: 2.5 }, ["maxConcurrency"]],
      [{ maxConcurrency: 10_001 }, ["maxConcurrency"]],
      [{ applicationId: undefined, maxConcurrency: 1 }, ["applicationId"]],
      [{ name: " " }, ["name"]],
    ] as const)
      expect(refusalOf(create(changes))).toMatchObject({ code: "WORKER_INVALID", details: { paths } });
  });

  it("is refused with members that do not exist where it looks", () => {
    expect(refusalOf(create({ workerIds: ["w1", "w9", "w3", "w4"] }))).toMatchObject({
      code: "WORKER_NOT_FOUND",
      details: { workerIds: ["w3", "w4", "w9"] },
    });
    expect(accepted(create({ applicationId: undefined, workerIds: ["w1", "w3"] })).workerIds).toEqual(["w1", "w3"]);
    expect(refusedWith(create({ applicationId: undefined, workerIds: ["w4"] }))).toBe("WORKER_NOT_FOUND");
  });

  it("looks at values, then at the name, then at the members", () => {
    const pool = accepted(create());
    expect(refusedWith(create({ maxConcurrency: 0, workerIds: ["w9"] }, pool))).toBe("WORKER_INVALID");
    expect(refusedWith(create({ workerIds: ["w9"] }, pool))).toBe("WORKER_POOL_EXISTS");
  });
});

describe("the members of a pool", () => {
  const pool = accepted(create({ workerIds: ["w1"] }));
  const change = (command: PoolMembersCommand) => decidePoolMembers(pool, command, workers);

  it("come and go in one command", () => {
    expect(accepted(change({ add: ["w2"], remove: ["w1"] }))).toEqual({ ...pool, workerIds: ["w2"] });
  });

  it("are left as they are when the command changes nothing", () => {
    for (const command of [{}, { add: ["w1", "w1"] }, { remove: ["w2", "w9"] }])
      expect(change(command)).toEqual({ ok: true, answer: pool });
  });

  it("must exist to be added, and need not to be taken out", () => {
    expect(refusalOf(change({ add: ["w2", "w4"] })).details).toEqual({ workerIds: ["w4"] });
    expect(change({ remove: ["w9"] }).ok).toBe(true);
  });

  it("are not both added and taken out", () => {
    expect(refusalOf(change({ add: ["w2"], remove: ["w2"] }))).toMatchObject({
      code: "WORKER_INVALID",
      details: { paths: ["remove"] },
    });
  });

  it("leave when they are removed from the registry", () => {
    expect(withoutMember(pool, "w1")).toEqual({ ...pool, workerIds: [] });
    expect(withoutMember(pool, "w2")).toBeUndefined();
  });
});

it("a pool is deleted whoever is in it", () => {
  const pool = accepted(create({ maxConcurrency: 1 }));
  expect(decideDeletePool(pool)).toEqual({ ok: true, answer: pool });
});
