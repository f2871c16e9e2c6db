import { utf8Length } from "../../base/bytes.ts";
import type { Json } from "../../base/json.ts";
import { refuse, type Refusal } from "../errors.ts";
import { enforceDeadlines } from "./deadlines.ts";
import { changeOf, refused, type Decision } from "./decision.ts";
import { checkFence, fenceNamesAttempt, type Fence, type Instant } from "./fence.ts";
import { checkpointIdOf, defaultResultIdOf, workloadOfDefaultResultId } from "./identity.ts";
import { checkpointSlot, hashJson, outputSlot, placePayload } from "./payload.ts";
import type { Attempt, Checkpoint, Payload, Result, WorkloadRecord } from "./record.ts";
import type { WorkloadRules } from "./rules.ts";
import { findSecret } from "./secrets.ts";
import { applyMove, denyMove, endAttempt, withLastAttempt } from "./transition.ts";

const isRunning = (record: WorkloadRecord): boolean => record.state === "RUNNING" || record.state === "CHECKPOINTED";

const inlineCheckpointBytes = (record: WorkloadRecord): number =>
  record.checkpoints.reduce((bytes, { state }) => ("json" in state ? bytes + utf8Length(state.json) : bytes), 0);

function placeCheckpoint(record: WorkloadRecord, state: Json, rules: WorkloadRules): ReturnType<typeof placePayload> {
  const roomLeft = Math.max(rules.inlineCheckpointBytesMax - inlineCheckpointBytes(record), 0);
  const slot = checkpointSlot(record.checkpoints.length + 1);
  return placePayload(state, {
    slot,
    path: "state",
    inlineMax: Math.min(rules.inlineBytesMax, roomLeft),
    rules,
  });
}

const payloadBytes = (payload: Payload): number => ("json" in payload ? utf8Length(payload.json) : payload.bytes);

/** What a worker of the workload is handed: its input and all checkpoints. */
const contextBytes = (record: WorkloadRecord): number =>
  record.checkpoints.reduce((bytes, { state }) => bytes + payloadBytes(state), payloadBytes(record.input));

const tooMany = ({ checkpointsMax }: WorkloadRules): Refusal =>
  refuse("WORKLOAD_TOO_LARGE", `the workload has ${checkpointsMax} checkpoints, the most it may have`, {
    checkpointsMax,
  });

const tooMuch = (bytes: number, { contextBytesMax: bytesMax }: WorkloadRules): Refusal =>
  refuse("WORKLOAD_TOO_LARGE", `input and checkpoints would have ${bytes} bytes together; ${bytesMax} are allowed`, {
    path: "state",
    bytes,
    bytesMax,
  });

/** Commits progress (contract 1.8). */
export const decideCheckpoint = (
  record: WorkloadRecord,
  command: { readonly fence: Fence; readonly state: Json },
  context: Instant & { readonly rules: WorkloadRules },
): Decision<Checkpoint<Payload>> =>
  enforceDeadlines(record, context.now, (at) => {
    const { rules } = context;
    const secret = findSecret(command.state, "state", rules);
    if (secret !== undefined) return refused(secret);
    const stale = checkFence(record, command.fence, { ...context, now: at });
    if (stale !== undefined) return refused(stale);
    const attempt = record.attempts.at(-1);
    if (!isRunning(record) || attempt === undefined) return refused(denyMove(record, "checkpointed"));
    const sequence = record.checkpoints.length + 1;
    if (sequence > rules.checkpointsMax) return refused(tooMany(rules));
    const placed = placeCheckpoint(record, command.state, rules);
    if (!placed.ok) return refused(placed.error);
    const bytes = contextBytes(record) + payloadBytes(placed.value.payload);
    if (bytes > rules.contextBytesMax) return refused(tooMuch(bytes, rules));
    const checkpoint: Checkpoint<Payload> = {
      checkpointId: checkpointIdOf(record.workloadId, sequence),
      workloadId: record.workloadId,
      attemptId: attempt.attemptId,
      sequence,
      state: placed.value.payload,
      stateHash: hashJson(command.state),
      createdAt: at,
      producedBy: command.fence.workerId,
    };
    const progressed = withLastAttempt(
      {
        ...record,
        checkpoints: [...record.checkpoints, checkpoint],
        updatedAt: Math.max(record.updatedAt, at),
      },
      { status: "CHECKPOINTED" },
    );
    const next =
      record.state === "RUNNING"
        ? applyMove(progressed, {
            to: "CHECKPOINTED",
            actor: command.fence.workerId,
            at,
            evidence: { checkpointId: checkpoint.checkpointId },
          })
        : progressed;
    const payloads = placed.value.put === undefined ? [] : [placed.value.put];
    return {
      ok: true,
      answer: checkpoint,
      change: changeOf("checkpoint", next, { payloads, reference: sequence, reserve: false }),
    };
  });

