import type { Json } from "../../base/json.ts";
import type { GrantName } from "../grant/revocation.ts";
import type { Subject } from "../subject.ts";
import type { PlacementPolicy } from "../worker/record.ts";
import type { WorkloadEventType, WorkloadState } from "./states.ts";

/** The record version that this program writes (contract 1.2). Version 1 is read, and its deadlines never enforced. */
export const CONTRACT_VERSION = 2;

/** A JSON payload as the record keeps it: its text inline, or a reference to where it is kept (contract 5.2). */
export type Payload = { readonly json: string } | { readonly slot: string; readonly bytes: number };

/** The verified grant the requester acted under (contract 1.2, 4). */
export interface GrantSnapshot {
  readonly grantId: string;
  readonly issuer: Subject;
  readonly subject: Subject;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly capabilities: readonly string[];
  readonly resources: readonly { readonly kind: string; readonly uri: string }[];
  readonly constraints: { readonly [name: string]: Json };
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly revision: number;
  /** Of a delegated grant: those that it stems from, its parent first. Whatever ends one of them ends it. */
  readonly ancestors?: readonly GrantName[];
  readonly token?: string;
}

/** Contract 1.5. Delays in ms. */
export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly initialDelayMs: number;
  readonly maxDelayMs: number;
  readonly backoff: "exponential" | "fixed";
  readonly retryOn: readonly string[];
  /** 0..1: the share of a delay that a reproducible draw may take off. Absent: 0. */
  readonly jitter?: number;
}

/** Contract 1.6. All in ms, each at least 1. */
export interface Timeouts {
  readonly queueMs?: number;
  readonly claimMs?: number;
  readonly executionMs?: number;
  readonly heartbeatMs?: number;
  readonly overallMs?: number;
  readonly approvalMs?: number;
}

export interface Dependency {
  readonly workloadId: string;
  readonly requiredState: WorkloadState;
}

/** Contract 1.9. */
export interface ApprovalPolicy {
  readonly approverKinds: readonly ("human" | "service")[];
  readonly approvers: readonly Subject[];
  /** How many distinct approvers must approve. Absent: 1. */
  readonly requiredApprovals?: number;
}

export interface ApprovalDecision {
  readonly outcome: "approved" | "rejected";
  readonly decidedBy: Subject;
  readonly decidedAt: number;
  readonly reason?: string;
  readonly grantId: string;
  readonly inputHash: string;
}

export interface Approval {
  readonly policy: ApprovalPolicy;
  /** The one decision; never replaced. */
  readonly decision?: ApprovalDecision;
  /** Approvals given so far, while a quorum is not reached. */
  readonly given?: readonly ApprovalDecision[];
}

export interface WorkloadEvent {
  /** 1, 2, 3 … without a gap. */
  readonly sequence: number;
  readonly type: WorkloadEventType;
  readonly from?: WorkloadState;
  readonly to: WorkloadState;
  readonly actor: string;
  readonly at: number;
  readonly evidence: { readonly [name: string]: string };
}

export interface Claim {
  readonly claimId: string;
  readonly workloadId: string;
  readonly workerId: string;
  readonly leaseId: string;
  readonly fencingToken: number;
  readonly capabilities: readonly string[];
  readonly claimedAt: number;
  readonly expiresAt: number;
  readonly lastHeartbeat: number;
}

export type AttemptStatus =
  | "CLAIMED"
  | "RUNNING"
  | "CHECKPOINTED"
  | "SUCCEEDED"
  | "FAILED"
  | "TIMED_OUT"
  | "CANCELLED"
  | "WORKER_LOST";

export interface Attempt {
  readonly attemptId: string;
  readonly workloadId: string;
  readonly workerId: string;
  readonly claimId: string;
  readonly fencingToken: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly inputHash: string;
  readonly resultHash?: string;
  readonly error?: string;
  readonly resourceUsage: { readonly [name: string]: number };
  readonly status: AttemptStatus;
}

/** A checkpoint; `State` is JSON on the surfaces and a {@link Payload} in the record. */
export interface Checkpoint<State = Json> {
  readonly checkpointId: string;
  readonly workloadId: string;
  readonly attemptId: string;
  readonly sequence: number;
  readonly state: State;
  readonly stateHash: string;
  readonly createdAt: number;
  readonly producedBy: string;
}

/** A result; `Output` is JSON on the surfaces and a {@link Payload} in the record. */
export interface Result<Output = Json> {
  readonly resultId: string;
  readonly workloadId: string;
  readonly attemptId: string;
  readonly status: "succeeded";
  readonly output: Output;
  readonly outputHash: string;
  readonly artifacts: readonly string[];
  readonly provenance: { readonly claimId: string; readonly fencingToken: number };
  readonly producedBy: string;
  readonly createdAt: number;
  readonly schemaVersion: string | number;
}

/** Everything but the payloads, which differ between the record and the surfaces. */
interface WorkloadFields {
  readonly contractVersion: 1 | 2;
  readonly workloadId: string;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly environment: string;
  readonly definitionId: string;
  readonly definitionRevision: string;
  readonly trigger: string;
  readonly inputHash: string;
  readonly requestedBy: Subject;
  readonly sessionId?: string;
  readonly authorization: GrantSnapshot;
  /** `never`: the requester's grant is not looked at again when the work is claimed (contract 4.2). Absent: it is. */
  readonly reauthorize?: "never";
  readonly capabilities: readonly string[];
  readonly connectionScopes: readonly string[];
  readonly priority: number;
  readonly idempotencyKey: string;
  readonly notBefore?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly state: WorkloadState;
  readonly history: readonly WorkloadEvent[];
  readonly attempts: readonly Attempt[];
  readonly retryPolicy: RetryPolicy;
  readonly timeouts: Timeouts;
  readonly attemptCount: number;
  readonly retryCount: number;
  readonly nextAttemptAt?: number;
  readonly lastFailure?: string;
  readonly currentClaim?: Claim;
  readonly fencingToken: number;
  readonly dependencies: readonly Dependency[];
  readonly approval?: Approval;
  /** Where it may run (contract 2.1). Absent: wherever its capabilities are. */
  readonly placement?: PlacementPolicy;
}

/** The committed record (contract 1.2), payloads as they are stored. */
export interface WorkloadRecord extends WorkloadFields {
  readonly input: Payload;
  readonly checkpoints: readonly Checkpoint<Payload>[];
  readonly result?: Result<Payload>;
}

/** A workload as the surfaces show it (contract 1.2): JSON payloads, and no grant token. */
export interface Workload extends WorkloadFields {
  readonly input: Json;
  readonly checkpoints: readonly Checkpoint[];
  readonly result?: Result;
}
