import { z } from "zod";
import { walkJson } from "../base/json.ts";
import type { GrantSnapshot } from "../core/workload/record.ts";
import {
  ATTEMPTS_MAX,
  BATCH_SIZE_MAX,
  CLAIMS_MAX,
  LEASE_MS_MAX,
  PAGE_SIZE_MAX,
  SET_SIZE_MAX,
  WAIT_MS_MAX,
} from "./limits.ts";
import { exactJson, identifier, identifiers, key, labels, state, subject, text, whole } from "./shapes.ts";

/** Arguments of every call of contract 6.1, as HTTP, NATS and the library take them. Unknown members are refused: a typing error must not pass for a default. */

const requestId = identifier.optional();

const fence = { workloadId: identifier, claimId: identifier, workerId: identifier, fencingToken: whole(1) };

/** A grant snapshot keeps members that this version does not know. */
const grantSnapshot = z
  .looseObject({
    grantId: identifier,
    issuer: z.union([subject, identifier.transform((id) => ({ kind: "service" as const, id }))]),
    subject,
    tenantId: identifier,
    applicationId: identifier,
    capabilities: identifiers.default([]),
    resources: z
      .array(z.looseObject({ kind: identifier, uri: text }))
      .max(SET_SIZE_MAX)
      .default([]),
    constraints: z.record(z.string(), exactJson).default({}),
    issuedAt: whole(0).default(0),
    expiresAt: whole(0).default(Number.MAX_SAFE_INTEGER),
    revision: whole(0).default(0),
    ancestors: z
      .array(z.looseObject({ grantId: identifier, subject, revision: whole(0).default(0) }))
      .max(SET_SIZE_MAX)
      .optional(),
    token: text.optional(),
  })
  .refine((grant) => walkJson(grant, "").problem === undefined, "is not exact JSON")
  .transform((grant): GrantSnapshot => grant as GrantSnapshot);

const retryPolicy = z.strictObject({
  maxAttempts: whole(1, ATTEMPTS_MAX).optional(),
  initialDelayMs: whole(0).optional(),
  maxDelayMs: whole(0).optional(),
  backoff: z.enum(["exponential", "fixed"]).optional(),
  retryOn: identifiers.optional(),
  jitter: z.number().min(0).max(1).optional(),
});

const lengthMs = whole(0).optional();

const timeouts = z.strictObject({
  queueMs: lengthMs,
  claimMs: lengthMs,
  executionMs: lengthMs,
  heartbeatMs: lengthMs,
  overallMs: lengthMs,
  approvalMs: lengthMs,
});

const dependency = z.strictObject({ workloadId: identifier, requiredState: state.optional() });

const approval = z.strictObject({
  approverKinds: z.array(z.string()).max(SET_SIZE_MAX).optional(),
  approvers: z.array(subject).max(SET_SIZE_MAX).optional(),
  requiredApprovals: whole(1, SET_SIZE_MAX).optional(),
});

/** Contract 2.1. */
const placement = z.strictObject({
  requiredLabels: labels.optional(),
  affinity: labels.optional(),
  antiAffinity: labels.optional(),
  poolId: identifier.optional(),
});

/** Contract 1.7. */
export const admitRequest = z.strictObject({
  tenantId: identifier,
  applicationId: identifier,
  environment: identifier,
  definitionId: identifier,
  definitionRevision: identifier,
  trigger: text,
  input: exactJson,
  requestedBy: subject,
  sessionId: identifier.optional(),
  authorization: grantSnapshot,
  reauthorize: z.enum(["claim", "never"]).optional(),
  capabilities: identifiers.optional(),
  connectionScopes: identifiers.optional(),
  priority: whole(-2_147_483_648, 2_147_483_647).optional(),
  idempotencyKey: key,
  notBefore: whole(0).optional(),
  retryPolicy: retryPolicy.optional(),
  timeouts: timeouts.optional(),
  dependencies: z.array(dependency).max(SET_SIZE_MAX).optional(),
  approval: approval.optional(),
  placement: placement.optional(),
  requestId,
});

/** The items are checked one by one, so that a bad one refuses itself alone. */
export const admitManyRequest = z.array(z.unknown()).max(BATCH_SIZE_MAX);

export const claimRequest = z.strictObject({
  workloadId: identifier,
  workerId: identifier,
  capabilities: identifiers.default([]),
  leaseMs: whole(1, LEASE_MS_MAX),
  start: z.boolean().optional(),
  incarnation: identifier.optional(),
  requestId,
});

export const claimNextRequest = z.strictObject({
  tenantId: identifier,
  applicationId: identifier,
  workerId: identifier,
  capabilities: identifiers.default([]),
  max: whole(1, CLAIMS_MAX).default(1),
  waitMs: whole(0, WAIT_MS_MAX).default(0),
  leaseMs: whole(1, LEASE_MS_MAX),
  start: z.boolean().optional(),
  incarnation: identifier.optional(),
  requestId,
});

export const fenceRequest = z.strictObject({ ...fence, requestId });

export const heartbeatRequest = z.strictObject({ ...fence, extendMs: whole(1, LEASE_MS_MAX), requestId });

export const contextRequest = z.strictObject({
  ...fence,
  secretReferences: z.array(text).max(SET_SIZE_MAX).default([]),
  requestId,
});

export const checkpointRequest = z.strictObject({ ...fence, state: exactJson, requestId });

export const completeRequest = z.strictObject({
  ...fence,
  resultId: identifier.optional(),
  output: exactJson,
  artifacts: z.array(text).max(SET_SIZE_MAX).default([]),
  schemaVersion: z.union([identifier, whole(0)]).default("1"),
  requestId,
});

export const failRequest = z.strictObject({
  ...fence,
  kind: identifier,
  error: z.string(),
  effect: z.string().optional(),
  requestId,
});

/** Who operates: recorded as the event's actor. */
const actor = z.union([identifier, subject.transform(({ id }) => id)]);

export const operateRequest = z.strictObject({ workloadId: identifier, actor, reason: text.optional(), requestId });

export const decideRequest = z.strictObject({
  workloadId: identifier,
  decider: subject,
  outcome: z.enum(["approved", "rejected"]),
  reason: text.optional(),
  grantId: identifier,
  inputHash: identifier,
  requestId,
});

export const getRequest = z.strictObject({ workloadId: identifier });

/** Contract 1.13. Times are bounds of createdAt, ms: from inclusive, to exclusive. */
export const listRequest = z.strictObject({
  tenantId: identifier.optional(),
  applicationId: identifier.optional(),
  state: z.union([state, z.array(state).max(SET_SIZE_MAX)]).optional(),
  definitionId: identifier.optional(),
  requestedBy: subject.optional(),
  workerId: identifier.optional(),
  createdFrom: whole(0).optional(),
  createdTo: whole(0).optional(),
  limit: whole(1, PAGE_SIZE_MAX).default(100),
  cursor: text.optional(),
});

export type ClaimNextRequest = z.output<typeof claimNextRequest>;
export type ListRequest = z.output<typeof listRequest>;
