import { z } from "zod";
import { workerHealths, workerRuntimes } from "../core/worker/record.ts";
import { LEASE_MS_MAX, PAGE_SIZE_MAX } from "./limits.ts";
import { identifier, identifiers, labels, whole } from "./shapes.ts";

/** Arguments of the calls about workers, pools and placement (contract 2), as HTTP, NATS and the library take them. */

const requestId = identifier.optional();
const scope = { tenantId: identifier, applicationId: identifier };
const worker = { ...scope, workerId: identifier, incarnation: identifier.optional() };
/** Most claims or attempts that one call may name. */
const CLAIMS_NAMED_MAX = 10_000;
const claimIds = z.array(identifier).max(CLAIMS_NAMED_MAX).default([]);
/** A number whose bounds are a rule, not a shape. */
const number = z.number();

/** Contract 2.2. */
export const registerWorkerRequest = z.strictObject({
  ...scope,
  name: identifier,
  runtime: z.enum(workerRuntimes),
  version: identifier,
  declaredCapabilities: identifiers.optional(),
  workloadKinds: identifiers.optional(),
  resourceProfile: z
    .strictObject({
      cpuMillis: number.optional(),
      memoryBytes: number.optional(),
      diskBytes: number.optional(),
      gpuCount: number.optional(),
    })
    .optional(),
  labels: labels.optional(),
  concurrency: number,
  heartbeatIntervalMs: number.optional(),
  heartbeatTimeoutMs: number.optional(),
  incarnation: identifier.optional(),
  requestId,
});

export const heartbeatWorkerRequest = z.strictObject({
  ...worker,
  version: identifier,
  capabilityVersion: whole(0),
  active: whole(0).default(0),
  health: z.enum(workerHealths),
  timestamp: whole(0),
  runningClaims: claimIds,
  requestId,
});

/** A call that names a worker and nothing else. */
export const workerRequest = z.strictObject({ ...worker, requestId });

export const reconcileWorkerRequest = z.strictObject({
  ...worker,
  version: identifier,
  capabilityVersion: whole(0),
  knownClaims: claimIds,
  runningAttempts: claimIds,
  timestamp: whole(0),
  requestId,
});

export const listWorkersRequest = z.strictObject({
  ...scope,
  limit: whole(1, PAGE_SIZE_MAX).default(100),
  /** The last worker of the page before. */
  after: identifier.optional(),
});

const pool = { tenantId: identifier, applicationId: identifier.optional() };

export const createPoolRequest = z.strictObject({
  ...pool,
  name: identifier,
  capabilities: identifiers.optional(),
  requiredLabels: labels.optional(),
  workerIds: identifiers.optional(),
  maxConcurrency: number.optional(),
  requestId,
});

export const poolRequest = z.strictObject({ ...pool, poolId: identifier, requestId });

export const changePoolRequest = z.strictObject({
  ...pool,
  poolId: identifier,
  add: identifiers.optional(),
  remove: identifiers.optional(),
  requestId,
});

export const listPoolsRequest = z.strictObject(pool);

/** Contract 2.3. */
export const placeRequest = z.strictObject({ ...scope, workloadId: identifier });

export const placeAndClaimRequest = z.strictObject({
  ...worker,
  workloadId: identifier,
  leaseMs: whole(1, LEASE_MS_MAX),
  start: z.boolean().optional(),
  requestId,
});

/** The claim as it was handed out, by a placement or by the queue; what is not looked at may be left out. */
export const validateClaimRequest = z.strictObject({
  ...scope,
  workloadId: identifier,
  workerId: identifier,
  claimId: identifier,
  fencingToken: whole(1),
  capabilities: identifiers.default([]),
  attemptId: identifier.optional(),
  leaseId: identifier.optional(),
  executionContextId: identifier.optional(),
  issuedAt: whole(0).optional(),
  claimedAt: whole(0).optional(),
  expiresAt: whole(0).optional(),
  lastHeartbeat: whole(0).optional(),
});
