/**
 * Goal: every invariant is named when it is broken, and none is when a record is sound.
 * Method: sound records are bent in one place each; the check must name the invariant of that place.
 */
import { describe, expect, it } from "vitest";
import { decideHeartbeat } from "../../../src/core/workload/lease.ts";
import {
  findBrokenInvariants,
  findBrokenSuccession,
  type recordInvariants,
  type successionInvariants,
} from "../../../src/core/workload/invariants.ts";
import { decideRetry } from "../../../src/core/workload/operate.ts";
import { decideRecover } from "../../../src/core/workload/recovery.ts";
import type { Approval, Attempt, Claim, Result, WorkloadRecord } from "../../../src/core/workload/record.ts";
import type { Payload } from "../../../src/core/workload/record.ts";
import { assert } from "../../../src/base/assert.ts";
import {
  accepted,
  admitted,
  approve,
  cancel,
  checkpointed,
  claimed,
  complete,
  fenceOf,
  recordIn,
  requester,
  resting,
  rules,
  running,
  started,
  T0,
} from "./fixtures.ts";

type Changes = { readonly [Field in keyof WorkloadRecord]?: WorkloadRecord[Field] | undefined };

/** The record with fields replaced; `undefined` takes a field away. */
const bent = (record: WorkloadRecord, changes: Changes): WorkloadRecord =>
  Object.fromEntries(
    Object.entries({ ...record, ...changes }).filter(([, value]) => value !== undefined),
  ) as unknown as WorkloadRecord;

const withEvent = (record: WorkloadRecord, index: number, changes: object): WorkloadRecord =>
  bent(record, { history: record.history.map((event, place) => (place === index ? { ...event, ...changes } : event)) });

const withAttempt = (record: WorkloadRecord, index: number, changes: Partial<Attempt>): WorkloadRecord =>
  bent(record, {
    attempts: record.attempts.map((attempt, place) => (place === index ? { ...attempt, ...changes } : attempt)),
  });

const withClaim = (record: WorkloadRecord, changes: Partial<Claim>): WorkloadRecord => {
  assert(record.currentClaim !== undefined, "there is no claim");
  return bent(record, { currentClaim: { ...record.currentClaim, ...changes } });
};

const withResult = (record: WorkloadRecord, changes: Partial<Result<Payload>>): WorkloadRecord => {
  assert(record.result !== undefined, "there is no result");
  return bent(record, { result: { ...record.result, ...changes } });
};

const withApproval = (record: WorkloadRecord, changes: Partial<Approval>): WorkloadRecord => {
  assert(record.approval !== undefined, "there is no policy");
  return bent(record, { approval: { ...record.approval, ...changes } });
};

const run = running();
const point = checkpointed(run, T0 + 2);
const done = recordIn.SUCCEEDED();
const twice = claimed(accepted(decideRecover(point, { now: T0 + 10_000 })), T0 + 10_001, { workerId: "w2" });
const gated = admitted({ approval: {} });
const approved = accepted(approve(gated, T0 + 1));
const approvedRun = claimed(approved, T0 + 2, { start: true });
const rearmed = accepted(decideRetry(recordIn.DEAD_LETTER(), { actor: "olga" }, { now: T0 + 9, rules }));
const { approval } = approved;
assert(approval?.decision !== undefined, "it was decided");
const { decision } = approval;

describe("a sound record", () => {
  it("breaks no invariant in any state that commands lead to", () => {
    const passed = ["CREATED", "RECOVERING", "FAILED", "TIMED_OUT"];
    for (const [state, build] of Object.entries(recordIn))
      if (!passed.includes(state)) expect([state, findBrokenInvariants(build())]).toEqual([state, []]);
    for (const record of [twice, approvedRun, rearmed]) expect(findBrokenInvariants(record)).toEqual([]);
  });

  it("follows another without breaking one", () => {
    for (const [before, after] of [
      [undefined, admitted()],
      [undefined, gated],
      [run, point],
      [point, twice],
      [gated, approved],
      [recordIn.DEAD_LETTER(), rearmed],
      [recordIn.DEAD_LETTER(), accepted(cancel(recordIn.DEAD_LETTER(), T0 + 9))],
      [run, accepted(decideHeartbeat(run, { fence: fenceOf(run), extendMs: 5 }, { now: T0 + 3 }))],
      [done, structuredClone(done)],
    ] as const)
      expect(findBrokenSuccession(before, after)).toEqual([]);
  });
});

