import { z } from "zod";
import { workerHealths, workerLifecycles, workerRuntimes } from "../core/worker/record.ts";
import { identifier } from "../wire/shapes.ts";
import {
  changePoolRequest,
  createPoolRequest,
  heartbeatWorkerRequest,
  listWorkersRequest,
  poolRequest,
  reconcileWorkerRequest,
  registerWorkerRequest,
  validateClaimRequest,
  workerRequest,
} from "../wire/worker-requests.ts";

/** Shapes of what travels over HTTP about workers, for the document of the routes; see `schemas.ts`. */

const text = z.string();
const texts = z.array(text);
const labels = z.record(text, text);
const named = { tenantId: true, applicationId: true, workerId: true } as const;

/** Whose worker it is: needed, since a worker's id alone says nothing of it. */
export const ownerQuery = z.strictObject({ tenantId: identifier, applicationId: identifier });
export const poolOwnerQuery = z.strictObject({ tenantId: identifier, applicationId: identifier.optional() });
export const listWorkersQuery = listWorkersRequest;

export const registerBody = registerWorkerRequest;
export const heartbeatBody = heartbeatWorkerRequest.omit(named);
export const reconcileBody = reconcileWorkerRequest.omit(named);
export const workerBody = workerRequest.omit(named);
export const createPoolBody = createPoolRequest;
export const poolMembersBody = changePoolRequest.omit({ tenantId: true, applicationId: true, poolId: true });
export const poolBody = poolRequest.omit({ tenantId: true, applicationId: true, poolId: true });
export const validateBody = validateClaimRequest;

export const worker = z.looseObject({
  contractVersion: z.literal(1),
  workerId: text,
  tenantId: text,
  applicationId: text,
  name: text,
  runtime: z.enum(workerRuntimes),
  version: text,
  declaredCapabilities: texts,
  grantedCapabilities: texts,
  workloadKinds: texts,
  resourceProfile: z.record(text, z.number()),
  labels,
  capacity: z.strictObject({ concurrency: z.int(), active: z.int() }),
  health: z.enum(workerHealths),
  lifecycle: z.enum(workerLifecycles),
  heartbeatIntervalMs: z.int(),
  heartbeatTimeoutMs: z.int(),
  lastSeen: z.int(),
  capabilityVersion: z.int(),
  grantId: text,
  incarnation: z.strictObject({ id: text, number: z.int() }),
  registeredAt: z.int(),
  claims: texts,
});

export const registerAnswer = z.strictObject({ worker, created: z.boolean() });
export const heartbeatAnswer = z.strictObject({ worker, stopClaims: texts, missingClaims: texts });
export const reconcileAnswer = z.strictObject({
  worker,
  authoritativeClaims: z.array(z.looseObject({ claimId: text, workloadId: text })),
  fencedClaims: texts,
  cancelAttempts: texts,
});
export const workersAnswer = z.strictObject({ workers: z.array(worker), after: text.optional() });
export const pool = z.strictObject({
  poolId: text,
  tenantId: text,
  applicationId: text.optional(),
  name: text,
  capabilities: texts,
  requiredLabels: labels,
  workerIds: texts,
  maxConcurrency: z.int().optional(),
  createdAt: z.int(),
});
export const poolsAnswer = z.strictObject({ pools: z.array(pool) });
export const placementAnswer = z.strictObject({
  decisionId: text,
  workloadId: text,
  eligibleWorkers: texts,
  selectedWorker: text,
  reason: text,
  evaluatedAt: z.int(),
});
export const validAnswer = z.strictObject({ valid: z.literal(true) });
