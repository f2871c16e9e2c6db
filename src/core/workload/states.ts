/** States of a workload and what may follow what (contract 1.4). */
export const workloadStates = [
  "CREATED",
  "AWAITING_APPROVAL",
  "READY",
  "CLAIMED",
  "RUNNING",
  "CHECKPOINTED",
  "RECOVERING",
  "CANCELLATION_REQUESTED",
  "SUCCEEDED",
  "FAILED",
  "CANCELLED",
  "TIMED_OUT",
  "DEAD_LETTER",
  "REJECTED",
] as const;
export type WorkloadState = (typeof workloadStates)[number];

/** The total transition table: a state and the states it may go to. Anything else is denied. */
export const transitions: Readonly<Record<WorkloadState, readonly WorkloadState[]>> = {
  CREATED: ["READY", "AWAITING_APPROVAL", "CANCELLED"],
  AWAITING_APPROVAL: ["READY", "REJECTED", "CANCELLED", "TIMED_OUT"],
  READY: ["CLAIMED", "CANCELLED", "TIMED_OUT", "DEAD_LETTER"],
  CLAIMED: ["RUNNING", "CANCELLATION_REQUESTED", "FAILED", "RECOVERING", "TIMED_OUT"],
  RUNNING: ["CHECKPOINTED", "SUCCEEDED", "CANCELLATION_REQUESTED", "FAILED", "RECOVERING", "TIMED_OUT"],
  CHECKPOINTED: ["CHECKPOINTED", "SUCCEEDED", "CANCELLATION_REQUESTED", "FAILED", "RECOVERING", "TIMED_OUT"],
  RECOVERING: ["READY", "DEAD_LETTER"],
  CANCELLATION_REQUESTED: ["CANCELLED"],
  SUCCEEDED: [],
  FAILED: ["READY", "DEAD_LETTER", "CANCELLED", "AWAITING_APPROVAL"],
  CANCELLED: [],
  TIMED_OUT: ["READY", "DEAD_LETTER", "AWAITING_APPROVAL"],
  DEAD_LETTER: ["READY", "CANCELLED", "AWAITING_APPROVAL"],
  REJECTED: [],
};

/** The type of the event that records an arrival in a state (contract 1.4). */
export const eventTypes = {
  CREATED: "workload.created",
  AWAITING_APPROVAL: "workload.awaiting_approval",
  READY: "workload.ready",
  CLAIMED: "workload.claimed",
  RUNNING: "workload.started",
  CHECKPOINTED: "workload.checkpointed",
  RECOVERING: "workload.recovered",
  CANCELLATION_REQUESTED: "workload.cancellation_requested",
  SUCCEEDED: "workload.completed",
  FAILED: "workload.failed",
  CANCELLED: "workload.cancelled",
  TIMED_OUT: "workload.timed_out",
  DEAD_LETTER: "workload.dead_lettered",
  REJECTED: "workload.rejected",
} as const satisfies Record<WorkloadState, string>;
export type WorkloadEventType = (typeof eventTypes)[WorkloadState];

/** Whether the table lets a workload go from one state to another. */
export const mayGo = (from: WorkloadState, to: WorkloadState): boolean => transitions[from].includes(to);

/** States in which a worker holds the workload and its lease counts. */
export const heldStates: readonly WorkloadState[] = ["CLAIMED", "RUNNING", "CHECKPOINTED", "CANCELLATION_REQUESTED"];

/** States that a result reader need not wait any longer in. DEAD_LETTER can be re-armed, and is final until then. */
export const settledStates: readonly WorkloadState[] = ["SUCCEEDED", "CANCELLED", "REJECTED", "DEAD_LETTER"];

/** States that nothing ever leaves. */
export const terminalStates: readonly WorkloadState[] = ["SUCCEEDED", "CANCELLED", "REJECTED"];

/** `true` when the text names a state of this version. A record in any other state must not be written (contract 5.2). */
export const isWorkloadState = (text: unknown): text is WorkloadState =>
  typeof text === "string" && Object.hasOwn(transitions, text);
