/**
 * Goal: every invariant of workers is named when it is broken, and none is when a worker is sound.
 * Method: sound workers are bent in one place each; the check must name the invariant of that place.
 */
import { describe, expect, it } from "vitest";
import { decideWorkerHeartbeat } from "../../../src/core/worker/heartbeat.ts";
import {
  findBrokenWorker,
  findBrokenWorkerSuccession,
  workerInvariants,
  workerSuccessionInvariants,
} from "../../../src/core/worker/invariants.ts";
import { decideOffline } from "../../../src/core/worker/liveness.ts";
import { decideDrain, decideRecoverWorker } from "../../../src/core/worker/operate-worker.ts";
import { decideReconcile } from "../../../src/core/worker/reconcile.ts";
import type { WorkerRecord } from "../../../src/core/worker/record.ts";
import { holdSlot, type WorkerSeen } from "../../../src/core/worker/slots.ts";
import { T0 } from "../core/fixtures.ts";
import { accepted, heartbeatOf, ready, register, registered, withClaims } from "./fixtures.ts";

const worker = ready();
const seen = withClaims(worker, "a");
const second = accepted(register(worker, { incarnation: "boot_2" }));

const bent = (changes: Partial<WorkerRecord>): WorkerSeen => ({ ...seen, record: { ...worker, ...changes } });

const namesOf = (broken: readonly string[]): readonly string[] => broken.map((text) => text.split(":")[0] ?? "");

const foreignHold = { claimId: "b", workloadId: "w", workerId: "worker_x", incarnation: 1 };

describe("a worker", () => {
  it("is sound as the rules make it", () => {
    for (const sound of [withClaims(registered()), seen, withClaims(second), { record: second, slots: seen.slots }])
      expect(findBrokenWorker(sound)).toEqual([]);
  });

  const broken: readonly (readonly [keyof typeof workerInvariants, string, WorkerSeen])[] = [
    ["W1", "another id", { record: { ...worker, workerId: "worker_x" }, slots: [] }],
    ["W2", "a capability that was not declared", bent({ grantedCapabilities: ["cpu", "tpu"] })],
    ["W2", "a set out of order", bent({ declaredCapabilities: ["gpu", "cpu"] })],
    ["W2", "a set with a repetition", bent({ workloadKinds: ["a", "a"] })],
    ["W3", "a claim in two slots", withClaims(worker, "a", "a")],
    [
      "W3",
      "a slot that is there twice",
      {
        record: worker,
        slots: [
          ...seen.slots,
          ...seen.slots.map((slot) => ({ ...slot, held: { ...foreignHold, workerId: worker.workerId } })),
        ],
      },
    ],
    ["W3", "a slot of another owner", { record: worker, slots: [{ ownerId: "worker_x", index: 0 }] }],
    ["W3", "a claim of another worker", { record: worker, slots: [holdSlot(worker.workerId, 0, foreignHold)] }],
    [
      "W3",
      "a claim of an incarnation to come",
      {
        record: worker,
        slots: [holdSlot(worker.workerId, 0, { ...foreignHold, workerId: worker.workerId, incarnation: 2 })],
      },
    ],
    ["W4", "its current incarnation superseded", { record: { ...second, superseded: ["boot_2"] }, slots: [] }],
    ["W4", "more incarnations than were numbered", bent({ superseded: ["boot_0"] })],
    [
      "W4",
      "an incarnation superseded twice",
      { record: { ...second, incarnation: { id: "x", number: 9 }, superseded: ["b", "b"] }, slots: [] },
    ],
    [
      "W4",
      "too many incarnations",
      {
        record: {
          ...second,
          incarnation: { id: "x", number: 99 },
          superseded: Array.from({ length: 33 }, (_, index) => `b${index}`),
        },
        slots: [],
      },
    ],
  ];
  for (const [name, what, bentWorker] of broken)
    it(`with ${what} breaks ${name}`, () => {
      expect(namesOf(findBrokenWorker(bentWorker))).toEqual([name]);
    });

  it("is tried for each invariant", () => {
    expect([...new Set(broken.map(([name]) => name))]).toEqual(Object.keys(workerInvariants));
  });
});