const brokenRecords: Record<keyof typeof recordInvariants, readonly WorkloadRecord[]> = {
  I1: [
    bent(run, { history: [] }),
    withEvent(run, 1, { sequence: 3 }),
    withEvent(run, 0, { from: undefined }),
    withEvent(run, 2, { from: "READY" }),
    withEvent(run, 2, { type: "workload.failed" }),
    bent(run, { history: run.history.slice(1) }),
  ],
  I2: [withEvent(done, 3, { from: "CLAIMED" }), withEvent(gated, 0, { to: "SUCCEEDED" })],
  I3: [withEvent(run, 1, { at: T0 + 1 }), bent(run, { createdAt: T0 + 1 }), bent(point, { updatedAt: T0 + 1 })],
  I4: [bent(run, { state: "CHECKPOINTED" })],
  I5: [
    bent(run, { currentClaim: undefined }),
    bent(admitted(), { currentClaim: run.currentClaim }),
    withClaim(run, { claimId: "other" }),
    withClaim(run, { workerId: "other" }),
    withClaim(run, { fencingToken: 2 }),
    withClaim(run, { workloadId: "other" }),
    bent(run, { fencingToken: 2 }),
  ],
  I6: [
    bent(run, { attemptCount: 2 }),
    bent(run, { fencingToken: 0 }),
    bent(run, { attempts: [] }),
    withAttempt(twice, 1, { fencingToken: 1 }),
    withEvent(run, 1, { evidence: { fencingToken: "2" } }),
  ],
  I7: [
    bent(twice, { retryPolicy: { ...twice.retryPolicy, maxAttempts: 1 } }),
    bent(rearmed, { retryPolicy: { ...rearmed.retryPolicy, maxAttempts: 0 } }),
    withEvent(rearmed, rearmed.history.length - 1, { evidence: { retry: "operator", operatorRetry: "2" } }),
  ],
  I8: [
    withApproval(approvedRun, { decision: undefined } as object),
    withApproval(approvedRun, { decision: { ...decision, outcome: "rejected" } }),
    bent(run, { approval }),
  ],
  I9: [
    withAttempt(twice, 0, { status: "RUNNING" }),
    withAttempt(run, 0, { status: "FAILED", endedAt: T0 }),
    withAttempt(run, 0, { status: "CHECKPOINTED" }),
    withAttempt(run, 0, { endedAt: T0 }),
    bent(run, { attempts: run.attempts.map(({ startedAt: _gone, ...attempt }) => attempt) }),
    bent(done, { attempts: run.attempts }),
    bent(done, { attempts: done.attempts.map(({ endedAt: _gone, ...attempt }) => attempt) }),
  ],
  I10: [
    bent(done, { result: undefined }),
    bent(run, { result: done.result }),
    withResult(done, { attemptId: "other" }),
    withResult(done, { outputHash: "other" }),
    withResult(done, { producedBy: "other" }),
    withResult(done, { provenance: { claimId: "other", fencingToken: 1 } }),
    withAttempt(twice, 0, { status: "SUCCEEDED" }),
  ],
  I11: [
    bent(point, { checkpoints: point.checkpoints.map((checkpoint) => ({ ...checkpoint, sequence: 2 })) }),
    bent(point, { checkpoints: point.checkpoints.map((checkpoint) => ({ ...checkpoint, attemptId: "other" })) }),
    bent(checkpointed(started(twice, T0 + 10_002), T0 + 10_003), {
      checkpoints: checkpointed(started(twice, T0 + 10_002), T0 + 10_003)
        .checkpoints.toReversed()
        .map((checkpoint, index) => ({ ...checkpoint, sequence: index + 1 })),
    }),
  ],
  I12: [
    bent(run, { idempotencyKey: "other" }),
    withClaim(run, { leaseId: "lease_9" }),
    withAttempt(run, 0, { attemptId: "other" }),
    withAttempt(run, 0, { claimId: "other" }),
    withAttempt(run, 0, { inputHash: "other" }),
    bent(point, { checkpoints: point.checkpoints.map((checkpoint) => ({ ...checkpoint, checkpointId: "other" })) }),
  ],
  I13: [
    bent(admitted(), { state: "REJECTED" }),
    withApproval(recordIn.REJECTED(), { decision: undefined } as object),
    withApproval(approved, { decision: { ...decision, outcome: "rejected" } }),
    withApproval(approved, { decision: { ...decision, inputHash: "other" } }),
    withApproval(approved, { decision: { ...decision, decidedBy: { kind: "agent", id: "x" } } }),
    withApproval(approved, {
      decision: { ...decision, decidedBy: requester },
      policy: { approverKinds: ["service"], approvers: [] },
    }),
    withApproval(approved, { policy: { approverKinds: ["human"], approvers: [{ kind: "human", id: "bob" }] } }),
    withApproval(approved, {
      policy: { approverKinds: ["human"], approvers: [], requiredApprovals: 2 },
      given: [decision, decision],
    }),
  ],
};

