/**
 * Goal: registration as contract 2.2 has it, and what a process start changes (incarnations).
 * Method: one request, changed a little in each test, on no record and on records that earlier requests made.
 */
import { describe, expect, it } from "vitest";
import { sha256Hex } from "../../../src/base/hash.ts";
import { decideOffline } from "../../../src/core/worker/liveness.ts";
import type { WorkerRecord } from "../../../src/core/worker/record.ts";
import type { RegisterRequest } from "../../../src/core/worker/registration.ts";
import { decideDrain } from "../../../src/core/worker/operate-worker.ts";
import { supersededSlots } from "../../../src/core/worker/slots.ts";
import { T0 } from "../core/fixtures.ts";
import {
  accepted,
  answerOf,
  grantOf,
  ready,
  refusalOf,
  refusedWith,
  register,
  registered,
  withClaims,
} from "./fixtures.ts";

describe("a worker that registers for the first time", () => {
  it("is REGISTERED with health UNKNOWN and every default applied", () => {
    const decision = register(undefined, {}, { now: T0 });
    const record: WorkerRecord = {
      contractVersion: 1,
      workerId: `worker_${sha256Hex('["acme","invoices","press-1"]').slice(0, 24)}`,
      tenantId: "acme",
      applicationId: "invoices",
      name: "press-1",
      runtime: "process",
      version: "1.0.0",
      declaredCapabilities: ["cpu", "gpu"],
      grantedCapabilities: ["cpu", "gpu"],
      workloadKinds: [],
      resourceProfile: {},
      labels: {},
      concurrency: 2,
      health: "UNKNOWN",
      lifecycle: "REGISTERED",
      heartbeatIntervalMs: 10_000,
      heartbeatTimeoutMs: 30_000,
      lastSeen: T0,
      capabilityVersion: 4,
      grantId: "grant_7",
      grants: [{ grantId: "grant_7", subject: grantOf().subject, revision: 4 }],
      incarnation: { id: "boot_1", number: 1 },
      superseded: [],
      registeredAt: T0,
    };
    expect(decision).toEqual({ ok: true, answer: { record, created: true }, record });
  });

  it("has sets in order and without repetition, and labels as they are given", () => {
    const record = registered({
      declaredCapabilities: ["gpu", "cpu", "gpu"],
      workloadKinds: ["render", "mail", "render"],
      labels: { zone: "b", disk: "" },
      resourceProfile: { cpuMillis: 0, memoryBytes: 5, gpuCount: undefined },
    });
    expect(record.declaredCapabilities).toEqual(["cpu", "gpu"]);
    expect(record.workloadKinds).toEqual(["mail", "render"]);
    expect(Object.entries(record.labels)).toEqual([
      ["zone", "b"],
      ["disk", ""],
    ]);
    expect(record.resourceProfile).toStrictEqual({ cpuMillis: 0, memoryBytes: 5 });
  });

  it("is granted what it declares as far as the grant has it, and nothing else that the grant has", () => {
    const grant = grantOf({
      capabilities: ["worker:capability:cpu", "worker:capability:tpu", "gpu", "worker:register"],
    });
    const record = accepted(register(undefined, {}, { grant }));
    expect([record.declaredCapabilities, record.grantedCapabilities]).toEqual([["cpu", "gpu"], ["cpu"]]);
  });

  it("gets a name for its incarnation when it has none", () => {
    expect(registered({ incarnation: undefined }).incarnation).toEqual({ id: "incarnation_1", number: 1 });
  });
});

