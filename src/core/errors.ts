/**
 * The one registry of error codes. `definite`: the operation surely did not happen. `retry`: repeating the very same
 * call may succeed and is safe. README's table is generated from it, and a test compares both ways.
 */
export interface ErrorTraits {
  readonly definite: boolean;
  readonly retry: boolean;
  readonly httpStatus: number;
  readonly doc: string;
}

const no = (httpStatus: number, doc: string): ErrorTraits => ({
  definite: true,
  retry: false,
  httpStatus,
  doc,
});
const later = (httpStatus: number, doc: string): ErrorTraits => ({
  definite: true,
  retry: true,
  httpStatus,
  doc,
});

export const errorRegistry = {
  WORKLOAD_INVALID: no(400, "The request breaks a rule of shape or value; details list every offending path."),
  WORKLOAD_SECRET_REJECTED: no(
    422,
    "The content holds what looks like a secret; details name the path, never the value.",
  ),
  WORKLOAD_UNAUTHORIZED: no(403, "The grant does not bind the requester, the tenant and the application."),
  WORKLOAD_NOT_FOUND: no(404, "No such workload, or none that the caller may know of."),
  WORKLOAD_TOO_LARGE: no(413, "A payload, or the record with it, is larger than the store may hold."),
  IDEMPOTENCY_KEY_REUSED: no(
    409,
    "The idempotency key belongs to a different request; details name the fields that differ.",
  ),
  WORKLOAD_TRANSITION_DENIED: no(409, "The workload's state does not allow this."),
  WORKLOAD_NOT_READY: no(409, "The workload is not READY, so it can't be claimed."),
  WORKLOAD_NOT_YET_ELIGIBLE: later(409, "The workload may be claimed from a later instant on, which details give."),
  WORKLOAD_DEPENDENCY_PENDING: later(409, "A dependency is not in the state it is required in; details list them."),
  WORKLOAD_CAPABILITY_DENIED: no(403, "The worker lacks a capability that the workload needs; details list them."),
  WORKLOAD_ATTEMPTS_EXHAUSTED: no(409, "The attempt budget is used up; the workload is in DEAD_LETTER."),
  WORKLOAD_CLAIM_INVALID: no(409, "The workload has no current claim."),
  WORKLOAD_STALE_FENCE: no(409, "The claim, the worker or the fencing token is not the current one."),
  WORKLOAD_LEASE_EXPIRED: no(409, "The lease ran out; the work may be given to another worker."),
  WORKLOAD_TIMED_OUT: no(409, "A deadline passed; details name it and its instant."),
  WORKLOAD_RESULT_DUPLICATE: no(409, "The result id is recorded for another workload of the application."),
  WORKLOAD_RESULT_CONFLICT: no(
    409,
    "The result id is recorded for this workload with another output or by another claim.",
  ),
  WORKLOAD_APPROVAL_PENDING: later(409, "The workload waits for an approval."),
  WORKLOAD_REJECTED: no(409, "The workload was rejected by an approver."),
  WORKLOAD_APPROVAL_NOT_REQUIRED: no(409, "The workload has no approval policy."),
  WORKLOAD_APPROVER_NOT_PERMITTED: no(403, "The policy does not let this subject decide."),
  WORKLOAD_APPROVAL_STALE: no(
    409,
    "The decision names another input than the workload's; details carry the right hash.",
  ),
  WORKLOAD_APPROVAL_DECIDED: no(409, "The opposite decision was already taken; details say by whom and when."),
  WORKLOAD_APPROVAL_NOT_ACTIONABLE: no(409, "The workload is not waiting for a decision; details give its state."),
  WORKLOAD_RETRY_EXHAUSTED: no(409, "The workload was re-armed as often as its policy allows."),
  WORKLOAD_CONFLICT: later(409, "Other writers kept winning; nothing was committed; try again."),
  WORKLOAD_OUTCOME_UNKNOWN: {
    definite: false,
    retry: true,
    httpStatus: 503,
    doc: "The store did not answer and a read-back could not tell; repeating the call (with its requestId) is safe and gives the truth.",
  },
  WORKLOAD_STORAGE_FAILURE: later(503, "The store can't be reached or can't take the write; nothing was committed."),
  WORKLOAD_MIGRATION_CONFLICT: no(409, "The record was written in a format that this node must not write."),
  WORKER_INVALID: no(400, "A worker's, a pool's or a placement's description breaks a rule; details list the paths."),
  WORKER_UNAUTHORIZED: no(403, "The registration grant does not bind the registrar, the tenant and the application."),
  WORKER_NOT_FOUND: no(404, "No such worker, or none that the caller may know of."),
  WORKER_TRANSITION_DENIED: no(409, "The worker's lifecycle does not allow this."),
  WORKER_HEARTBEAT_REJECTED: no(
    409,
    "The heartbeat is not of the worker as it is registered: its version or its capabilities changed; register again.",
  ),
  WORKER_CLOCK_INVALID: no(409, "The worker's clock is behind what was last heard from it by more than is tolerated."),
  WORKER_RECOVERY_REQUIRED: no(409, "The worker was given up; it must reconcile before its heartbeats count again."),
  WORKER_BUSY: no(409, "The worker holds claims, so it can't be removed."),
  WORKER_RECONCILIATION_DENIED: no(
    409,
    "The reconciliation is not of the worker as it is registered: its version or its capabilities changed.",
  ),
  WORKER_SUPERSEDED: no(409, "A later process took the worker's name; this one must stop."),
  WORKER_POOL_EXISTS: no(409, "A pool of this name exists."),
  WORKER_POOL_NOT_FOUND: no(404, "No such pool, or none that the caller may know of."),
  MESH_NO_ELIGIBLE_WORKER: later(409, "No worker may run the workload now; details say why not, worker by worker."),
  MESH_PLACEMENT_DENIED: no(409, "The worker may not run the workload; details give the reason."),
  MESH_CLAIM_SCOPE_DENIED: no(403, "The claim is of another workload, worker, tenant or application."),
  MESH_STALE_FENCE: no(409, "The claim ran out, or it is not the workload's current one."),
  MESH_CAPABILITY_DENIED: no(403, "The claim has a capability that the worker or the workload does not have."),
  AUTHORITY_NOT_READY: later(
    503,
    "This node's view is too old, its clock too far off, or it is still loading; ask another or later.",
  ),
  AUTHORITY_OVERLOADED: later(429, "Too many requests are under way at this node."),
  SUBJECT_REQUIRED: no(401, "The request does not say who asks."),
  GRANT_INVALID: no(401, "There is no grant, or its signature, key, shape or time of issue is not good."),
  GRANT_EXPIRED: no(401, "The grant has expired."),
  GRANT_REVOKED: no(
    401,
    "The grant, its subject, application or tenant, or a grant it stems from was revoked or replaced.",
  ),
  GRANT_SCOPE_DENIED: no(
    403,
    "The grant does not reach this: another subject, tenant, application, capability or resource, or a constraint; details tell which.",
  ),
  GRANT_DELEGATION_INVALID: no(
    403,
    "The grant is not within the one it was delegated from, or the chain is broken; details name the grant.",
  ),
  ROUTE_NOT_FOUND: no(404, "There is no such route."),
  METHOD_NOT_ALLOWED: no(405, "The route does not take this method."),
  INTERNAL_ERROR: {
    definite: false,
    retry: true,
    httpStatus: 500,
    doc: "A bug of this program; the log has the cause. Whether anything happened is not known.",
  },
} as const satisfies Record<string, ErrorTraits>;

