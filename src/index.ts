/** The package: a client for requesters, approvers and operators, and a worker (contract 6.4). */
export type { Json } from "./base/json.ts";
export type { Log } from "./base/log.ts";
export { errorRegistry, MandateError, type ErrorCode, type ErrorDetails, type ErrorTraits } from "./core/errors.ts";
export type { Revocation, RevocationTarget } from "./core/grant/revocation.ts";
export type { Subject, SubjectKind } from "./core/subject.ts";
export type {
  ApprovalDecision,
  Attempt,
  Checkpoint,
  Claim,
  GrantSnapshot,
  Result,
  Workload,
  WorkloadEvent,
} from "./core/workload/record.ts";
export type { WorkloadState } from "./core/workload/states.ts";
export type {
  Admitted,
  AdmitRequest,
  ChangeEvent,
  Decided,
  DecisionRequest,
  ItemAnswer,
  ListFilter,
  Outcome,
  Reason,
  StateAnswer,
  WorkloadPage,
} from "./sdk/answers.ts";
export type { EventFilter, FollowedEvent } from "./sdk/change-events.ts";
export { connect, type Client, type ClientOptions, type OperateOptions, type RevokeRequest } from "./sdk/client.ts";
export type { NatsLogin } from "./sdk/nats-login.ts";
export { childProcessRuntime, type ChildProcessOptions } from "./sdk/runtimes/child-process.ts";
export { inProcessRuntime, type InProcessOptions } from "./sdk/runtimes/in-process.ts";
export {
  runtimeHandler,
  unrestricted,
  type ReachPolicy,
  type ResourceUsage,
  type RuntimeClaim,
  type RuntimeContext,
  type RuntimePolicy,
  type RuntimeResult,
  type WorkerRuntime,
} from "./sdk/runtimes/runtime.ts";
export type { ConnectionState } from "./sdk/work-connection.ts";
export type { Handler, Work } from "./sdk/work-context.ts";
export { runWorker, type RunningWorker } from "./sdk/worker.ts";
export { workerIdOf } from "./sdk/worker-identity.ts";
export type { WorkerOptions } from "./sdk/worker-options.ts";
export { WorkloadFailure, WorkStopped, type StopCause } from "./sdk/workload-failure.ts";
