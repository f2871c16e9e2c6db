import { compareText, sortedSet } from "../../base/text-order.ts";
import { canonicalJson, type Json } from "../../base/json.ts";
import { refuse, type Refusal } from "../errors.ts";
import { sameSubject, type Subject } from "../subject.ts";
import { normalPlacement, type RequestedPlacement } from "../worker/placement-policy.ts";
import { changeOf, refused, type Decision } from "./decision.ts";
import { idempotencyScope, workloadIdOf } from "./identity.ts";
import { hashJson, inputSlot, placePayload } from "./payload.ts";
import {
  CONTRACT_VERSION,
  type ApprovalPolicy,
  type Dependency,
  type GrantSnapshot,
  type RetryPolicy,
  type Timeouts,
  type WorkloadRecord,
} from "./record.ts";
import { defaultRetryPolicy } from "./retry-policy.ts";
import type { WorkloadRules } from "./rules.ts";
import { findSecret } from "./secrets.ts";
import { eventTypes, type WorkloadState } from "./states.ts";

/** An approval policy as a request may give it: shape checked, rules not yet. */
export interface RequestedApproval {
  readonly approverKinds?: readonly string[] | undefined;
  readonly approvers?: readonly Subject[] | undefined;
  readonly requiredApprovals?: number | undefined;
}

/** A request to admit work (contract 1.7), its shape already checked. */
export interface AdmitRequest {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly environment: string;
  readonly definitionId: string;
  readonly definitionRevision: string;
  readonly trigger: string;
  readonly input: Json;
  readonly requestedBy: Subject;
  readonly sessionId?: string | undefined;
  readonly authorization: GrantSnapshot;
  /** Whether the grant is looked at again when the work is claimed. Default: `claim`, so it is (contract 4.2). */
  readonly reauthorize?: "claim" | "never" | undefined;
  readonly capabilities?: readonly string[] | undefined;
  readonly connectionScopes?: readonly string[] | undefined;
  readonly priority?: number | undefined;
  readonly idempotencyKey: string;
  readonly notBefore?: number | undefined;
  readonly retryPolicy?: { readonly [Field in keyof RetryPolicy]?: RetryPolicy[Field] | undefined } | undefined;
  readonly timeouts?: { readonly [Field in keyof Timeouts]?: number | undefined } | undefined;
  readonly dependencies?:
    | readonly { readonly workloadId: string; readonly requiredState?: WorkloadState | undefined }[]
    | undefined;
  readonly approval?: RequestedApproval | undefined;
  readonly placement?: RequestedPlacement | undefined;
}

/** What admitting answers: the record, and whether this call created it. */
export interface Admission {
  readonly record: WorkloadRecord;
  readonly created: boolean;
}

function definedOnly<Shape extends object>(shape: Shape): { [Field in keyof Shape]: Exclude<Shape[Field], undefined> } {
  return Object.fromEntries(Object.entries(shape).filter(([, value]) => value !== undefined)) as {
    [Field in keyof Shape]: Exclude<Shape[Field], undefined>;
  };
}

const normalRetryPolicy = (policy: AdmitRequest["retryPolicy"]): RetryPolicy => {
  // A jitter of 0 is the default, and the default is kept as an absent one, so that the two compare equal.
  const { jitter = 0, ...merged } = { ...defaultRetryPolicy, ...definedOnly(policy ?? {}) };
  return { ...merged, retryOn: sortedSet(merged.retryOn), ...(jitter === 0 ? {} : { jitter }) };
};

const normalDependencies = (dependencies: AdmitRequest["dependencies"]): readonly Dependency[] => {
  const byText = new Map<string, Dependency>();
  for (const { workloadId, requiredState = "SUCCEEDED" } of dependencies ?? [])
    byText.set(`${workloadId}\n${requiredState}`, { workloadId, requiredState });
  return [...byText.entries()].sort(([left], [right]) => compareText(left, right)).map(([, dependency]) => dependency);
};

const invalid = (path: string, rule: string): Refusal =>
  refuse("WORKLOAD_INVALID", `${path} ${rule}`, {
    paths: [path],
    issues: [{ path, message: rule }],
  });

