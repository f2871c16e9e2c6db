import { refuse } from "../errors.ts";
import { changeOf, type Change, type Decision } from "./decision.ts";
import type { WorkloadRecord } from "./record.ts";
import { decideAfterFailure } from "./retry-policy.ts";
import type { WorkloadState } from "./states.ts";
import { applyMove, endAttempt, instantOf, laterBy } from "./transition.ts";

/** Deadlines (contract 1.6). Instants come from committed timestamps alone, so that every node decides the same. */
export const deadlineNames = ["approval", "overall", "queue", "claim", "execution", "heartbeat"] as const;
export type DeadlineName = (typeof deadlineNames)[number];

export interface Deadline {
  readonly deadline: DeadlineName;
  /** Epoch ms; passed when `now >=` it. */
  readonly deadlineAt: number;
}

const lastArrival = (record: WorkloadRecord, state: WorkloadState): number => {
  for (let index = record.history.length - 1; index >= 0; index--) {
    const event = record.history[index];
    if (event?.to === state) return event.at;
  }
  return record.createdAt;
};

const overallStates: readonly WorkloadState[] = ["AWAITING_APPROVAL", "READY", "CLAIMED", "RUNNING", "CHECKPOINTED"];

/** All deadlines that run in the record's present state, in the order in which they are checked. */
export function deadlinesOf(record: WorkloadRecord): readonly Deadline[] {
  if (record.contractVersion < 2) return [];
  const { approvalMs, overallMs, queueMs, claimMs, executionMs, heartbeatMs } = record.timeouts;
  const { state, currentClaim } = record;
  const found: Deadline[] = [];
  const add = (deadline: DeadlineName, from: number, lengthMs: number | undefined): void => {
    if (lengthMs !== undefined) found.push({ deadline, deadlineAt: laterBy(from, lengthMs) });
  };
  if (state === "AWAITING_APPROVAL") add("approval", lastArrival(record, "AWAITING_APPROVAL"), approvalMs);
  if (overallStates.includes(state)) add("overall", record.createdAt, overallMs);
  if (state === "READY") add("queue", Math.max(lastArrival(record, "READY"), record.nextAttemptAt ?? 0), queueMs);
  if (currentClaim !== undefined) {
    if (state === "CLAIMED") add("claim", currentClaim.claimedAt, claimMs);
    const startedAt = record.attempts.at(-1)?.startedAt;
    const running = state === "RUNNING" || state === "CHECKPOINTED";
    if (running && startedAt !== undefined) add("execution", startedAt, executionMs);
    // A workload whose cancellation was requested can't time out any more: the table has no such move.
    if (running || state === "CLAIMED") add("heartbeat", currentClaim.lastHeartbeat, heartbeatMs);
  }
  return found;
}

/** The first deadline in the order of contract 1.6 that has passed at an instant. */
export const passedDeadline = (record: WorkloadRecord, at: number): Deadline | undefined =>
  deadlinesOf(record).find((deadline) => at >= deadline.deadlineAt);

/** The deadline that comes next in time. */
export const nextDeadline = (record: WorkloadRecord): Deadline | undefined =>
  deadlinesOf(record).reduce<Deadline | undefined>(
    (first, deadline) => (first === undefined || deadline.deadlineAt < first.deadlineAt ? deadline : first),
    undefined,
  );

/** Ends the claim, if there is one, as timed out. A READY workload's previous attempt is not touched. */
const endAsTimedOut = (record: WorkloadRecord, at: number, reason: string): WorkloadRecord =>
  record.currentClaim === undefined
    ? record
    : endAttempt(record, { status: "TIMED_OUT", endedAt: at, error: `timeout: ${reason}` });

/** Times a workload out and decides in the same commit what follows. */
export function applyTimeout(
  record: WorkloadRecord,
  how: {
    readonly at: number;
    readonly actor: string;
    readonly reason: string;
    readonly retryable: boolean;
    readonly evidence: { readonly [name: string]: string | number };
  },
): WorkloadRecord {
  const claim = record.currentClaim;
  const timedOut = applyMove(endAsTimedOut(record, how.at, how.reason), {
    to: "TIMED_OUT",
    actor: how.actor,
    at: how.at,
    evidence: { ...how.evidence, claimId: claim?.claimId, workerId: claim?.workerId },
  });
  return decideAfterFailure(
    { ...timedOut, lastFailure: `timeout: ${how.reason}` },
    {
      actor: "authority.deadline",
      at: how.at,
      retriedAs: how.retryable ? "timeout" : undefined,
      denied: how.retryable ? "timeout_not_retryable" : "deadline_not_retryable",
      nextAttemptAt: () => laterBy(how.at, record.retryPolicy.initialDelayMs),
    },
  );
}

const neverRetried: readonly DeadlineName[] = ["approval", "overall", "queue"];

/** The change that a passed deadline makes. */
export const expiryOf = (record: WorkloadRecord, passed: Deadline, at: number): Change =>
  changeOf(
    "expire",
    applyTimeout(record, {
      at,
      actor: "authority.deadline",
      reason: `${passed.deadline} deadline passed`,
      retryable: !neverRetried.includes(passed.deadline),
      evidence: { deadline: passed.deadline, deadlineAt: passed.deadlineAt },
    }),
  );

/** The pass over deadlines: expires if, on this very version, `expected` is still the deadline that has passed; else changes nothing. */
export function decideExpire(record: WorkloadRecord, expected: DeadlineName, now: number): Decision<boolean> {
  const at = instantOf(record, now);
  const passed = passedDeadline(record, at);
  if (passed === undefined || passed.deadline !== expected) return { ok: true, answer: false };
  return { ok: true, answer: true, change: expiryOf(record, passed, at) };
}

/**
 * Enforces deadlines before a command: when one has passed the command expires the workload and is refused with
 * WORKLOAD_TIMED_OUT (contract 1.6); else it is decided at the record's instant.
 */
export function enforceDeadlines<Answer>(
  record: WorkloadRecord,
  now: number,
  decide: (at: number) => Decision<Answer>,
): Decision<Answer> {
  const at = instantOf(record, now);
  const passed = passedDeadline(record, at);
  if (passed === undefined) return decide(at);
  return {
    ok: false,
    error: refuse("WORKLOAD_TIMED_OUT", `the ${passed.deadline} deadline passed at ${passed.deadlineAt}`, {
      ...passed,
    }),
    change: expiryOf(record, passed, at),
  };
}
