/**
 * Goal: a worker that lost touch is told what it holds, what it must drop and what it must stop (contract 2.2).
 * Method: workloads in chosen states stand for what is committed; the worker's beliefs differ from them in one way each.
 */
import { describe, expect, it } from "vitest";
import { decideOffline } from "../../../src/core/worker/liveness.ts";
import { decideDrain } from "../../../src/core/worker/operate-worker.ts";
import {
  decideReconcile,
  type ReconcileCommand,
  type ReconcileFact,
  type ReconcileSeen,
} from "../../../src/core/worker/reconcile.ts";
import type { WorkerRecord } from "../../../src/core/worker/record.ts";
import { holdSlot } from "../../../src/core/worker/slots.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { admitted, cancel, accepted as acceptedWork, claimed, complete, fenceOf, T0 } from "../core/fixtures.ts";
import { accepted, answerOf, ready, refusalOf, refusedWith, register, withClaims } from "./fixtures.ts";

const worker = ready({ concurrency: 4 });

/** A workload that the worker holds, RUNNING until T0 + 10 s. */
const runningOn = (workerId: string, key: string): WorkloadRecord =>
  claimed(admitted({ idempotencyKey: key }), T0, { workerId, start: true });
const held = (key: string): WorkloadRecord => runningOn(worker.workerId, key);

const claimIdOf = (record: WorkloadRecord): string => record.currentClaim?.claimId ?? "none";
const attemptIdOf = (record: WorkloadRecord): string => record.attempts.at(-1)?.attemptId ?? "none";

const commandOf = (record: WorkerRecord, changes: Partial<ReconcileCommand> = {}): ReconcileCommand => ({
  workerId: record.workerId,
  version: record.version,
  capabilityVersion: record.capabilityVersion,
  knownClaims: [],
  runningAttempts: [],
  timestamp: T0,
  incarnation: record.incarnation.id,
  ...changes,
});

/** The worker with a slot for the claim of each of these, and the facts about them. */
const seenWith = (records: readonly WorkloadRecord[], facts: readonly ReconcileFact[] = records): ReconcileSeen => ({
  ...withClaims(worker, ...records.map(claimIdOf)),
  workloads: facts,
});

const reconcile = (seen: ReconcileSeen, changes: Partial<ReconcileCommand> = {}, now: number = T0 + 5) =>
  decideReconcile(seen, commandOf(seen.record, changes), { now });

