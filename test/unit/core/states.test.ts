/**
 * Goal: the transition table is the one of contract 1.4, cell by cell, and every command meets every state as written.
 * Method: the contract's table stands here as text; all 14 × 14 cells are walked, and each command is put to a record
 * in each state.
 */
import { describe, expect, it } from "vitest";
import { AssertionError } from "../../../src/base/assert.ts";
import { decideApproval } from "../../../src/core/workload/approval.ts";
import { decideClaim, decideStart } from "../../../src/core/workload/claim.ts";
import type { Decision } from "../../../src/core/workload/decision.ts";
import { decideConfirmCancel } from "../../../src/core/workload/failure.ts";
import type { Fence } from "../../../src/core/workload/fence.ts";
import { decideExecutionContext, decideHeartbeat } from "../../../src/core/workload/lease.ts";
import { decideRetry, decideTimeout } from "../../../src/core/workload/operate.ts";
import { decideCheckpoint } from "../../../src/core/workload/progress.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { decideRecover } from "../../../src/core/workload/recovery.ts";
import {
  eventTypes,
  isWorkloadState,
  mayGo,
  transitions,
  workloadStates,
  type WorkloadState,
} from "../../../src/core/workload/states.ts";
import { applyMove } from "../../../src/core/workload/transition.ts";
import {
  admitted,
  approver,
  cancel,
  complete,
  fail,
  frozen,
  noDependencies,
  recordIn,
  rules,
  T0,
  fenceOf,
} from "./fixtures.ts";

/** Contract 1.4, row by row. */
const table: Record<WorkloadState, string> = {
  CREATED: "READY, AWAITING_APPROVAL, CANCELLED",
  AWAITING_APPROVAL: "READY, REJECTED, CANCELLED, TIMED_OUT",
  READY: "CLAIMED, CANCELLED, TIMED_OUT, DEAD_LETTER",
  CLAIMED: "RUNNING, CANCELLATION_REQUESTED, FAILED, RECOVERING, TIMED_OUT",
  RUNNING: "CHECKPOINTED, SUCCEEDED, CANCELLATION_REQUESTED, FAILED, RECOVERING, TIMED_OUT",
  CHECKPOINTED: "CHECKPOINTED, SUCCEEDED, CANCELLATION_REQUESTED, FAILED, RECOVERING, TIMED_OUT",
  RECOVERING: "READY, DEAD_LETTER",
  CANCELLATION_REQUESTED: "CANCELLED",
  FAILED: "READY, DEAD_LETTER, CANCELLED, AWAITING_APPROVAL",
  TIMED_OUT: "READY, DEAD_LETTER, AWAITING_APPROVAL",
  DEAD_LETTER: "READY, CANCELLED, AWAITING_APPROVAL",
  SUCCEEDED: "",
  CANCELLED: "",
  REJECTED: "",
};

const contractEventTypes: Record<WorkloadState, string> = {
  CREATED: "workload.created",
  READY: "workload.ready",
  CLAIMED: "workload.claimed",
  RUNNING: "workload.started",
  CHECKPOINTED: "workload.checkpointed",
  RECOVERING: "workload.recovered",
  CANCELLATION_REQUESTED: "workload.cancellation_requested",
  SUCCEEDED: "workload.completed",
  FAILED: "workload.failed",
  CANCELLED: "workload.cancelled",
  TIMED_OUT: "workload.timed_out",
  DEAD_LETTER: "workload.dead_lettered",
  AWAITING_APPROVAL: "workload.awaiting_approval",
  REJECTED: "workload.rejected",
};

describe("the transition table", () => {
  it("has fourteen states", () => {
    expect(workloadStates).toHaveLength(14);
    expect(Object.keys(transitions).sort()).toEqual([...workloadStates].sort());
  });

  it("knows its own states and no others", () => {
    for (const state of workloadStates) expect(isWorkloadState(state)).toBe(true);
    for (const other of ["ready", "PAUSED", "", "toString", "__proto__", 3, null, undefined])
      expect(isWorkloadState(other)).toBe(false);
  });

  for (const from of workloadStates)
    for (const to of workloadStates) {
      const allowed = table[from].split(", ").includes(to);
      it(`${allowed ? "lets" : "does not let"} ${from} go to ${to}`, () => {
        expect(mayGo(from, to)).toBe(allowed);
        const record = frozen({ ...admitted(), state: from });
        const move = { to, actor: "somebody", at: T0 + 7, evidence: { why: "test", left: undefined, count: 3 } };
        if (!allowed) {
          expect(() => applyMove(record, move)).toThrow(AssertionError);
          return;
        }
        const next = applyMove(record, move);
        expect(next.state).toBe(to);
        expect(next.updatedAt).toBe(T0 + 7);
        expect(next.history).toHaveLength(2);
        expect(next.history[1]).toEqual({
          sequence: 2,
          type: contractEventTypes[to],
          from,
          to,
          actor: "somebody",
          at: T0 + 7,
          evidence: { why: "test", count: "3" },
        });
      });
    }

  it("names every event as the contract does", () => {
    expect(eventTypes).toEqual(contractEventTypes);
  });
});

const nobody: Fence = { workloadId: "workload_x", claimId: "claim_x", workerId: "w1", fencingToken: 1 };
const fenceIn = (record: WorkloadRecord): Fence => (record.currentClaim === undefined ? nobody : fenceOf(record));
const at = T0 + 10;
const operator = { actor: "olga" };

