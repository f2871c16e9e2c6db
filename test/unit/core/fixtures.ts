import { assert } from "../../../src/base/assert.ts";
import { decideAdmit, type AdmitRequest } from "../../../src/core/workload/admission.ts";
import { decideApproval } from "../../../src/core/workload/approval.ts";
import { decideClaim, decideStart, type ClaimCommand } from "../../../src/core/workload/claim.ts";
import type { Change, Decision } from "../../../src/core/workload/decision.ts";
import { decideFail } from "../../../src/core/workload/failure.ts";
import type { Fence } from "../../../src/core/workload/fence.ts";
import { decideCancel } from "../../../src/core/workload/operate.ts";
import { decideCheckpoint, decideComplete } from "../../../src/core/workload/progress.ts";
import type { WorkloadEvent, WorkloadRecord } from "../../../src/core/workload/record.ts";
import { defaultRules } from "../../../src/core/workload/rules.ts";
import { eventTypes, type WorkloadState } from "../../../src/core/workload/states.ts";
import type { ErrorCode, Refusal } from "../../../src/core/errors.ts";
import type { Subject } from "../../../src/core/subject.ts";

/** The instant at which the records of these tests are admitted, epoch ms. */
export const T0 = 1_000_000;

export const rules = defaultRules;

export const requester: Subject = { kind: "service", id: "billing" };
export const approver: Subject = { kind: "human", id: "ada" };

/** A plain request; each test changes what it is about. */
export const requestOf = (changes: Partial<AdmitRequest> = {}): AdmitRequest => ({
  tenantId: "acme",
  applicationId: "invoices",
  environment: "production",
  definitionId: "render",
  definitionRevision: "7",
  trigger: "nightly",
  input: { invoice: 42 },
  requestedBy: requester,
  authorization: {
    grantId: "grant_1",
    issuer: { kind: "service", id: "issuer" },
    subject: requester,
    tenantId: "acme",
    applicationId: "invoices",
    capabilities: [],
    resources: [],
    constraints: {},
    issuedAt: 0,
    expiresAt: 9_000_000,
    revision: 1,
  },
  idempotencyKey: "invoice-42",
  ...changes,
});

/** Freezes a record through and through, so that a decision that wrote into it would throw. */
export function frozen<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) frozen(part);
  }
  return value;
}

/** What a decision answered; a refusal fails the test. */
export function answerOf<Answer>(decision: Decision<Answer>): Answer {
  assert(decision.ok, `refused: ${decision.ok ? "" : `${decision.error.code} ${decision.error.message}`}`);
  return decision.answer;
}

/** What a decision commits, whether it answers or refuses. */
export function changeOf<Answer>(decision: Decision<Answer>): Change {
  assert(decision.change !== undefined, "nothing would be committed");
  return decision.change;
}

/** The next version of the record. */
export const committed = <Answer>(decision: Decision<Answer>): WorkloadRecord => frozen(changeOf(decision).record);

/** The next version, of a decision that must not be a refusal. */
export function accepted<Answer>(decision: Decision<Answer>): WorkloadRecord {
  answerOf(decision);
  return committed(decision);
}

/** Why a decision was refused; an answer fails the test. */
export function refusalOf<Answer>(decision: Decision<Answer>): Refusal {
  assert(!decision.ok, "it was not refused");
  return decision.error;
}

/** The code of a refusal that commits nothing. */
export function refusedWith<Answer>(decision: Decision<Answer>): ErrorCode {
  assert(decision.change === undefined, "a refusal that should change nothing carries a change");
  return refusalOf(decision).code;
}

export const admitted = (changes: Partial<AdmitRequest> = {}, now: number = T0): WorkloadRecord =>
  accepted(decideAdmit(undefined, requestOf(changes), { now, rules }));

export const noDependencies = new Map<string, WorkloadState>();

export const claimed = (record: WorkloadRecord, now: number, changes: Partial<ClaimCommand> = {}): WorkloadRecord =>
  accepted(
    decideClaim(
      record,
      { workerId: "w1", capabilities: record.capabilities, leaseMs: 10_000, ...changes },
      { now, dependencies: noDependencies },
    ),
  );

