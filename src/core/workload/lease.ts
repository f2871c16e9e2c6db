import type { Json } from "../../base/json.ts";
import { refuse } from "../errors.ts";
import { enforceDeadlines, nextDeadline, type Deadline } from "./deadlines.ts";
import { changeOf, refused, type Decision } from "./decision.ts";
import { checkFence, type Fence, type Instant } from "./fence.ts";
import type { Checkpoint, Claim, Payload, WorkloadRecord } from "./record.ts";
import { laterBy } from "./transition.ts";

export interface HeartbeatAnswer {
  readonly claim: Claim;
  readonly cancellationRequested: boolean;
  readonly nextDeadline?: Deadline;
}

/** What a heartbeat answers about a record. */
export function heartbeatAnswer(record: WorkloadRecord, claim: Claim): HeartbeatAnswer {
  const next = nextDeadline(record);
  return {
    claim,
    cancellationRequested: record.state === "CANCELLATION_REQUESTED",
    ...(next === undefined ? {} : { nextDeadline: next }),
  };
}

/** Renews the lease; no event (contract 1.8). */
export const decideHeartbeat = (
  record: WorkloadRecord,
  command: { readonly fence: Fence; readonly extendMs: number },
  instant: Instant,
): Decision<HeartbeatAnswer> =>
  enforceDeadlines(record, instant.now, (at) => {
    const stale = checkFence(record, command.fence, { ...instant, now: at });
    if (stale !== undefined) return refused(stale);
    const current = record.currentClaim;
    if (current === undefined) return refused(refuse("WORKLOAD_CLAIM_INVALID", "the workload has no current claim"));
    const claim: Claim = { ...current, lastHeartbeat: at, expiresAt: laterBy(at, command.extendMs) };
    const next: WorkloadRecord = {
      ...record,
      currentClaim: claim,
      updatedAt: Math.max(record.updatedAt, at),
    };
    return { ok: true, answer: heartbeatAnswer(next, claim), change: changeOf("heartbeat", next) };
  });

/** What a worker needs to run an attempt (contract 1.8); `Content` is JSON on the surfaces and a {@link Payload} here. */
export interface ExecutionContext<Content = Json> {
  readonly attemptId: string;
  readonly capabilities: readonly string[];
  readonly connectionScopes: readonly string[];
  readonly expiresAt: number;
  readonly fencingToken: number;
  readonly input: Content;
  readonly checkpoints: readonly Checkpoint<Content>[];
  /** The references that were asked for, as they were given: the worker resolves them with its own rights. */
  readonly secretReferences: readonly string[];
}

/** Reads what the holder of the fence needs; changes nothing (contract 1.8). */
export const decideExecutionContext = (
  record: WorkloadRecord,
  command: { readonly fence: Fence; readonly secretReferences: readonly string[] },
  instant: Instant,
): Decision<ExecutionContext<Payload>> =>
  enforceDeadlines(record, instant.now, (at) => {
    const stale = checkFence(record, command.fence, { ...instant, now: at });
    if (stale !== undefined) return refused(stale);
    const wrong = command.secretReferences.findIndex((reference) => !reference.startsWith("secret://"));
    if (wrong >= 0)
      return refused(
        refuse("WORKLOAD_SECRET_REJECTED", `secretReferences[${wrong}] does not start with secret://`, {
          path: `secretReferences[${wrong}]`,
        }),
      );
    const claim = record.currentClaim;
    const attempt = record.attempts.at(-1);
    if (claim === undefined || attempt === undefined)
      return refused(refuse("WORKLOAD_CLAIM_INVALID", "the workload has no current claim"));
    return {
      ok: true,
      answer: {
        attemptId: attempt.attemptId,
        capabilities: claim.capabilities,
        connectionScopes: record.connectionScopes,
        expiresAt: claim.expiresAt,
        fencingToken: claim.fencingToken,
        input: record.input,
        checkpoints: record.checkpoints,
        secretReferences: command.secretReferences,
      },
    };
  });
