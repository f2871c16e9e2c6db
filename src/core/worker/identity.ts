import { sha256Hex } from "../../base/hash.ts";
import type { PlacementDecision } from "./record.ts";

/** The id of a worker, from its name within the tenant's application (contract 2.1). */
export const workerIdOf = (named: {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly name: string;
}): string => `worker_${sha256Hex(JSON.stringify([named.tenantId, named.applicationId, named.name])).slice(0, 24)}`;

/** The id of a pool, from its name within the tenant, or within the application that it belongs to. */
export const poolIdOf = (named: {
  readonly tenantId: string;
  readonly applicationId?: string | undefined;
  readonly name: string;
}): string =>
  `pool_${sha256Hex(JSON.stringify([named.tenantId, named.applicationId ?? null, named.name])).slice(0, 24)}`;

/** The id of a placement: the same inputs at the same instant have the same. */
export const placementIdOf = (decision: Omit<PlacementDecision, "decisionId" | "reason">): string => {
  const { workloadId, evaluatedAt, selectedWorker = null, eligibleWorkers } = decision;
  const text = JSON.stringify([workloadId, evaluatedAt, selectedWorker, ...eligibleWorkers]);
  return `placement_${sha256Hex(text).slice(0, 20)}`;
};

/** The context in which a claim's attempt runs (contract 2.3). */
export const executionContextIdOf = (claimId: string): string => `context_${claimId}`;