describe("a registration that is refused", () => {
  const bad: readonly (readonly [string, Partial<RegisterRequest>, string])[] = [
    ["a concurrency of 0", { concurrency: 0 }, "concurrency"],
    ["a concurrency that is not whole", { concurrency: 1.5 }, "concurrency"],
    ["a concurrency beyond the limit", { concurrency: 10_001 }, "concurrency"],
    ["a blank name", { name: " \t" }, "name"],
    ["a heartbeat interval of 0", { heartbeatIntervalMs: 0 }, "heartbeatIntervalMs"],
    ["a negative heartbeat time-out", { heartbeatTimeoutMs: -1 }, "heartbeatTimeoutMs"],
    ["a resource below 0", { resourceProfile: { cpuMillis: -1 } }, "resourceProfile.cpuMillis"],
    ["a resource of minus zero", { resourceProfile: { diskBytes: -0 } }, "resourceProfile.diskBytes"],
    ["a resource that is not whole", { resourceProfile: { gpuCount: 0.5 } }, "resourceProfile.gpuCount"],
  ];
  for (const [what, changes, path] of bad)
    it(`has ${what}, and is told the place`, () => {
      const refusal = refusalOf(register(undefined, changes));
      expect([refusal.code, refusal.details?.["paths"]]).toEqual(["WORKER_INVALID", [path]]);
    });

  it("is told all that is wrong with it at once", () => {
    const refusal = refusalOf(register(undefined, { concurrency: 0, name: "", heartbeatTimeoutMs: 0 }));
    expect(refusal.details?.["paths"]).toEqual(["name", "concurrency", "heartbeatTimeoutMs"]);
  });

  it("comes under a grant of another subject, tenant or application", () => {
    for (const grant of [
      grantOf({ subject: { kind: "worker", id: "other" } }),
      grantOf({ subject: { kind: "service", id: "press" } }),
      grantOf({ tenantId: "other" }),
      grantOf({ applicationId: "other" }),
    ])
      expect(refusedWith(register(undefined, {}, { grant }))).toBe("WORKER_UNAUTHORIZED");
  });

  it("is looked at for its values, then for its grant, then for its incarnation", () => {
    const grant = grantOf({ tenantId: "other" });
    expect(refusedWith(register(undefined, { concurrency: 0 }, { grant }))).toBe("WORKER_INVALID");
    const second = accepted(register(registered(), { incarnation: "boot_2" }));
    expect(refusedWith(register(second, { concurrency: 0 }))).toBe("WORKER_INVALID");
    expect(refusedWith(register(second, {}, { grant }))).toBe("WORKER_UNAUTHORIZED");
    expect(refusedWith(register(second))).toBe("WORKER_SUPERSEDED");
  });
});

describe("a worker that registers again", () => {
  it("with the same description gets its record, and nothing is committed", () => {
    const record = ready();
    expect(register(record, {}, { now: T0 + 500 })).toEqual({ ok: true, answer: { record, created: false } });
    const spelt = { heartbeatIntervalMs: 10_000, workloadKinds: [], declaredCapabilities: ["gpu", "cpu", "cpu"] };
    expect(register(record, spelt).record).toBeUndefined();
    expect(register(record, { incarnation: undefined }).record).toBeUndefined();
  });

  const changes: readonly (readonly [keyof RegisterRequest, Partial<RegisterRequest>])[] = [
    ["version", { version: "1.0.1" }],
    ["declaredCapabilities", { declaredCapabilities: ["cpu"] }],
    ["labels", { labels: { zone: "a" } }],
    ["concurrency", { concurrency: 1 }],
    ["workloadKinds", { workloadKinds: ["render"] }],
    ["runtime", { runtime: "container" }],
    ["resourceProfile", { resourceProfile: { cpuMillis: 500 } }],
    ["heartbeatIntervalMs", { heartbeatIntervalMs: 500 }],
    ["heartbeatTimeoutMs", { heartbeatTimeoutMs: 900 }],
  ];
  for (const [field, change] of changes)
    it(`with another ${field} is updated, keeps its life, and moves to the grant's revision`, () => {
      const record = ready();
      const grant = grantOf({ grantId: "grant_8", revision: 9 });
      const next = accepted(register(record, change, { now: T0 + 500, grant }));
      expect(next).toMatchObject({ ...change, capabilityVersion: 9, grantId: "grant_8", lastSeen: T0 + 500 });
      expect([next.lifecycle, next.health, next.registeredAt]).toEqual(["READY", "HEALTHY", T0]);
      expect(next.incarnation).toEqual(record.incarnation);
    });

  it("under a renewed grant stands under that one from then on", () => {
    const grant = grantOf({ grantId: "grant_8", revision: 9, capabilities: ["worker:capability:cpu"] });
    const next = accepted(register(ready(), {}, { grant }));
    expect([next.grantId, next.capabilityVersion, next.grantedCapabilities]).toEqual(["grant_8", 9, ["cpu"]]);
  });

  it("with the same process stays OFFLINE, since it must reconcile", () => {
    const gone = accepted(decideOffline(withClaims(ready()), T0 + 99_000));
    expect(accepted(register(gone, { version: "2" })).lifecycle).toBe("OFFLINE");
    expect(answerOf(register(gone)).record.lifecycle).toBe("OFFLINE");
  });

  it("is seen no earlier than before when the clock was set back", () => {
    expect(accepted(register(ready(), { version: "2" }, { now: 5 })).lastSeen).toBe(T0 + 1);
  });
});

