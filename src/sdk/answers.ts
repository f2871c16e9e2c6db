import type { Json } from "../base/json.ts";
import type { MandateError } from "../core/errors.ts";
import type { Subject } from "../core/subject.ts";
import type { PlacementPolicy } from "../core/worker/record.ts";
import type { ApprovalDecision, GrantSnapshot, Result, Workload } from "../core/workload/record.ts";
import type { WorkloadState } from "../core/workload/states.ts";

/** What a requester asks for (contract 1.7). Everything else about it takes its default. */
export interface AdmitRequest {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly environment: string;
  readonly definitionId: string;
  readonly definitionRevision: string;
  readonly trigger: string;
  readonly input: unknown;
  /** The client's subject when absent; a node in open mode takes no other. */
  readonly requestedBy?: Subject;
  readonly sessionId?: string;
  /** May be left out while the nodes run in open mode. */
  readonly authorization?: Partial<Omit<GrantSnapshot, "issuer">> &
    Pick<GrantSnapshot, "grantId" | "subject" | "tenantId" | "applicationId"> & { readonly issuer: Subject | string };
  /** `never`: the work stays claimable when the grant it was admitted under ends. Default `claim`: it does not. */
  readonly reauthorize?: "claim" | "never";
  readonly capabilities?: readonly string[];
  readonly connectionScopes?: readonly string[];
  readonly priority?: number;
  readonly idempotencyKey: string;
  /** Epoch ms before which it is not claimable. */
  readonly notBefore?: number;
  readonly retryPolicy?: {
    readonly maxAttempts?: number;
    readonly initialDelayMs?: number;
    readonly maxDelayMs?: number;
    readonly backoff?: "exponential" | "fixed";
    readonly retryOn?: readonly string[];
    readonly jitter?: number;
  };
  readonly timeouts?: {
    readonly queueMs?: number;
    readonly claimMs?: number;
    readonly executionMs?: number;
    readonly heartbeatMs?: number;
    readonly overallMs?: number;
    readonly approvalMs?: number;
  };
  readonly dependencies?: readonly { readonly workloadId: string; readonly requiredState?: WorkloadState }[];
  readonly approval?: {
    readonly approverKinds?: readonly ("human" | "service")[];
    readonly approvers?: readonly Subject[];
    readonly requiredApprovals?: number;
  };
  /** Where it may run; absent: wherever its capabilities are. */
  readonly placement?: Partial<PlacementPolicy>;
  /** Made up when absent: a repeat with the same one meets its own earlier outcome. */
  readonly requestId?: string;
}

export interface Admitted {
  readonly workload: Workload;
  /** `false`: the same request had been admitted before. */
  readonly created: boolean;
}

/** One answer of a batch. */
export type ItemAnswer<Answer> =
  | ({ readonly ok: true } & Answer)
  | { readonly ok: false; readonly error: MandateError };

/** What to list (contract 1.13). Times are bounds of createdAt, epoch ms: from inclusive, to exclusive. */
export interface ListFilter {
  readonly tenantId?: string;
  readonly applicationId?: string;
  readonly state?: WorkloadState | readonly WorkloadState[];
  readonly definitionId?: string;
  readonly requestedBy?: Subject;
  readonly workerId?: string;
  readonly createdFrom?: number;
  readonly createdTo?: number;
  readonly limit?: number;
  readonly cursor?: string;
}

export interface WorkloadPage {
  readonly workloads: readonly Workload[];
  /** Names the next page; absent on the last. */
  readonly cursor?: string;
}

/** How a workload stands, and its result once it has one. */
export interface Outcome {
  readonly workloadId: string;
  readonly state: WorkloadState;
  /** Nothing more will happen by itself. */
  readonly settled: boolean;
  readonly result?: Result;
  readonly lastFailure?: string;
}

export interface DecisionRequest {
  readonly outcome: "approved" | "rejected";
  /** Needed for a rejection. */
  readonly reason?: string;
  /** May be left out while the nodes run in open mode. */
  readonly grantId?: string;
  /** Of the workload as the approver saw it. */
  readonly inputHash: string;
  readonly requestId?: string;
}

export interface Decided {
  readonly decision: ApprovalDecision;
  /** `true`: the same decision had been taken before. */
  readonly replayed: boolean;
}

export interface StateAnswer {
  readonly state: WorkloadState;
}

/** One committed change (contract 6.2). */
export interface ChangeEvent {
  readonly workloadId: string;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly definitionId: string;
  readonly state: WorkloadState;
  readonly type: string;
  readonly actor: string;
  readonly sequence: number;
  readonly at: number;
  readonly shard: number;
  readonly revision: number;
}

/** Why a workload does not run now (contract 1.13). */
export interface Reason {
  readonly reason: string;
  readonly message: string;
  readonly [detail: string]: Json | undefined;
}
