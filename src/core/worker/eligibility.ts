import type { WorkloadRecord } from "../workload/record.ts";
import type { Labels, PlacementPolicy, PoolRecord, Slot, WorkerHealth, WorkerRecord } from "./record.ts";
import { activeOf, chooseSlot, type WorkerSeen } from "./slots.ts";

/** What a workload asks of a worker. */
export type PlacementNeed = Pick<
  WorkloadRecord,
  "workloadId" | "tenantId" | "applicationId" | "definitionId" | "capabilities"
> & { readonly placement?: PlacementPolicy | undefined };

/** A pool with its slots, as they were seen together. */
export interface PoolSeen {
  readonly record: PoolRecord;
  readonly slots: readonly Slot[];
}

/** Why a worker may not run a workload now. */
export type Ineligibility = { readonly message: string } & (
  | { readonly reason: "scope" }
  | { readonly reason: "lifecycle"; readonly lifecycle: WorkerRecord["lifecycle"] }
  | { readonly reason: "health"; readonly health: WorkerHealth }
  | { readonly reason: "capacity"; readonly active: number; readonly concurrency: number }
  | { readonly reason: "capabilities"; readonly missing: readonly string[] }
  | { readonly reason: "kind"; readonly definitionId: string }
  | { readonly reason: "required_labels"; readonly labels: readonly string[] }
  | { readonly reason: "anti_affinity"; readonly labels: readonly string[] }
  | { readonly reason: "pool_unknown"; readonly poolId: string }
  | { readonly reason: "pool_member"; readonly poolId: string }
  | { readonly reason: "pool_capabilities"; readonly missing: readonly string[] }
  | { readonly reason: "pool_labels"; readonly labels: readonly string[] }
  | { readonly reason: "pool_capacity"; readonly active: number; readonly maxConcurrency: number }
);

const missingFrom = (granted: readonly string[], needed: readonly string[]): readonly string[] =>
  needed.filter((name) => !granted.includes(name));

const hasLabel = (labels: Labels, name: string, value: string): boolean =>
  Object.hasOwn(labels, name) && labels[name] === value;

/** Names of those labels that the worker has with the same value. */
export const matchingLabels = (labels: Labels, wanted: Labels): readonly string[] =>
  Object.entries(wanted).flatMap(([name, value]) => (hasLabel(labels, name, value) ? [name] : []));

const lackingLabels = (labels: Labels, required: Labels): readonly string[] =>
  Object.entries(required).flatMap(([name, value]) => (hasLabel(labels, name, value) ? [] : [name]));

/** The worker alone: whether it takes work at all. */
function findUnavailable({ record, slots }: WorkerSeen): Ineligibility | undefined {
  const { lifecycle, health, concurrency } = record;
  if (lifecycle !== "READY") return { reason: "lifecycle", lifecycle, message: `it is ${lifecycle}` };
  if (health !== "HEALTHY") return { reason: "health", health, message: `its health is ${health}` };
  if (chooseSlot(concurrency, slots) !== undefined) return undefined;
  const active = activeOf(slots);
  return { reason: "capacity", active, concurrency, message: `${active} of its ${concurrency} slots are taken` };
}

/** The worker against what the workload asks for. */
function findUnfit({ record }: WorkerSeen, need: PlacementNeed): Ineligibility | undefined {
  const { definitionId, placement } = need;
  const missing = missingFrom(record.grantedCapabilities, need.capabilities);
  if (missing.length > 0) return { reason: "capabilities", missing, message: `it lacks ${missing.join(", ")}` };
  if (record.workloadKinds.length > 0 && !record.workloadKinds.includes(definitionId))
    return { reason: "kind", definitionId, message: `it does not run ${definitionId}` };
  const lacking = lackingLabels(record.labels, placement?.requiredLabels ?? {});
  if (lacking.length > 0)
    return {
      reason: "required_labels",
      labels: lacking,
      message: `its labels ${lacking.join(", ")} are not as required`,
    };
  const shunned = matchingLabels(record.labels, placement?.antiAffinity ?? {});
  if (shunned.length > 0)
    return { reason: "anti_affinity", labels: shunned, message: `its labels ${shunned.join(", ")} are to be avoided` };
  return undefined;
}

/** A pool of another tenant or application is as unknown as one that does not exist. */
const isOwnPool = (pool: PoolRecord, need: PlacementNeed, poolId: string): boolean =>
  pool.poolId === poolId &&
  pool.tenantId === need.tenantId &&
  (pool.applicationId === undefined || pool.applicationId === need.applicationId);

/** The worker against the pool that the workload names. */
function findOutsidePool(
  { record }: WorkerSeen,
  need: PlacementNeed,
  pool: PoolSeen | undefined,
): Ineligibility | undefined {
  const poolId = need.placement?.poolId;
  if (poolId === undefined) return undefined;
  if (pool === undefined || !isOwnPool(pool.record, need, poolId))
    return { reason: "pool_unknown", poolId, message: `there is no pool ${poolId}` };
  const { workerIds, capabilities, requiredLabels, maxConcurrency } = pool.record;
  if (!workerIds.includes(record.workerId))
    return { reason: "pool_member", poolId, message: `it is not in pool ${poolId}` };
  const missing = missingFrom(record.grantedCapabilities, capabilities);
  if (missing.length > 0)
    return { reason: "pool_capabilities", missing, message: `it lacks the pool's ${missing.join(", ")}` };
  const lacking = lackingLabels(record.labels, requiredLabels);
  if (lacking.length > 0)
    return { reason: "pool_labels", labels: lacking, message: `its labels ${lacking.join(", ")} are not the pool's` };
  if (maxConcurrency === undefined || chooseSlot(maxConcurrency, pool.slots) !== undefined) return undefined;
  const active = activeOf(pool.slots);
  return {
    reason: "pool_capacity",
    active,
    maxConcurrency,
    message: `${active} of the pool's ${maxConcurrency} slots are taken`,
  };
}

/**
 * Why a worker may not run a workload now, or nothing when it may. The conditions of contract 2.3 in their order: scope,
 * lifecycle, health, capacity, capabilities, kind, required labels, labels to avoid, and the pool: that it exists, has the
 * worker, its capabilities, its labels, its limit. The first that fails is the answer.
 */
export function findIneligibility(
  seen: WorkerSeen,
  need: PlacementNeed,
  pool: PoolSeen | undefined,
): Ineligibility | undefined {
  const { tenantId, applicationId } = seen.record;
  if (tenantId !== need.tenantId || applicationId !== need.applicationId)
    return { reason: "scope", message: "it belongs to another tenant or application" };
  return findUnavailable(seen) ?? findUnfit(seen, need) ?? findOutsidePool(seen, need, pool);
}