describe("a new process of a worker", () => {
  it("supersedes the one before it, begins anew, and says that the claims of that one are to be taken", () => {
    const record = ready();
    const answer = answerOf(register(record, { incarnation: "boot_2" }, { now: T0 + 500 }));
    expect(answer).toEqual({
      record: {
        ...record,
        incarnation: { id: "boot_2", number: 2 },
        superseded: ["boot_1"],
        lifecycle: "REGISTERED",
        health: "UNKNOWN",
        lastSeen: T0 + 500,
      },
      created: false,
      superseded: { id: "boot_1", number: 1 },
    });
    const before = withClaims(record, "a", undefined, "b");
    const seen = {
      record: answer.record,
      slots: [...before.slots, ...withClaims(answer.record, undefined, "c").slots],
    };
    expect(supersededSlots(seen).map(({ held }) => held?.claimId)).toEqual(["a", "b"]);
    expect(supersededSlots(before)).toEqual([]);
  });

  it("begins anew whatever became of the one before", () => {
    const gone = accepted(decideOffline(withClaims(ready()), T0 + 99_000));
    const draining = accepted(decideDrain(withClaims(ready(), "a"), {}));
    for (const record of [gone, draining, registered()]) {
      const next = accepted(register(record, { incarnation: "boot_2" }));
      expect([next.lifecycle, next.health]).toEqual(["REGISTERED", "UNKNOWN"]);
    }
  });

  it("is registered once, however often it asks, and those before it never again", () => {
    const second = accepted(register(registered(), { incarnation: "boot_2" }));
    expect(register(second, { incarnation: "boot_2" }).record).toBeUndefined();
    const third = accepted(register(second, { incarnation: "boot_3" }));
    for (const incarnation of ["boot_1", "boot_2"])
      expect(refusedWith(register(third, { incarnation }))).toBe("WORKER_SUPERSEDED");
    expect(third.incarnation).toEqual({ id: "boot_3", number: 3 });
  });

  it("is remembered by the 32 that come after it", () => {
    let record = registered({ incarnation: "boot_0" });
    for (let boot = 1; boot <= 33; boot++) record = accepted(register(record, { incarnation: `boot_${boot}` }));
    expect(record.superseded).toHaveLength(32);
    expect(refusedWith(register(record, { incarnation: "boot_1" }))).toBe("WORKER_SUPERSEDED");
    expect(accepted(register(record, { incarnation: "boot_0" })).incarnation.number).toBe(35);
  });
});

describe("a worker's id", () => {
  it("differs however strings are cut", () => {
    const ids = [
      registered(),
      registered({ name: "press-2" }),
      accepted(register(undefined, { tenantId: "x" }, { grant: grantOf({ tenantId: "x" }) })),
      accepted(register(undefined, { applicationId: "x" }, { grant: grantOf({ applicationId: "x" }) })),
      accepted(
        register(undefined, { applicationId: 'a","b', name: "c" }, { grant: grantOf({ applicationId: 'a","b' }) }),
      ),
      accepted(register(undefined, { applicationId: "a", name: 'b","c' }, { grant: grantOf({ applicationId: "a" }) })),
    ].map(({ workerId }) => workerId);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
