import type { MandateError } from "../core/errors.ts";
import type { Revocation } from "../core/grant/revocation.ts";
import type { Subject } from "../core/subject.ts";
import type { DecideAnswer } from "../core/workload/approval.ts";
import type { Reason } from "../core/workload/explain.ts";
import type { StateAnswer } from "../core/workload/failure.ts";
import type { ExecutionContext, HeartbeatAnswer } from "../core/workload/lease.ts";
import type { Checkpoint, Claim, GrantSnapshot, Result, Workload } from "../core/workload/record.ts";
import type { WorkloadState } from "../core/workload/states.ts";
import type { WorkerHeartbeatAnswer } from "../core/worker/heartbeat.ts";
import type { Reconciliation } from "../core/worker/reconcile.ts";
import type { MeshClaim, PlacementDecision, PoolRecord } from "../core/worker/record.ts";
import type { WorkerView } from "../core/worker/worker-view.ts";
import type { Scope } from "../store/keys.ts";
import type { Needs } from "../store/projection/ability.ts";

/** What an authority answers, call by call (contract 6.1). Arguments come from anywhere, so they are `unknown` and checked. */
export interface Answers {
  admit: { readonly workload: Workload; readonly created: boolean };
  admitMany: readonly ItemAnswer<Answers["admit"]>[];
  claim: Claim;
  claimNext: readonly Claim[];
  start: Claim;
  heartbeat: HeartbeatAnswer;
  heartbeatMany: readonly ItemAnswer<HeartbeatAnswer>[];
  executionContext: ExecutionContext;
  checkpoint: Checkpoint;
  complete: Result;
  fail: StateAnswer;
  confirmCancel: StateAnswer;
  cancel: StateAnswer;
  timeout: StateAnswer;
  retry: StateAnswer;
  decide: DecideAnswer;
  get: Workload;
  list: Page;
  explain: readonly Reason[];
  registerWorker: { readonly worker: WorkerView; readonly created: boolean };
  heartbeatWorker: WorkerHeartbeatAnswer;
  drainWorker: WorkerView;
  recoverWorker: WorkerView;
  removeWorker: WorkerView;
  reconcileWorker: Omit<Reconciliation, "freed">;
  getWorker: WorkerView;
  listWorkers: { readonly workers: readonly WorkerView[]; readonly after?: string };
  createPool: PoolRecord;
  changePool: PoolRecord;
  deletePool: PoolRecord;
  getPool: PoolRecord;
  listPools: { readonly pools: readonly PoolRecord[] };
  place: PlacementDecision;
  placeAndClaim: MeshClaim;
  validateClaim: { readonly valid: true };
  revoke: Revocation;
}

export type CallName = keyof Answers;

/** One answer of a batch: each item stands for itself (contract 1.7, 1.8). */
export type ItemAnswer<Answer> =
  | ({ readonly ok: true } & Answer)
  | { readonly ok: false; readonly error: MandateError };

/** A page of a list, with the cursor of the next one while there is more (contract 1.13). */
export interface Page {
  readonly workloads: readonly Workload[];
  readonly cursor?: string;
}

/** A place in the store's order: which shard, which revision. */
export interface Position {
  readonly shard: number;
  readonly revision: number;
}

/** Who calls, and within which bounds. */
export interface CallContext {
  /** Given: workloads of any other tenant or application do not exist for this call. */
  readonly scope?: Scope;
  /** Who asks, in words that tell callers apart: with the requestId it makes the operation's id (contract 5.3). */
  readonly caller?: string;
  /** For provenance (contract 4.3). */
  readonly subject?: Subject;
  readonly sessionId?: string;
  /** The verified grant that the caller acts under (contract 4); absent in open mode. */
  readonly grant?: GrantSnapshot;
  /** Which of the work that a queue hands out the caller's grant lets him have; absent: all of it. */
  readonly mayTake?: { readonly name: string; readonly accepts: (needs: Needs) => boolean };
  /** Ends a long poll early; nothing is claimed after it. */
  readonly signal?: AbortSignal;
}

/** An answer, and the store's revision that it reflects. */
export interface Answered<Answer> {
  readonly answer: Answer;
  readonly position?: Position;
}

/** One committed change of a workload, as watchers see it. */
export interface ChangeEvent extends Position {
  readonly workloadId: string;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly definitionId: string;
  readonly state: WorkloadState;
  readonly type: string;
  readonly actor: string;
  /** The last event's sequence and time. */
  readonly sequence: number;
  readonly at: number;
}

/** Whether this node may serve, and what keeps it from it (contract 5.4, 5.5). */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  /** How old the node's view is, ms, by its own heartbeat; absent before the first. */
  readonly viewAgeMs?: number;
  /** The node's clock minus the store's, ms. */
  readonly clockOffsetMs?: number;
}
