import type { WorkloadState } from "../../src/core/workload/states.ts";

/**
 * The table of contract 1.4, written down a second time on purpose: a judge that asked the product for its rules would
 * agree with whatever the product does.
 */
const table: { readonly [State in WorkloadState]: string } = {
  CREATED: "READY AWAITING_APPROVAL CANCELLED",
  AWAITING_APPROVAL: "READY REJECTED CANCELLED TIMED_OUT",
  READY: "CLAIMED CANCELLED TIMED_OUT DEAD_LETTER",
  CLAIMED: "RUNNING CANCELLATION_REQUESTED FAILED RECOVERING TIMED_OUT",
  RUNNING: "CHECKPOINTED SUCCEEDED CANCELLATION_REQUESTED FAILED RECOVERING TIMED_OUT",
  CHECKPOINTED: "CHECKPOINTED SUCCEEDED CANCELLATION_REQUESTED FAILED RECOVERING TIMED_OUT",
  RECOVERING: "READY DEAD_LETTER",
  CANCELLATION_REQUESTED: "CANCELLED",
  SUCCEEDED: "",
  FAILED: "READY DEAD_LETTER CANCELLED AWAITING_APPROVAL",
  CANCELLED: "",
  TIMED_OUT: "READY DEAD_LETTER AWAITING_APPROVAL",
  DEAD_LETTER: "READY CANCELLED AWAITING_APPROVAL",
  REJECTED: "",
};

const eventNames: { readonly [State in WorkloadState]: string } = {
  CREATED: "created",
  READY: "ready",
  CLAIMED: "claimed",
  RUNNING: "started",
  CHECKPOINTED: "checkpointed",
  RECOVERING: "recovered",
  CANCELLATION_REQUESTED: "cancellation_requested",
  SUCCEEDED: "completed",
  FAILED: "failed",
  CANCELLED: "cancelled",
  TIMED_OUT: "timed_out",
  DEAD_LETTER: "dead_lettered",
  AWAITING_APPROVAL: "awaiting_approval",
  REJECTED: "rejected",
};

/** Whether the table lets a workload go from one state to another. */
export const mayMove = (from: WorkloadState, to: WorkloadState): boolean => (table[from] ?? "").split(" ").includes(to);

/** The type of the event that leads to a state. */
export const eventTypeOf = (to: WorkloadState): string => `workload.${eventNames[to]}`;

const among =
  (...states: readonly WorkloadState[]) =>
  (state: WorkloadState): boolean =>
    states.includes(state);

/** A worker holds the workload. */
export const isHeld = among("CLAIMED", "RUNNING", "CHECKPOINTED", "CANCELLATION_REQUESTED");
/** An attempt runs and may be completed. */
export const isRunning = among("RUNNING", "CHECKPOINTED");
/** A worker may report that it failed. */
export const mayFail = among("CLAIMED", "RUNNING", "CHECKPOINTED");
/** Only an operator leaves it. */
export const isSettled = among("SUCCEEDED", "CANCELLED", "REJECTED", "DEAD_LETTER");
/** Within one commit only. */
export const isPassedThrough = among("CREATED", "RECOVERING", "FAILED", "TIMED_OUT");
/** An operator's cancel ends it at once. */
export const isCancelledAtOnce = among("CREATED", "READY", "AWAITING_APPROVAL", "FAILED", "DEAD_LETTER");
/** An operator may time it out. */
export const mayTimeOut = among("READY", "CLAIMED", "RUNNING", "CHECKPOINTED");
/** An operator may re-arm it. */
export const mayRearm = among("FAILED", "DEAD_LETTER", "TIMED_OUT");
/** The overall deadline runs. */
export const hasOverallDeadline = among("AWAITING_APPROVAL", "READY", "CLAIMED", "RUNNING", "CHECKPOINTED");