/** The fence of the current claim. */
export function fenceOf(record: WorkloadRecord): Fence {
  const claim = record.currentClaim;
  assert(claim !== undefined, "there is no claim");
  const { workloadId, claimId, workerId, fencingToken } = claim;
  return { workloadId, claimId, workerId, fencingToken };
}

export const started = (record: WorkloadRecord, now: number): WorkloadRecord =>
  accepted(decideStart(record, fenceOf(record), { now }));

export const running = (changes: Partial<AdmitRequest> = {}, now: number = T0): WorkloadRecord =>
  claimed(admitted(changes, now), now, { start: true });

export const approve = (record: WorkloadRecord, now: number, outcome: "approved" | "rejected" = "approved") =>
  decideApproval(
    record,
    { decider: approver, outcome, reason: "looked at it", grantId: "grant_2", inputHash: record.inputHash },
    { now, rules },
  );

export const checkpointed = (record: WorkloadRecord, now: number): WorkloadRecord =>
  accepted(decideCheckpoint(record, { fence: fenceOf(record), state: { page: 1 } }, { now, rules }));

export const complete = (
  record: WorkloadRecord,
  fence: Fence,
  how: {
    readonly now: number;
    readonly output?: string;
    readonly resultId?: string;
    readonly reservedFor?: string;
  },
) =>
  decideComplete(
    record,
    { fence, resultId: how.resultId, output: how.output ?? "done", artifacts: ["a.pdf"], schemaVersion: "1" },
    { now: how.now, rules, reservedFor: how.reservedFor },
  );

export const fail = (
  record: WorkloadRecord,
  fence: Fence,
  how: { readonly now: number; readonly kind?: string; readonly error?: string; readonly effect?: string },
) =>
  decideFail(
    record,
    { fence, kind: how.kind ?? "transient_connection", error: how.error ?? "no route", effect: how.effect },
    { now: how.now, rules },
  );

export const cancel = (record: WorkloadRecord, now: number) =>
  decideCancel(record, { actor: "olga", reason: "not needed" }, { now, rules });

/** A record in a state that commits only pass through, as an import may bring it. */
export function resting(record: WorkloadRecord, to: WorkloadState, at: number): WorkloadRecord {
  const event: WorkloadEvent = {
    sequence: record.history.length + 1,
    type: eventTypes[to],
    from: record.state,
    to,
    actor: "import",
    at,
    evidence: {},
  };
  return frozen({ ...record, state: to, history: [...record.history, event], updatedAt: at });
}

/** A record in each state, reached by commands where commands can reach it. All events are at or before T0 + 5. */
export const recordIn: Readonly<Record<WorkloadState, () => WorkloadRecord>> = {
  CREATED: () => frozen({ ...admitted(), state: "CREATED", history: [] }),
  AWAITING_APPROVAL: () => admitted({ approval: {} }),
  READY: () => admitted(),
  CLAIMED: () => claimed(admitted(), T0 + 1),
  RUNNING: () => running(),
  CHECKPOINTED: () => checkpointed(running(), T0 + 2),
  RECOVERING: () => resting(running(), "RECOVERING", T0 + 3),
  CANCELLATION_REQUESTED: () => accepted(cancel(running(), T0 + 2)),
  SUCCEEDED: () => {
    const record = running();
    return accepted(complete(record, fenceOf(record), { now: T0 + 2 }));
  },
  FAILED: () => {
    const { currentClaim: _ended, ...record } = running();
    return resting(record, "FAILED", T0 + 3);
  },
  CANCELLED: () => accepted(cancel(admitted(), T0 + 2)),
  TIMED_OUT: () => resting(admitted(), "TIMED_OUT", T0 + 3),
  DEAD_LETTER: () => {
    const record = running();
    return accepted(fail(record, fenceOf(record), { now: T0 + 2, kind: "bug" }));
  },
  REJECTED: () => accepted(approve(admitted({ approval: {} }), T0 + 2, "rejected")),
};