export type ErrorCode = keyof typeof errorRegistry;

export type ErrorDetails = { readonly [name: string]: unknown };

/** A refusal as a value: what the core answers instead of throwing. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: ErrorDetails;
}

/** Makes a {@link Refusal}. */
export const refuse = (code: ErrorCode, message: string, details?: ErrorDetails): Refusal =>
  details === undefined ? { code, message } : { code, message, details };

/** `true` when the text is a code of the registry. */
export const isErrorCode = (text: unknown): text is ErrorCode =>
  typeof text === "string" && Object.hasOwn(errorRegistry, text);

/** The one error that crosses boundaries (contract 1.14, 6.1). */
export class MandateError extends Error {
  override readonly name = "MandateError";
  readonly code: ErrorCode;
  readonly details?: ErrorDetails;
  /** The operation surely did not happen. */
  readonly definite: boolean;
  /** Repeating the same call may succeed, and is safe. */
  readonly retry: boolean;

  constructor(
    code: ErrorCode,
    message: string,
    options: { readonly details?: ErrorDetails | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    if (options.details !== undefined) this.details = options.details;
    this.definite = errorRegistry[code].definite;
    this.retry = errorRegistry[code].retry;
  }

  /** The error of a refusal. */
  static of(refusal: Refusal): MandateError {
    return new MandateError(refusal.code, refusal.message, { details: refusal.details });
  }
}
