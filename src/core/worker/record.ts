import type { GrantName } from "../grant/revocation.ts";

/** Contract 2.1. Worker, pool and slot as they are committed; what is derived from the slots is in `slots.ts`. */

export const workerRuntimes = [
  "wasm",
  "process",
  "container",
  "browser",
  "remote",
  "hosted",
  "edge",
  "customer",
] as const;
export type WorkerRuntimeKind = (typeof workerRuntimes)[number];

export const workerHealths = ["HEALTHY", "DEGRADED", "UNHEALTHY", "UNKNOWN"] as const;
export type WorkerHealth = (typeof workerHealths)[number];

export const workerLifecycles = ["REGISTERED", "READY", "BUSY", "DRAINING", "OFFLINE", "RECOVERING"] as const;
export type WorkerLifecycle = (typeof workerLifecycles)[number];

/** Most slots that a worker or a pool may have: each is a record of its own. */
export const CONCURRENCY_MAX = 10_000;

export type Labels = { readonly [name: string]: string };

/** What a worker's machine offers; all optional, all whole numbers. */
export interface ResourceProfile {
  readonly cpuMillis?: number;
  readonly memoryBytes?: number;
  readonly diskBytes?: number;
  readonly gpuCount?: number;
}

/** A process that a worker runs, or ran, in. */
export interface Incarnation {
  /** Chosen by the process when it starts. */
  readonly id: string;
  /** 1 for the first that registered, and so on. */
  readonly number: number;
}

/** A worker (contract 2.1). BUSY is never committed: it is READY with every slot taken. */
export interface WorkerRecord {
  readonly contractVersion: 1;
  readonly workerId: string;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly name: string;
  readonly runtime: WorkerRuntimeKind;
  readonly version: string;
  readonly declaredCapabilities: readonly string[];
  readonly grantedCapabilities: readonly string[];
  /** Definitions that it runs; empty: any. */
  readonly workloadKinds: readonly string[];
  readonly resourceProfile: ResourceProfile;
  readonly labels: Labels;
  readonly concurrency: number;
  readonly health: WorkerHealth;
  readonly lifecycle: Exclude<WorkerLifecycle, "BUSY">;
  readonly heartbeatIntervalMs: number;
  readonly heartbeatTimeoutMs: number;
  /** The authority's time of the last word from it, epoch ms. */
  readonly lastSeen: number;
  /** The revision of the grant that it was registered under. */
  readonly capabilityVersion: number;
  readonly grantId: string;
  /** That grant, and those that it was delegated from: what ends one of them ends what the worker was granted. */
  readonly grants?: readonly GrantName[];
  readonly incarnation: Incarnation;
  /** Ids of incarnations before it, oldest first: whoever bears one of them is told so. */
  readonly superseded: readonly string[];
  readonly registeredAt: number;
}

/** One of a worker's, or of a pool's, places for a claim (contract 2.3): free, or held by a claim. */
export interface Slot {
  /** The worker or the pool. */
  readonly ownerId: string;
  readonly index: number;
  /** Absent: free. */
  readonly held?: SlotHold;
}

export interface SlotHold {
  readonly claimId: string;
  readonly workloadId: string;
  readonly workerId: string;
  /** The number of the worker's incarnation that took it. */
  readonly incarnation: number;
}

/** A pool of workers (contract 2.1). One with a limit belongs to one application, so that its slots can be guarded. */
export interface PoolRecord {
  readonly poolId: string;
  readonly tenantId: string;
  readonly applicationId?: string;
  readonly name: string;
  readonly capabilities: readonly string[];
  readonly requiredLabels: Labels;
  readonly workerIds: readonly string[];
  readonly maxConcurrency?: number;
  readonly createdAt: number;
}

/** Where a workload may run (contract 2.1). */
export interface PlacementPolicy {
  readonly requiredLabels: Labels;
  readonly affinity: Labels;
  readonly antiAffinity: Labels;
  readonly poolId?: string;
}

/** Who was chosen, and who could have been: evidence of a claim (contract 2.1). */
export interface PlacementDecision {
  readonly decisionId: string;
  readonly workloadId: string;
  readonly eligibleWorkers: readonly string[];
  readonly selectedWorker?: string;
  readonly reason: string;
  readonly evaluatedAt: number;
}

/** A claim as a worker of the registry holds it (contract 2.3). */
export interface MeshClaim {
  readonly workloadId: string;
  readonly attemptId: string;
  readonly workerId: string;
  readonly leaseId: string;
  readonly claimId: string;
  readonly fencingToken: number;
  readonly capabilities: readonly string[];
  readonly executionContextId: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
}