/** The rules of contract 1.9 about a policy. */
function normalApproval(requested: RequestedApproval): ApprovalPolicy | Refusal {
  const kinds = requested.approverKinds ?? ["human"];
  const approvers = requested.approvers ?? [];
  const permitted: ("human" | "service")[] = [];
  for (const kind of kinds) {
    if (kind !== "human" && kind !== "service")
      return invalid("approval.approverKinds", "may hold human and service only");
    if (!permitted.includes(kind)) permitted.push(kind);
  }
  if (permitted.length === 0) return invalid("approval.approverKinds", "must not be empty");
  const byText = new Map<string, Subject>();
  for (const [index, approver] of approvers.entries()) {
    if (!permitted.some((kind) => kind === approver.kind))
      return invalid(`approval.approvers[${index}].kind`, "is not among the permitted kinds");
    byText.set(JSON.stringify([approver.kind, approver.id]), {
      kind: approver.kind,
      id: approver.id,
    });
  }
  const required = requested.requiredApprovals ?? 1;
  if (byText.size > 0 && required > byText.size)
    return invalid("approval.requiredApprovals", "is more than there are approvers");
  return {
    approverKinds: permitted.sort(compareText),
    approvers: [...byText.entries()]
      .sort(([left], [right]) => compareText(left, right))
      .map(([, approver]) => approver),
    ...(required > 1 ? { requiredApprovals: required } : {}),
  };
}

/** Contract 1.7, check 3. */
function findBadValue(request: AdmitRequest, workloadId: string): Refusal | undefined {
  if (request.idempotencyKey.trim() === "") return invalid("idempotencyKey", "must not be blank");
  for (const [name, value] of Object.entries(request.timeouts ?? {}))
    if (value !== undefined && value < 1) return invalid(`timeouts.${name}`, "must be at least 1 ms");
  if (request.timeouts?.approvalMs !== undefined && request.approval === undefined)
    return invalid("timeouts.approvalMs", "needs an approval policy");
  const own = request.dependencies?.findIndex((dependency) => dependency.workloadId === workloadId) ?? -1;
  if (own >= 0) return invalid(`dependencies[${own}].workloadId`, "names the workload itself, which could never run");
  return undefined;
}

/** Contract 1.7, check 4: the grant snapshot must bind requester, tenant and application. */
function findUnbound(request: AdmitRequest): Refusal | undefined {
  const { authorization } = request;
  const bound =
    sameSubject(authorization.subject, request.requestedBy) &&
    authorization.tenantId === request.tenantId &&
    authorization.applicationId === request.applicationId;
  return bound
    ? undefined
    : refuse("WORKLOAD_UNAUTHORIZED", "the grant does not bind the requester, the tenant and the application");
}

const placementAsJson = (requested: RequestedPlacement | undefined): Json | undefined => {
  const placement = normalPlacement(requested);
  return placement === undefined ? undefined : { ...placement };
};

const policyAsJson = (policy: ApprovalPolicy): Json => {
  const normal = normalApproval(policy);
  const { approverKinds, approvers, requiredApprovals = 1 } = "code" in normal ? policy : normal;
  return { approverKinds, approvers: approvers.map(({ kind, id }) => ({ kind, id })), requiredApprovals };
};

/**
 * The fields that a replay compares, in the order in which it names them (contract 1.7). Brought into the form in which
 * they are admitted, since an imported record may have its sets in another order or its defaults left out.
 */
const executionFields = (record: WorkloadRecord): readonly (readonly [string, Json | undefined])[] => [
  ["definitionId", record.definitionId],
  ["definitionRevision", record.definitionRevision],
  ["environment", record.environment],
  ["input", record.inputHash],
  ["capabilities", sortedSet(record.capabilities)],
  ["connectionScopes", sortedSet(record.connectionScopes)],
  ["priority", record.priority],
  ["retryPolicy", { ...normalRetryPolicy(record.retryPolicy) }],
  ["timeouts", { ...record.timeouts }],
  ["dependencies", normalDependencies(record.dependencies).map((dependency) => ({ ...dependency }))],
  ["notBefore", record.notBefore],
  ["approval", record.approval === undefined ? undefined : policyAsJson(record.approval.policy)],
  ["placement", placementAsJson(record.placement)],
];

const sameJson = (left: Json | undefined, right: Json | undefined): boolean =>
  left === undefined || right === undefined ? left === right : canonicalJson(left) === canonicalJson(right);