const brokenCommits: Record<
  keyof typeof successionInvariants,
  readonly (readonly [WorkloadRecord | undefined, WorkloadRecord])[]
> = {
  I14: [
    [run, bent(run, { workloadId: "other" })],
    [run, bent(run, { input: { json: "1" } })],
    [run, bent(run, { notBefore: 5 })],
    [run, bent(run, { authorization: { ...run.authorization, revision: 2 } })],
    [run, bent(run, { retryPolicy: { ...run.retryPolicy, maxAttempts: 9 } })],
    [gated, withApproval(gated, { policy: { approverKinds: ["service"], approvers: [] } })],
  ],
  I15: [
    [run, withEvent(run, 0, { actor: "other" })],
    [run, bent(run, { history: run.history.slice(0, -1) })],
    [point, bent(point, { checkpoints: [] })],
    [run, bent(run, { attempts: [] })],
    [twice, withAttempt(twice, 0, { error: "other" })],
    [recordIn.DEAD_LETTER(), withAttempt(recordIn.DEAD_LETTER(), 0, { error: "other" })],
    [run, withAttempt(run, 0, { workerId: "other" })],
    [run, withAttempt(run, 0, { startedAt: T0 + 9 })],
  ],
  I16: [
    [run, bent(run, { fencingToken: 2 })],
    [twice, bent(twice, { fencingToken: 1 })],
    [admitted(), bent(claimed(admitted(), T0), { fencingToken: 3 })],
    [admitted(), bent(claimed(admitted(), T0), { attemptCount: 0 })],
    [bent(run, { retryCount: 1 }), run],
    [admitted(), twice],
  ],
  I17: [
    [run, withClaim(run, { claimedAt: T0 + 1 })],
    [run, withClaim(run, { capabilities: ["gpu"] })],
    [accepted(decideRecover(run, { now: T0 + 10_000 })), run],
  ],
  I18: [[point, bent(point, { updatedAt: T0 + 1 })]],
  I19: [
    [approved, withApproval(approved, { decision: { ...decision, reason: "other" } })],
    [approved, withApproval(approved, { decision: undefined } as object)],
    [withApproval(gated, { given: [decision] }), gated],
  ],
  I20: [
    [done, withResult(done, { resultId: "other" })],
    [done, bent(done, { result: undefined })],
  ],
  I21: [
    [done, bent(done, { updatedAt: T0 + 99 })],
    [recordIn.CANCELLED(), bent(recordIn.CANCELLED(), { lastFailure: "x" })],
    [recordIn.REJECTED(), bent(recordIn.REJECTED(), { nextAttemptAt: 5 })],
    [recordIn.DEAD_LETTER(), bent(recordIn.DEAD_LETTER(), { retryCount: 5 })],
    [recordIn.DEAD_LETTER(), resting(recordIn.DEAD_LETTER(), "READY", T0 + 9)],
  ],
  I22: [
    [run, resting(run, "RECOVERING", T0 + 9)],
    [run, resting(run, "FAILED", T0 + 9)],
    [undefined, recordIn.CREATED()],
  ],
  I23: [
    [undefined, run],
    [undefined, recordIn.CANCELLED()],
    [undefined, approved],
  ],
};

const namesOf = (broken: readonly string[]): readonly string[] =>
  broken.map((text) => text.slice(0, text.indexOf(":")));

describe("a broken record", () => {
  for (const [name, records] of Object.entries(brokenRecords))
    for (const [index, record] of records.entries())
      it(`is named by ${name} (${index + 1})`, () => {
        expect(namesOf(findBrokenInvariants(record))).toContain(name);
      });
});

describe("a broken commit", () => {
  for (const [name, commits] of Object.entries(brokenCommits))
    for (const [index, [before, after]] of commits.entries())
      it(`is named by ${name} (${index + 1})`, () => {
        expect(namesOf(findBrokenSuccession(before, after))).toContain(name);
      });

  it("is a completion on top of another", () => {
    const other = accepted(complete(run, fenceOf(run), { now: T0 + 3, output: "other", resultId: "r" }));
    expect(namesOf(findBrokenSuccession(done, other))).toEqual(["I15", "I20", "I21"]);
  });
});
