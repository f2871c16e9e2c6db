import { sha256Hex, spreadHash } from "../base/hash.ts";
import { decodeToken, encodeToken } from "../base/token.ts";

/** Key layout (contract 5.2). No identifier can widen a subject or meet another: see base/token.ts. */

export interface Scope {
  readonly tenantId: string;
  readonly applicationId: string;
}

const scoped = (family: string, scope: Scope, ...rest: string[]): string =>
  [family, encodeToken(scope.tenantId), encodeToken(scope.applicationId), ...rest].join(".");

/** The record of a workload. */
export const workloadKey = (scope: Scope, workloadId: string): string => scoped("w", scope, encodeToken(workloadId));

/** Matches a workload whatever its tenant and application: for callers that know the id alone. */
export const workloadPattern = (workloadId: string): string => `w.*.*.${encodeToken(workloadId)}`;

/** A payload kept beside a record: `slot` tells which one. */
export const payloadKey = (scope: Scope, workloadId: string, slot: string): string =>
  scoped("b", scope, encodeToken(workloadId), encodeToken(slot));

/** The reservation of a caller's result id. Hashed, since three long identifiers would not fit a subject. */
export const resultKey = (scope: Scope, resultId: string): string => scoped("x", scope, sha256Hex(resultId));

/** What one claimNext request took, so that its repeat gets the same. Vanishes by itself. */
export const claimRequestKey = (scope: Scope, operationId: string): string =>
  scoped("q", scope, encodeToken(operationId));

/** The record of a worker. */
export const workerKey = (scope: Scope, workerId: string): string => scoped("k", scope, encodeToken(workerId));

/** One of a worker's, or of a pool's, places for a claim. */
export const slotKey = (scope: Scope, ownerId: string, index: number): string =>
  scoped("s", scope, encodeToken(ownerId), String(index));

/** What the keys of all slots of a worker, or of a pool, begin with. */
export const slotsPrefix = (scope: Scope, ownerId: string): string => scoped("s", scope, encodeToken(ownerId));

/** A pool of a tenant, or of one application of it. The token of no application is none that an identifier is encoded to. */
export const poolKey = (
  scope: { readonly tenantId: string; readonly applicationId?: string | undefined },
  poolId: string,
): string => {
  const application = scope.applicationId === undefined ? "=" : encodeToken(scope.applicationId);
  return ["p", encodeToken(scope.tenantId), application, encodeToken(poolId)].join(".");
};

/** The tenant and application of a worker's, a slot's or a revocation's key; `undefined` for a pool, which may be of several. */
export function scopeOfKey(key: string): Scope | undefined {
  const [family, tenant = "", application = ""] = key.split(".");
  const tenantId = decodeToken(tenant);
  const applicationId = decodeToken(application);
  return family === "p" || tenantId === undefined || applicationId === undefined
    ? undefined
    : { tenantId, applicationId };
}

/** The worker or the pool that a worker's or a slot's key names. */
export const ownerOfKey = (key: string): string => decodeToken(key.split(".")[3] ?? "") ?? "";

/** Whether a key is that of a worker, a slot or a pool. */
export const isRegistryKey = (key: string): boolean => /^[ksp]\./.test(key);

/** A revocation, by what it ends. Hashed, since the names of subjects and grants may be long. */
export const revocationKey = (scope: Scope, target: string): string => scoped("g", scope, sha256Hex(target));

/** The heartbeat of an authority node. */
export const nodeKey = (nodeId: string): string => `n.${encodeToken(nodeId)}`;

/** Format version, minimum reader and writer, number of shards. */
export const META_KEY = "m.meta";

/** Which shard holds all records of a tenant's application. */
export const shardOf = (scope: Scope, shards: number): number =>
  shards === 1 ? 0 : spreadHash(JSON.stringify([scope.tenantId, scope.applicationId])) % shards;