/** Answers a request whose identity is taken: the original, or IDEMPOTENCY_KEY_REUSED with every field that differs. */
function decideReplay(existing: WorkloadRecord, wanted: WorkloadRecord): Decision<Admission> {
  const wantedFields = new Map(executionFields(wanted));
  const fields = executionFields(existing)
    .filter(([name, value]) => !sameJson(value, wantedFields.get(name)))
    .map(([name]) => name);
  if (fields.length === 0) return { ok: true, answer: { record: existing, created: false } };
  return refused(
    refuse("IDEMPOTENCY_KEY_REUSED", `the idempotency key belongs to a request with another ${fields.join(", ")}`, {
      fields,
    }),
  );
}

/** The record that the request would create. */
function draftRecord(
  request: AdmitRequest,
  workloadId: string,
  approval: ApprovalPolicy | undefined,
  now: number,
): Omit<WorkloadRecord, "input"> {
  const state = approval === undefined ? "READY" : "AWAITING_APPROVAL";
  const placement = normalPlacement(request.placement);
  const evidence: Record<string, string> = {};
  if (approval !== undefined) evidence["approval"] = "required";
  if (request.notBefore !== undefined) evidence["notBefore"] = String(request.notBefore);
  return {
    contractVersion: CONTRACT_VERSION,
    workloadId,
    tenantId: request.tenantId,
    applicationId: request.applicationId,
    environment: request.environment,
    definitionId: request.definitionId,
    definitionRevision: request.definitionRevision,
    trigger: request.trigger,
    inputHash: hashJson(request.input),
    requestedBy: { kind: request.requestedBy.kind, id: request.requestedBy.id },
    ...(request.sessionId === undefined ? {} : { sessionId: request.sessionId }),
    authorization: request.authorization,
    ...(request.reauthorize === "never" ? { reauthorize: "never" as const } : {}),
    capabilities: sortedSet(request.capabilities ?? []),
    connectionScopes: sortedSet(request.connectionScopes ?? []),
    priority: request.priority ?? 0,
    idempotencyKey: request.idempotencyKey,
    ...(request.notBefore === undefined ? {} : { notBefore: request.notBefore, nextAttemptAt: request.notBefore }),
    createdAt: now,
    updatedAt: now,
    state,
    history: [
      {
        sequence: 1,
        type: eventTypes[state],
        from: "CREATED",
        to: state,
        actor: "authority",
        at: now,
        evidence,
      },
    ],
    attempts: [],
    checkpoints: [],
    retryPolicy: normalRetryPolicy(request.retryPolicy),
    timeouts: definedOnly(request.timeouts ?? {}),
    attemptCount: 0,
    retryCount: 0,
    fencingToken: 0,
    dependencies: normalDependencies(request.dependencies),
    ...(approval === undefined ? {} : { approval: { policy: approval } }),
    ...(placement === undefined ? {} : { placement }),
  };
}

/** The identity that a request has, whatever else it holds (contract 1.3). */
export const admittedIdOf = (
  request: Pick<AdmitRequest, "tenantId" | "applicationId" | "requestedBy" | "idempotencyKey">,
): string => workloadIdOf(idempotencyScope(request));

/** Admits work: creates the record, or answers as a replay does when the identity exists (contract 1.7). */
export function decideAdmit(
  existing: WorkloadRecord | undefined,
  request: AdmitRequest,
  context: { readonly now: number; readonly rules: WorkloadRules },
): Decision<Admission> {
  const { now, rules } = context;
  const placed = placePayload(request.input, {
    slot: inputSlot,
    path: "input",
    inlineMax: rules.inlineBytesMax,
    rules,
  });
  if (!placed.ok) return refused(placed.error);
  const secret = findSecret(request.input, "input", rules);
  if (secret !== undefined) return refused(secret);
  const workloadId = admittedIdOf(request);
  const bad = findBadValue(request, workloadId);
  if (bad !== undefined) return refused(bad);
  const approval = request.approval === undefined ? undefined : normalApproval(request.approval);
  if (approval !== undefined && "code" in approval) return refused(approval);
  const unbound = findUnbound(request);
  if (unbound !== undefined) return refused(unbound);
  const record: WorkloadRecord = {
    ...draftRecord(request, workloadId, approval, now),
    input: placed.value.payload,
  };
  if (existing !== undefined) return decideReplay(existing, record);
  const payloads = placed.value.put === undefined ? [] : [placed.value.put];
  return {
    ok: true,
    answer: { record, created: true },
    change: changeOf("admit", record, { payloads, reserve: false }),
  };
}