describe("a commit", () => {
  const idle = withClaims(worker);
  const offline = withClaims(accepted(decideOffline(idle, T0 + 99_000)));
  const drained = withClaims(accepted(decideDrain(idle, {})));
  const hold = (claimId: string, incarnation = 1) => ({
    claimId,
    workloadId: "w",
    workerId: worker.workerId,
    incarnation,
  });

  it("of the rules breaks nothing", () => {
    const reconcile = { ...heartbeatOf(worker), knownClaims: [], runningAttempts: [], timestamp: T0 };
    const sound: readonly (readonly [WorkerSeen, WorkerSeen])[] = [
      [idle, seen],
      [seen, idle],
      [
        withClaims(registered()),
        withClaims(accepted(decideWorkerHeartbeat(withClaims(registered()), heartbeatOf(registered()), T0))),
      ],
      [offline, withClaims(accepted(decideRecoverWorker(offline, {})))],
      [drained, withClaims(accepted(decideRecoverWorker(drained, {})))],
      [offline, withClaims(accepted(decideReconcile({ ...offline, workloads: [] }, reconcile, { now: T0 + 99_001 })))],
      [seen, { record: second, slots: seen.slots }],
      [withClaims(worker, "a", "b"), { ...withClaims(worker, "a", "b"), record: { ...worker, concurrency: 1 } }],
    ];
    for (const [before, after] of sound) expect(findBrokenWorkerSuccession(before, after)).toEqual([]);
  });

  const after = (changes: Partial<WorkerRecord>): WorkerSeen => bent(changes);
  const broken: readonly (readonly [keyof typeof workerSuccessionInvariants, string, WorkerSeen, WorkerSeen])[] = [
    ["W5", "renames a worker", seen, after({ name: "other" })],
    ["W5", "changes when it registered", seen, after({ registeredAt: T0 + 1 })],
    ["W5", "sets lastSeen back", seen, after({ lastSeen: T0 })],
    [
      "W6",
      "adds a claim beyond the concurrency",
      withClaims(worker, undefined, "b", "c"),
      withClaims(worker, "a", "b", "c"),
    ],
    ["W7", "takes a slot beyond the concurrency", idle, withClaims(worker, undefined, undefined, "c")],
    ["W7", "hands a slot over", seen, { record: worker, slots: [holdSlot(worker.workerId, 0, hold("b"))] }],
    [
      "W7",
      "gives a slot to an earlier incarnation",
      withClaims(second),
      { record: second, slots: [holdSlot(worker.workerId, 0, hold("b"))] },
    ],
    [
      "W8",
      "takes a registered worker to DRAINING",
      bent({ lifecycle: "REGISTERED" }),
      after({ lifecycle: "DRAINING" }),
    ],
    ["W8", "takes a draining worker back", bent({ lifecycle: "DRAINING" }), after({ lifecycle: "READY" })],
    [
      "W8",
      "takes an OFFLINE worker to REGISTERED",
      offline,
      withClaims({ ...offline.record, lifecycle: "REGISTERED" }),
    ],
    ["W9", "leaves a number out", idle, withClaims({ ...second, incarnation: { id: "boot_2", number: 3 } })],
    [
      "W9",
      "replaces an incarnation under its number",
      idle,
      withClaims({ ...worker, incarnation: { id: "x", number: 1 } }),
    ],
    [
      "W9",
      "lets a superseded one come back",
      withClaims(second),
      withClaims({ ...second, incarnation: { id: "boot_1", number: 3 }, superseded: ["boot_1", "boot_2"] }),
    ],
    ["W9", "forgets the one before", idle, withClaims({ ...second, superseded: [] })],
    ["W9", "begins a life in its middle", idle, withClaims({ ...second, lifecycle: "READY" })],
    ["W9", "begins a life with a health", idle, withClaims({ ...second, health: "HEALTHY" })],
  ];
  for (const [name, what, before, next] of broken)
    it(`that ${what} breaks ${name}`, () => {
      expect(namesOf(findBrokenWorkerSuccession(before, next))).toEqual([name]);
    });

  it("is tried for each invariant", () => {
    expect([...new Set(broken.map(([name]) => name))]).toEqual(Object.keys(workerSuccessionInvariants));
  });
});
