import { assert } from "../../../src/base/assert.ts";
import type { ErrorCode, Refusal } from "../../../src/core/errors.ts";
import type { Subject } from "../../../src/core/subject.ts";
import type { WorkerDecision } from "../../../src/core/worker/decision.ts";
import { decideWorkerHeartbeat, type WorkerHeartbeat } from "../../../src/core/worker/heartbeat.ts";
import type { Slot, WorkerRecord } from "../../../src/core/worker/record.ts";
import { decideRegister, type RegisterRequest } from "../../../src/core/worker/registration.ts";
import { holdSlot, type WorkerSeen } from "../../../src/core/worker/slots.ts";
import type { GrantSnapshot } from "../../../src/core/workload/record.ts";
import { frozen, requestOf, T0 } from "../core/fixtures.ts";

export const registrar: Subject = { kind: "worker", id: "press" };

/** A grant that lets the registrar register, and gives the capabilities `cpu` and `gpu`. */
export const grantOf = (changes: Partial<GrantSnapshot> = {}): GrantSnapshot => ({
  ...requestOf().authorization,
  grantId: "grant_7",
  subject: registrar,
  capabilities: ["worker:register", "worker:capability:cpu", "worker:capability:gpu"],
  revision: 4,
  ...changes,
});

/** A plain registration; each test changes what it is about. */
export const registerRequest = (changes: Partial<RegisterRequest> = {}): RegisterRequest => ({
  tenantId: "acme",
  applicationId: "invoices",
  name: "press-1",
  runtime: "process",
  version: "1.0.0",
  concurrency: 2,
  declaredCapabilities: ["cpu", "gpu"],
  incarnation: "boot_1",
  ...changes,
});

export const register = (
  existing: WorkerRecord | undefined,
  changes: Partial<RegisterRequest> = {},
  context: { readonly now?: number; readonly grant?: GrantSnapshot } = {},
) => decideRegister(existing, registerRequest(changes), { registrar, grant: grantOf(), now: T0, ...context });

/** What a decision answered; a refusal fails the test. */
export function answerOf<Answer>(decision: WorkerDecision<Answer>): Answer {
  assert(decision.ok, `refused: ${decision.ok ? "" : `${decision.error.code} ${decision.error.message}`}`);
  return decision.answer;
}

/** The next version, of a decision that must not be a refusal and must commit. */
export function accepted<Answer>(decision: WorkerDecision<Answer>): WorkerRecord {
  answerOf(decision);
  assert(decision.record !== undefined, "nothing would be committed");
  return frozen(decision.record);
}

/** Why a decision was refused; an answer, or a refusal that commits, fails the test. */
export function refusalOf(decision: {
  readonly ok: boolean;
  readonly error?: Refusal;
  readonly record?: unknown;
}): Refusal {
  assert(!decision.ok && decision.error !== undefined, "it was not refused");
  assert(decision.record === undefined, "a refusal that should change nothing carries a record");
  return decision.error;
}

export const refusedWith = (decision: Parameters<typeof refusalOf>[0]): ErrorCode => refusalOf(decision).code;

export const registered = (changes: Partial<RegisterRequest> = {}): WorkerRecord =>
  accepted(register(undefined, changes));

/** A worker and what holds its slots: `withClaims(record, "a", undefined, "b")` holds the slots 0 and 2. */
export const withClaims = (record: WorkerRecord, ...claimIds: readonly (string | undefined)[]): WorkerSeen =>
  frozen({ record, slots: slotsFor(record, claimIds) });

const slotsFor = (record: WorkerRecord, claimIds: readonly (string | undefined)[]): readonly Slot[] =>
  claimIds.flatMap((claimId, index) =>
    claimId === undefined
      ? []
      : [
          holdSlot(record.workerId, index, {
            claimId,
            workloadId: `workload_of_${claimId}`,
            workerId: record.workerId,
            incarnation: record.incarnation.number,
          }),
        ],
  );

export const heartbeatOf = (record: WorkerRecord, changes: Partial<WorkerHeartbeat> = {}): WorkerHeartbeat => ({
  workerId: record.workerId,
  version: record.version,
  capabilityVersion: record.capabilityVersion,
  active: 0,
  health: "HEALTHY",
  timestamp: record.lastSeen,
  runningClaims: [],
  incarnation: record.incarnation.id,
  ...changes,
});

/** A worker that was heard once. */
export const ready = (changes: Partial<RegisterRequest> = {}, now: number = T0 + 1): WorkerRecord => {
  const record = registered(changes);
  return accepted(decideWorkerHeartbeat(withClaims(record), heartbeatOf(record), now));
};
