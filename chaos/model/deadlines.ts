import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import type { WorkloadState } from "../../src/core/workload/states.ts";
import { hasOverallDeadline, isRunning, mayFail } from "./states.ts";

/** Contract 1.6. */
export interface Deadline {
  readonly deadline: string;
  /** Epoch ms: passed from then on. */
  readonly deadlineAt: number;
}

function arrivalAt(record: WorkloadRecord, state: WorkloadState): number {
  const event = record.history.findLast(({ to }) => to === state);
  return event?.at ?? record.createdAt;
}

/** The deadlines that run, in the order in which they count. */
export function deadlinesOf(record: WorkloadRecord): readonly Deadline[] {
  if (record.contractVersion < 2) return [];
  const { state, timeouts, currentClaim: claim } = record;
  const running: (readonly [name: string, from: number | undefined, lengthMs: number | undefined])[] = [];
  if (state === "AWAITING_APPROVAL") running.push(["approval", arrivalAt(record, state), timeouts.approvalMs]);
  if (hasOverallDeadline(state)) running.push(["overall", record.createdAt, timeouts.overallMs]);
  if (state === "READY")
    running.push(["queue", Math.max(arrivalAt(record, state), record.nextAttemptAt ?? 0), timeouts.queueMs]);
  if (state === "CLAIMED") running.push(["claim", claim?.claimedAt, timeouts.claimMs]);
  if (isRunning(state)) running.push(["execution", record.attempts.at(-1)?.startedAt, timeouts.executionMs]);
  // The table lets nothing time out after a cancellation was requested.
  if (mayFail(state)) running.push(["heartbeat", claim?.lastHeartbeat, timeouts.heartbeatMs]);
  return running.flatMap(([deadline, from, lengthMs]) =>
    from === undefined || lengthMs === undefined ? [] : [{ deadline, deadlineAt: from + lengthMs }],
  );
}

/** The deadline that counts at an instant: the first in order that has passed. */
export const passedDeadline = (record: WorkloadRecord, at: number): Deadline | undefined =>
  deadlinesOf(record).find(({ deadlineAt }) => at >= deadlineAt);

/** When the first of the deadlines passes; undefined when none runs. */
export function firstDeadline(record: WorkloadRecord): Deadline | undefined {
  let first: Deadline | undefined;
  for (const deadline of deadlinesOf(record))
    if (first === undefined || deadline.deadlineAt < first.deadlineAt) first = deadline;
  return first;
}

/** Whether an expiry by this deadline may be followed by another attempt. */
export const isRetryable = (deadline: string): boolean =>
  deadline === "claim" || deadline === "execution" || deadline === "heartbeat";
