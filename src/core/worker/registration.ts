import { sortedSet } from "../../base/text-order.ts";
import { refuse, type Refusal } from "../errors.ts";
import { grantNamesOf } from "../grant/snapshot.ts";
import { sameSubject, type Subject } from "../subject.ts";
import type { GrantSnapshot } from "../workload/record.ts";
import { sameValue } from "../workload/same-value.ts";
import { refuseIssues, type Issue, type WorkerDecision } from "./decision.ts";
import { workerIdOf } from "./identity.ts";
import { checkSuccessor, withIncarnation } from "./incarnation.ts";
import {
  CONCURRENCY_MAX,
  type Incarnation,
  type Labels,
  type ResourceProfile,
  type WorkerRecord,
  type WorkerRuntimeKind,
} from "./record.ts";

/** Contract 2.1. */
export const HEARTBEAT_INTERVAL_MS = 10_000;
export const HEARTBEAT_TIMEOUT_MS = 30_000;

/** A request to register a worker (contract 2.2), its shape already checked. */
export interface RegisterRequest {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly name: string;
  readonly runtime: WorkerRuntimeKind;
  readonly version: string;
  readonly concurrency: number;
  readonly declaredCapabilities?: readonly string[] | undefined;
  /** Definitions that it runs. Absent or empty: any. */
  readonly workloadKinds?: readonly string[] | undefined;
  readonly resourceProfile?: { readonly [Field in keyof ResourceProfile]?: number | undefined } | undefined;
  readonly labels?: Labels | undefined;
  readonly heartbeatIntervalMs?: number | undefined;
  readonly heartbeatTimeoutMs?: number | undefined;
  /** Chosen by the process when it starts. Absent: that of the record. */
  readonly incarnation?: string | undefined;
}

/** Who registers, under which verified grant, when. */
export interface RegistrationContext {
  readonly registrar: Subject;
  readonly grant: GrantSnapshot;
  readonly now: number;
}

export interface Registration {
  readonly record: WorkerRecord;
  readonly created: boolean;
  /** Given: this registration replaced that incarnation. Claims of it are to be taken away (see `supersededSlots`). */
  readonly superseded?: Incarnation;
}

/** What a worker says about itself and a registration may change. */
type Description = Pick<
  WorkerRecord,
  | "runtime"
  | "version"
  | "declaredCapabilities"
  | "grantedCapabilities"
  | "workloadKinds"
  | "resourceProfile"
  | "labels"
  | "concurrency"
  | "heartbeatIntervalMs"
  | "heartbeatTimeoutMs"
  | "capabilityVersion"
  | "grantId"
  | "grants"
>;

const isWhole = (value: number, min: number, max: number): boolean =>
  Number.isSafeInteger(value) && !Object.is(value, -0) && value >= min && value <= max;

function findBadValues(request: RegisterRequest): Refusal | undefined {
  const issues: Issue[] = [];
  const check = (path: string, holds: boolean, message: string): void => {
    if (!holds) issues.push({ path, message });
  };
  check("name", request.name.trim() !== "", "must not be blank");
  const { concurrency, heartbeatIntervalMs = 1, heartbeatTimeoutMs = 1 } = request;
  check("concurrency", isWhole(concurrency, 1, CONCURRENCY_MAX), `must be a whole number from 1 to ${CONCURRENCY_MAX}`);
  for (const [path, value] of Object.entries({ heartbeatIntervalMs, heartbeatTimeoutMs }))
    check(path, isWhole(value, 1, Number.MAX_SAFE_INTEGER), "must be at least 1 ms");
  for (const [name, value] of Object.entries(request.resourceProfile ?? {}))
    check(
      `resourceProfile.${name}`,
      value === undefined || isWhole(value, 0, Number.MAX_SAFE_INTEGER),
      "must be a whole number, 0 or more",
    );
  return refuseIssues(issues);
}

function findUnbound(request: RegisterRequest, { registrar, grant }: RegistrationContext): Refusal | undefined {
  const bound =
    sameSubject(grant.subject, registrar) &&
    grant.tenantId === request.tenantId &&
    grant.applicationId === request.applicationId;
  return bound
    ? undefined
    : refuse("WORKER_UNAUTHORIZED", "the grant does not bind the registrar, the tenant and the application");
}

function describe(request: RegisterRequest, grant: GrantSnapshot): Description {
  const declaredCapabilities = sortedSet(request.declaredCapabilities ?? []);
  const granted = new Set(grant.capabilities);
  const profile = Object.entries(request.resourceProfile ?? {}).filter(([, value]) => value !== undefined);
  return {
    runtime: request.runtime,
    version: request.version,
    declaredCapabilities,
    grantedCapabilities: declaredCapabilities.filter((name) => granted.has(`worker:capability:${name}`)),
    workloadKinds: sortedSet(request.workloadKinds ?? []),
    resourceProfile: Object.fromEntries(profile),
    labels: request.labels ?? {},
    concurrency: request.concurrency,
    heartbeatIntervalMs: request.heartbeatIntervalMs ?? HEARTBEAT_INTERVAL_MS,
    heartbeatTimeoutMs: request.heartbeatTimeoutMs ?? HEARTBEAT_TIMEOUT_MS,
    capabilityVersion: grant.revision,
    grantId: grant.grantId,
    grants: grantNamesOf(grant),
  };
}

function registerFirst(request: RegisterRequest, { grant, now }: RegistrationContext): WorkerRecord {
  const { tenantId, applicationId, name, incarnation = "incarnation_1" } = request;
  return {
    contractVersion: 1,
    workerId: workerIdOf(request),
    tenantId,
    applicationId,
    name,
    ...describe(request, grant),
    health: "UNKNOWN",
    lifecycle: "REGISTERED",
    lastSeen: now,
    incarnation: { id: incarnation, number: 1 },
    superseded: [],
    registeredAt: now,
  };
}

/**
 * Registers a worker, or registers it again (contract 2.2). The same registration of the same process answers the record
 * and commits nothing. A new process supersedes the one before it and begins its life anew, whatever became of that one.
 */
export function decideRegister(
  existing: WorkerRecord | undefined,
  request: RegisterRequest,
  context: RegistrationContext,
): WorkerDecision<Registration> {
  const refusal =
    findBadValues(request) ??
    findUnbound(request, context) ??
    (existing === undefined ? undefined : checkSuccessor(existing, request.incarnation));
  if (refusal !== undefined) return { ok: false, error: refusal };
  if (existing === undefined) {
    const record = registerFirst(request, context);
    return { ok: true, answer: { record, created: true }, record };
  }
  const described: WorkerRecord = {
    ...existing,
    ...describe(request, context.grant),
    ...withIncarnation(existing, request.incarnation),
  };
  if (sameValue(described, existing)) return { ok: true, answer: { record: existing, created: false } };
  const seen: WorkerRecord = { ...described, lastSeen: Math.max(existing.lastSeen, context.now) };
  if (seen.incarnation.number === existing.incarnation.number)
    return { ok: true, answer: { record: seen, created: false }, record: seen };
  const reborn: WorkerRecord = { ...seen, lifecycle: "REGISTERED", health: "UNKNOWN" };
  return {
    ok: true,
    answer: { record: reborn, created: false, superseded: existing.incarnation },
    record: reborn,
  };
}