export interface CompleteCommand {
  readonly fence: Fence;
  /** Absent: `result_<attemptId>`. */
  readonly resultId?: string | undefined;
  readonly output: Json;
  readonly artifacts: readonly string[];
  readonly schemaVersion: string | number;
}

/** Whether the result id has to be reserved in the application: only one that a caller made up (contract 1.8). */
export const needsReservation = (record: WorkloadRecord, command: CompleteCommand): boolean => {
  if (command.resultId === undefined) return false;
  const attempt = record.attempts.find((candidate) => fenceNamesAttempt(command.fence, candidate));
  return attempt === undefined || command.resultId !== defaultResultIdOf(attempt.attemptId);
};

/** A completion whose result id is already recorded: the recorded result again, or why not (contract 1.8). */
function decideRepeatedResult(
  record: WorkloadRecord,
  command: CompleteCommand,
  seen: { readonly resultId: string; readonly reservedFor: string | undefined },
): Decision<Result<Payload>> | undefined {
  const { resultId } = seen;
  const owner = seen.reservedFor ?? workloadOfDefaultResultId(resultId);
  if (owner !== undefined && owner !== record.workloadId)
    return refused(
      refuse("WORKLOAD_RESULT_DUPLICATE", "the result id belongs to another workload", {
        resultId,
      }),
    );
  const { result } = record;
  if (result === undefined || result.resultId !== resultId) return undefined;
  const same =
    result.producedBy === command.fence.workerId &&
    result.provenance.claimId === command.fence.claimId &&
    result.provenance.fencingToken === command.fence.fencingToken &&
    result.outputHash === hashJson(command.output);
  return same
    ? { ok: true, answer: result }
    : refused(
        refuse("WORKLOAD_RESULT_CONFLICT", "the result id is recorded with another output or by another claim", {
          resultId,
        }),
      );
}

function applyComplete(record: WorkloadRecord, attempt: Attempt, result: Result<Payload>): WorkloadRecord {
  const ended = endAttempt(record, {
    status: "SUCCEEDED",
    endedAt: result.createdAt,
    resultHash: result.outputHash,
  });
  return applyMove(
    { ...ended, result },
    {
      to: "SUCCEEDED",
      actor: result.producedBy,
      at: result.createdAt,
      evidence: { resultId: result.resultId, attemptId: attempt.attemptId },
    },
  );
}

/** Stores the result and ends the work (contract 1.8). `reservedFor`: the workload that the result id is reserved for, as committed. */
export const decideComplete = (
  record: WorkloadRecord,
  command: CompleteCommand,
  context: Instant & { readonly rules: WorkloadRules; readonly reservedFor: string | undefined },
): Decision<Result<Payload>> =>
  enforceDeadlines(record, context.now, (at) => {
    const { fence } = command;
    const { rules } = context;
    const secret = findSecret(command.output, "output", rules);
    if (secret !== undefined) return refused(secret);
    const named = record.attempts.find((candidate) => fenceNamesAttempt(fence, candidate));
    const ownId = named === undefined ? undefined : defaultResultIdOf(named.attemptId);
    const resultId = command.resultId ?? ownId;
    if (resultId !== undefined) {
      const repeated = decideRepeatedResult(record, command, {
        resultId,
        reservedFor: context.reservedFor,
      });
      if (repeated !== undefined) return repeated;
    }
    const stale = checkFence(record, fence, { ...context, now: at });
    if (stale !== undefined) return refused(stale);
    const attempt = record.attempts.at(-1);
    if (!isRunning(record) || attempt === undefined || resultId === undefined)
      return refused(denyMove(record, "completed"));
    const placed = placePayload(command.output, {
      slot: outputSlot(attempt.attemptId),
      path: "output",
      inlineMax: rules.inlineBytesMax,
      rules,
    });
    if (!placed.ok) return refused(placed.error);
    const result: Result<Payload> = {
      resultId,
      workloadId: record.workloadId,
      attemptId: attempt.attemptId,
      status: "succeeded",
      output: placed.value.payload,
      outputHash: hashJson(command.output),
      artifacts: command.artifacts,
      provenance: { claimId: fence.claimId, fencingToken: fence.fencingToken },
      producedBy: fence.workerId,
      createdAt: at,
      schemaVersion: command.schemaVersion,
    };
    return {
      ok: true,
      answer: result,
      change: changeOf("complete", applyComplete(record, attempt, result), {
        payloads: placed.value.put === undefined ? [] : [placed.value.put],
        ...(needsReservation(record, command) ? { reservedResultId: resultId } : {}),
      }),
    };
  });
