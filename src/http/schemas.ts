import { z } from "zod";
import { errorRegistry, type ErrorCode } from "../core/errors.ts";
import { revokeRequest } from "../wire/grant-codec.ts";
import { admitManyRequest, admitRequest, decideRequest, listRequest, operateRequest } from "../wire/requests.ts";
import { WAIT_MS_MAX } from "../wire/limits.ts";
import { exactJson, identifier, state, subject, whole } from "../wire/shapes.ts";

/**
 * Shapes of what travels over HTTP, for the document of the routes. Requests are checked by the authority against the
 * shapes of src/wire, from which these are derived; answers are checked against these by the tests.
 */

const codes = Object.keys(errorRegistry) as [ErrorCode, ...ErrorCode[]];

export const problem = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.enum(codes),
  details: z.record(z.string(), z.unknown()).optional(),
  definite: z.boolean(),
  retry: z.boolean(),
});

export const scopeQuery = z.strictObject({
  tenantId: identifier.optional(),
  applicationId: identifier.optional(),
});

const text = z.string();

/** A filter as a query has it: every value a text, `state` as often as wanted. */
export const listQuery = z.strictObject({
  ...listRequest.shape,
  state: z.array(state).optional(),
  requestedBy: text.optional().describe("kind:id"),
});

export const approvalsQuery = z.strictObject({
  ...scopeQuery.shape,
  limit: listRequest.shape.limit,
  cursor: text.optional(),
});

export const resultQuery = z.strictObject({ ...scopeQuery.shape, waitMs: whole(0, WAIT_MS_MAX).default(0) });

export const eventsQuery = z.strictObject({
  ...scopeQuery.shape,
  workloadId: identifier.optional(),
  state: z.array(state).optional(),
  "Last-Event-ID": text.optional().describe("For clients that can't set the header."),
});

/** The subject and the grant come from the headers; in open mode the grant may be left out. */
export const admitBody = admitRequest.partial({ requestedBy: true, authorization: true });
export const admitManyBody = admitManyRequest.describe("Up to 1000 requests to admit work, each answered on its own.");
export const decideBody = decideRequest
  .omit({ workloadId: true, decider: true })
  .extend({ grantId: identifier.default("open") });
export const operateBody = operateRequest.omit({ workloadId: true, actor: true });

const event = z.looseObject({
  sequence: z.int(),
  type: text,
  from: state.optional(),
  to: state,
  actor: text,
  at: z.int(),
  evidence: z.record(z.string(), z.string()),
});

export const workload = z.looseObject({
  contractVersion: z.int(),
  workloadId: text,
  tenantId: text,
  applicationId: text,
  environment: text,
  definitionId: text,
  definitionRevision: text,
  trigger: text,
  input: exactJson,
  inputHash: text,
  requestedBy: subject,
  capabilities: z.array(text),
  connectionScopes: z.array(text),
  priority: z.int(),
  idempotencyKey: text,
  createdAt: z.int(),
  updatedAt: z.int(),
  state,
  history: z.array(event),
  attempts: z.array(z.looseObject({ attemptId: text, status: text })),
  checkpoints: z.array(z.looseObject({ checkpointId: text, sequence: z.int() })),
  attemptCount: z.int(),
  retryCount: z.int(),
  fencingToken: z.int(),
});

const result = z.looseObject({ resultId: text, output: exactJson });

export const admitAnswer = z.strictObject({ workload, created: z.boolean() });
export const admitManyAnswer = z.array(
  z.union([
    z.strictObject({ ok: z.literal(true), workload, created: z.boolean() }),
    z.strictObject({ ok: z.literal(false), error: problem }),
  ]),
);
export const pageAnswer = z.strictObject({ workloads: z.array(workload), cursor: text.optional() });
export const resultAnswer = z.strictObject({
  workloadId: text,
  state,
  settled: z.boolean(),
  result: result.optional(),
  lastFailure: text.optional(),
});
export const explainAnswer = z.strictObject({
  workloadId: text,
  reasons: z.array(z.looseObject({ reason: text, message: text })),
});
export const decideAnswer = z.strictObject({
  decision: z.looseObject({ outcome: z.enum(["approved", "rejected"]), decidedBy: subject, decidedAt: z.int() }),
  replayed: z.boolean(),
});
export const stateAnswer = z.strictObject({ state });
export const readinessAnswer = z.strictObject({
  nodeId: text,
  ready: z.boolean(),
  reasons: z.array(text),
  viewAgeMs: z.number().optional(),
  clockOffsetMs: z.number().optional(),
});
export const livenessAnswer = z.strictObject({ nodeId: text, mode: z.enum(["open", "secure"]) });
export const changeEvent = z.strictObject({
  workloadId: text,
  tenantId: text,
  applicationId: text,
  definitionId: text,
  state,
  type: text,
  actor: text,
  sequence: z.int(),
  at: z.int(),
  shard: z.int(),
  revision: z.int(),
});

export const jwksAnswer = z.strictObject({ keys: z.array(z.looseObject({ kty: text, kid: text })) });

/** Tenant and application are the grant's; in open mode they must be named. */
export const revokeBody = revokeRequest.partial({ tenantId: true, applicationId: true });
export const revocation = z.looseObject({
  contractVersion: z.literal(1),
  tenantId: text,
  applicationId: text,
  target: z.looseObject({ kind: z.enum(["grant", "subject", "application", "tenant"]) }),
  revokedBy: subject,
  grantId: text,
  revokedAt: z.int(),
  reason: text.optional(),
});