const commands: Record<string, (record: WorkloadRecord) => Decision<unknown>> = {
  claim: (record) =>
    decideClaim(record, { workerId: "w2", capabilities: [], leaseMs: 1000 }, { now: at, dependencies: noDependencies }),
  start: (record) => decideStart(record, fenceIn(record), { now: at }),
  heartbeat: (record) => decideHeartbeat(record, { fence: fenceIn(record), extendMs: 1000 }, { now: at }),
  executionContext: (record) =>
    decideExecutionContext(record, { fence: fenceIn(record), secretReferences: [] }, { now: at }),
  checkpoint: (record) => decideCheckpoint(record, { fence: fenceIn(record), state: 1 }, { now: at, rules }),
  complete: (record) => complete(record, fenceIn(record), { now: at, resultId: "another" }),
  fail: (record) => fail(record, fenceIn(record), { now: at, error: "another", kind: "bug" }),
  confirmCancel: (record) => decideConfirmCancel(record, fenceIn(record), { now: at }),
  cancel: (record) => cancel(record, at),
  timeout: (record) => decideTimeout(record, operator, { now: at, rules }),
  retry: (record) => decideRetry(record, operator, { now: at, rules }),
  recover: (record) => decideRecover(record, { now: T0 + 60_000 }),
  decide: (record) =>
    decideApproval(
      record,
      { decider: approver, outcome: "approved", grantId: "g", inputHash: record.inputHash },
      { now: at, rules },
    ),
};

const invalid = "WORKLOAD_CLAIM_INVALID";
const denied = "WORKLOAD_TRANSITION_DENIED";
const notReady = "WORKLOAD_NOT_READY";
const notRequired = "WORKLOAD_APPROVAL_NOT_REQUIRED";
const unheld = {
  start: invalid,
  heartbeat: invalid,
  executionContext: invalid,
  checkpoint: invalid,
  complete: invalid,
  fail: invalid,
  confirmCancel: invalid,
  recover: "same",
  decide: notRequired,
};
const held = { claim: notReady, heartbeat: "same", executionContext: "same", retry: denied, decide: notRequired };
const over = { ...unheld, claim: notReady, cancel: denied, timeout: denied, retry: denied };

/** For each state: where each command leads, `same` when it stays, or the code of the refusal. */
const outcomes: Record<WorkloadState, Record<string, string>> = {
  CREATED: { ...unheld, claim: notReady, cancel: "CANCELLED", timeout: denied, retry: denied },
  AWAITING_APPROVAL: {
    ...unheld,
    claim: "WORKLOAD_APPROVAL_PENDING",
    cancel: "CANCELLED",
    timeout: denied,
    retry: denied,
    decide: "READY",
  },
  READY: { ...unheld, claim: "CLAIMED", cancel: "CANCELLED", timeout: "READY", retry: denied },
  CLAIMED: {
    ...held,
    start: "RUNNING",
    checkpoint: denied,
    complete: denied,
    fail: "DEAD_LETTER",
    confirmCancel: denied,
    cancel: "CANCELLATION_REQUESTED",
    timeout: "READY",
    recover: "READY",
  },
  RUNNING: {
    ...held,
    start: denied,
    checkpoint: "CHECKPOINTED",
    complete: "SUCCEEDED",
    fail: "DEAD_LETTER",
    confirmCancel: denied,
    cancel: "CANCELLATION_REQUESTED",
    timeout: "READY",
    recover: "READY",
  },
  CHECKPOINTED: {
    ...held,
    start: denied,
    checkpoint: "same",
    complete: "SUCCEEDED",
    fail: "DEAD_LETTER",
    confirmCancel: denied,
    cancel: "CANCELLATION_REQUESTED",
    timeout: "READY",
    recover: "READY",
  },
  RECOVERING: {
    ...held,
    start: denied,
    checkpoint: denied,
    complete: denied,
    fail: denied,
    confirmCancel: denied,
    cancel: denied,
    timeout: denied,
    recover: "same",
  },
  CANCELLATION_REQUESTED: {
    ...held,
    start: denied,
    checkpoint: denied,
    complete: denied,
    fail: denied,
    confirmCancel: "CANCELLED",
    cancel: "same",
    timeout: denied,
    recover: "CANCELLED",
  },
  SUCCEEDED: over,
  FAILED: { ...unheld, claim: notReady, cancel: "CANCELLED", timeout: denied, retry: "READY" },
  CANCELLED: over,
  TIMED_OUT: { ...unheld, claim: notReady, cancel: denied, timeout: denied, retry: "READY" },
  DEAD_LETTER: { ...unheld, claim: notReady, cancel: "CANCELLED", timeout: denied, retry: "READY" },
  REJECTED: { ...over, claim: "WORKLOAD_REJECTED", decide: "WORKLOAD_APPROVAL_DECIDED" },
};

describe("every command in every state", () => {
  for (const state of workloadStates)
    for (const [name, command] of Object.entries(commands)) {
      const expected = outcomes[state][name];
      it(`answers ${name} in ${state} with ${expected}`, () => {
        const record = recordIn[state]();
        expect(record.state).toBe(state);
        const decision = command(record);
        const found = decision.ok
          ? decision.change === undefined || decision.change.record.history.length === record.history.length
            ? "same"
            : decision.change.record.state
          : decision.error.code;
        expect(found).toBe(expected);
        if (!decision.ok) expect(decision.change).toBeUndefined();
      });
    }
});
