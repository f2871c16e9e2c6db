import { refuse, type Refusal } from "../errors.ts";
import { enforceDeadlines } from "./deadlines.ts";
import { changeOf, refused, type Decision } from "./decision.ts";
import { checkFence, fenceNamesAttempt, type Fence, type Instant } from "./fence.ts";
import type { WorkloadRecord } from "./record.ts";
import { backoffMs, decideAfterFailure } from "./retry-policy.ts";
import type { WorkloadRules } from "./rules.ts";
import { findSecretText } from "./secrets.ts";
import { mayGo, type WorkloadState } from "./states.ts";
import { applyMove, denyMove, endAttempt, instantOf, laterBy } from "./transition.ts";

export interface FailCommand {
  readonly fence: Fence;
  readonly kind: string;
  readonly error: string;
  /** Whether the attempt may have had an effect; anything but `none` and `unknown` is refused. */
  readonly effect?: string | undefined;
}

/** What ending calls answer. */
export interface StateAnswer {
  readonly state: WorkloadState;
}

/** An error text as it is kept: well formed, and cut to the bound with a word that says so, so that no text keeps work from ending. */
export function keptError(error: string, rules: WorkloadRules): string {
  const formed = error.toWellFormed();
  if (formed.length <= rules.errorLengthMax) return formed;
  return `${formed.slice(0, rules.errorLengthMax).toWellFormed()}… (${formed.length - rules.errorLengthMax} more)`;
}

/** The same report by the attempt that already made it: answered, not made again (contract 1.8). */
function isRepeatedReport(record: WorkloadRecord, command: FailCommand, error: string): boolean {
  const attempt = record.attempts.find((candidate) => fenceNamesAttempt(command.fence, candidate));
  if (attempt === undefined || attempt.status !== "FAILED" || attempt.error !== error) return false;
  const event = record.history.find(
    ({ to, evidence }) => to === "FAILED" && evidence["attemptId"] === attempt.attemptId,
  );
  if (event === undefined || event.evidence["failureKind"] !== command.kind) return false;
  return command.effect === undefined || command.effect === event.evidence["effect"];
}

function applyFail(
  record: WorkloadRecord,
  command: FailCommand,
  how: { readonly at: number; readonly error: string },
): WorkloadRecord {
  const { at, error } = how;
  const effect = command.effect ?? (record.state === "CLAIMED" ? "none" : undefined);
  const attemptId = record.attempts.at(-1)?.attemptId;
  const failed = applyMove(endAttempt(record, { status: "FAILED", endedAt: at, error }), {
    to: "FAILED",
    actor: command.fence.workerId,
    at,
    evidence: { failureKind: command.kind, attemptId, effect },
  });
  const unknown = effect === "unknown";
  return decideAfterFailure(
    { ...failed, lastFailure: `${command.kind}: ${error}` },
    {
      actor: "authority.retry",
      at,
      retriedAs: unknown ? "worker_failure" : command.kind,
      denied: unknown ? "effect_unknown_not_retryable" : "failure_kind_not_retryable",
      nextAttemptAt: (retry) => laterBy(at, backoffMs(failed, retry)),
    },
  );
}

const findBadEffect = (effect: string | undefined): Refusal | undefined =>
  effect === undefined || effect === "none" || effect === "unknown"
    ? undefined
    : refuse("WORKLOAD_INVALID", "effect is none or unknown", {
        paths: ["effect"],
        issues: [{ path: "effect", message: "is none or unknown" }],
      });

/** A worker reports that its attempt failed (contract 1.8). */
export function decideFail(
  record: WorkloadRecord,
  command: FailCommand,
  context: Instant & { readonly rules: WorkloadRules },
): Decision<StateAnswer> {
  const error = keptError(command.error, context.rules);
  const secret = findSecretText(command.error, "error", context.rules);
  // A report that was already taken commits nothing, so it is answered before a deadline could turn it into an expiry.
  if (secret === undefined && isRepeatedReport(record, command, error))
    return { ok: true, answer: { state: record.state } };
  return enforceDeadlines(record, context.now, (at) => {
    if (secret !== undefined) return refused(secret);
    const bad = findBadEffect(command.effect);
    if (bad !== undefined) return refused(bad);
    const stale = checkFence(record, command.fence, { ...context, now: at });
    if (stale !== undefined) return refused(stale);
    if (!mayGo(record.state, "FAILED")) return refused(denyMove(record, "failed"));
    const next = applyFail(record, command, { at, error });
    return { ok: true, answer: { state: next.state }, change: changeOf("fail", next) };
  });
}

/** The worker confirms that it stopped (contract 1.8). Deadlines are not enforced here. */
export function decideConfirmCancel(record: WorkloadRecord, fence: Fence, instant: Instant): Decision<StateAnswer> {
  const at = instantOf(record, instant.now);
  const stale = checkFence(record, fence, { ...instant, now: at });
  if (stale !== undefined) return refused(stale);
  if (record.state !== "CANCELLATION_REQUESTED") return refused(denyMove(record, "confirmed as cancelled"));
  const attemptId = record.attempts.at(-1)?.attemptId;
  const next = applyMove(endAttempt(record, { status: "CANCELLED", endedAt: at }), {
    to: "CANCELLED",
    actor: fence.workerId,
    at,
    evidence: { attemptId },
  });
  return { ok: true, answer: { state: next.state }, change: changeOf("confirm-cancel", next) };
}