describe("a reconciliation", () => {
  it("answers the claims that are current, unexpired and the worker's, in full", () => {
    const record = held("a");
    const answer = answerOf(reconcile(seenWith([record]), { knownClaims: [claimIdOf(record)] }));
    expect(answer.authoritativeClaims).toEqual([
      {
        workloadId: record.workloadId,
        attemptId: attemptIdOf(record),
        workerId: worker.workerId,
        leaseId: "lease_1",
        claimId: claimIdOf(record),
        fencingToken: 1,
        capabilities: [],
        executionContextId: `context_${claimIdOf(record)}`,
        issuedAt: T0,
        expiresAt: T0 + 10_000,
      },
    ]);
    expect([answer.fencedClaims, answer.cancelAttempts, answer.freed]).toEqual([[], [], []]);
  });

  it("fences what the worker believes to hold and does not, each once", () => {
    const own = held("a");
    const other = runningOn("worker_other", "b");
    const answer = answerOf(
      reconcile(seenWith([own], [own, other]), {
        knownClaims: ["claim_x", claimIdOf(other), claimIdOf(own), "claim_x"],
      }),
    );
    expect(answer.fencedClaims).toEqual(["claim_x", claimIdOf(other)]);
  });

  it("cancels attempts whose workload does not run with that attempt, on this worker", () => {
    const own = held("a");
    const notStarted = claimed(admitted({ idempotencyKey: "b" }), T0, { workerId: worker.workerId });
    const asked = acceptedWork(cancel(held("c"), T0 + 2));
    const other = runningOn("worker_other", "d");
    const facts = [own, notStarted, asked, other];
    const runningAttempts = [...facts.map(attemptIdOf), "attempt_x_1", `${attemptIdOf(own)}0`];
    const answer = answerOf(reconcile(seenWith([own], facts), { runningAttempts }));
    expect(answer.cancelAttempts).toEqual(runningAttempts.slice(1));
    expect(answer.authoritativeClaims.map(({ claimId }) => claimId)).toEqual([own, notStarted, asked].map(claimIdOf));
  });

  it("frees the slots of claims that have ended, and keeps the rest", () => {
    const own = held("a");
    const ended = held("b");
    const done = acceptedWork(complete(ended, fenceOf(ended), { now: T0 + 2 }));
    const lost = held("c");
    const answer = answerOf(reconcile(seenWith([own, ended, lost], [own, done])));
    expect(answer.freed).toEqual([
      { ownerId: worker.workerId, index: 1 },
      { ownerId: worker.workerId, index: 2 },
    ]);
    expect(answer.worker).toMatchObject({ claims: [claimIdOf(own)], capacity: { active: 1 }, lifecycle: "READY" });
  });

  it("fences a claim whose lease is over, and leaves its slot to the recovery that will end it", () => {
    const own = held("a");
    const seen = seenWith([own]);
    const late = { knownClaims: [claimIdOf(own)], runningAttempts: [attemptIdOf(own)] };
    expect(answerOf(reconcile(seen, late, T0 + 9999)).fencedClaims).toEqual([]);
    const answer = answerOf(reconcile(seen, late, T0 + 10_000));
    expect([answer.fencedClaims, answer.freed, answer.authoritativeClaims]).toEqual([[claimIdOf(own)], [], []]);
  });

  it("grants the grace of a node that has just come back", () => {
    const own = held("a");
    const seen = seenWith([own]);
    const decision = decideReconcile(seen, commandOf(worker), { now: T0 + 60_000, servingSince: T0 + 55_000 });
    expect(answerOf(decision).authoritativeClaims).toHaveLength(1);
  });

  it("counts a claim of an earlier incarnation as none, and leaves it to be taken away", () => {
    const own = held("a");
    const record = accepted(register(worker, { incarnation: "boot_2", concurrency: 4 }));
    const seen = { ...seenWith([own]), record };
    const answer = answerOf(reconcile(seen, { knownClaims: [claimIdOf(own)] }));
    expect([answer.authoritativeClaims, answer.fencedClaims, answer.freed]).toEqual([[], [claimIdOf(own)], []]);
  });

  it("knows a claim that has no slot, since the fence alone decides what counts", () => {
    const own = held("a");
    const answer = answerOf(reconcile({ ...withClaims(worker), workloads: [own] }, { knownClaims: [claimIdOf(own)] }));
    expect([answer.fencedClaims, answer.worker.claims]).toEqual([[], []]);
  });
});

describe("a reconciled worker", () => {
  it("is HEALTHY, and READY or BUSY by its slots, from OFFLINE and RECOVERING as from READY", () => {
    const gone = accepted(decideOffline(withClaims(worker), T0 + 99_000));
    for (const record of [
      gone,
      { ...gone, lifecycle: "RECOVERING" as const },
      { ...worker, health: "DEGRADED" as const },
    ]) {
      const next = accepted(reconcile({ ...withClaims(record), workloads: [] }, {}, T0 + 100_000));
      expect(next).toEqual({ ...record, lifecycle: "READY", health: "HEALTHY", lastSeen: T0 + 100_000 });
    }
    const own = held("a");
    const small = { ...gone, concurrency: 1 };
    const busy = answerOf(reconcile({ ...withClaims(small, claimIdOf(own)), workloads: [own] }));
    expect(busy.worker.lifecycle).toBe("BUSY");
  });

  it("goes on draining, and is OFFLINE when nothing is left to drain", () => {
    const draining = accepted(decideDrain(withClaims(worker), {}));
    const own = held("a");
    const slots = [
      holdSlot(worker.workerId, 0, {
        claimId: claimIdOf(own),
        workloadId: own.workloadId,
        workerId: worker.workerId,
        incarnation: 1,
      }),
    ];
    expect(accepted(reconcile({ record: draining, slots, workloads: [own] })).lifecycle).toBe("DRAINING");
    expect(accepted(reconcile({ record: draining, slots, workloads: [] })).lifecycle).toBe("OFFLINE");
  });
});

describe("a reconciliation that is refused", () => {
  it("is of another process, or differs from what is registered", () => {
    const seen = seenWith([]);
    expect(refusedWith(reconcile(seen, { incarnation: "boot_0", version: "9" }))).toBe("WORKER_SUPERSEDED");
    for (const [changes, fields] of [
      [{ version: "9" }, ["version"]],
      [{ capabilityVersion: 9, workerId: "worker_x" }, ["workerId", "capabilityVersion"]],
    ] as const)
      expect(refusalOf(reconcile(seen, changes))).toMatchObject({
        code: "WORKER_RECONCILIATION_DENIED",
        details: { fields },
      });
  });

  it("is not about the worker's clock", () => {
    expect(reconcile(seenWith([]), { timestamp: 0 }).ok).toBe(true);
  });
});
