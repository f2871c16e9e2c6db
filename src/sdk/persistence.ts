import { monotonicMs } from "../base/clock.ts";
import { MandateError } from "../core/errors.ts";
import { backoffDelayMs, pause } from "./backoff.ts";
import { isPassing } from "./problem.ts";

/** How one try of a call went. */
export type TryOutcome<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  /** A server refused it. `retryAfterMs`: when it asks to be tried again. */
  | { readonly kind: "refused"; readonly error: MandateError; readonly retryAfterMs?: number | undefined }
  /** No answer. `sent: false`: it surely reached nobody; `reason` is what the system calls that. */
  | { readonly kind: "lost"; readonly sent: boolean; readonly reason?: string | undefined; readonly cause: unknown };

export interface Persistence {
  /** How long to keep trying, ms. */
  readonly deadlineMs: number;
  /** `true`: the call may change something, so a lost answer leaves its outcome open. */
  readonly changes: boolean;
  /** Another server is there to be asked at once, this many times in a row. */
  readonly alternatives?: number;
  readonly signal?: AbortSignal | undefined;
}

/** A bug of the server is not cured by waiting. */
const INTERNAL_ERRORS_MAX = 3;

function refusalOf(outcome: Exclude<TryOutcome<never>, { readonly kind: "answered" }>): MandateError {
  if (outcome.kind === "refused") return outcome.error;
  const reason = outcome.reason === undefined ? "" : `: ${outcome.reason}`;
  const message = outcome.sent ? "no answer came" : `no server could be reached${reason}`;
  return new MandateError("AUTHORITY_NOT_READY", message, { cause: outcome.cause });
}

/**
 * Repeats a call, with the same requestId, until its outcome is definite or the deadline passes. What passes by itself
 * (a node that is not ready, a lost answer, too much load) is tried again after a jittered, growing delay that honours
 * the server's Retry-After; anything else is thrown as it came.
 *
 * @throws MandateError the refusal; at the deadline `WORKLOAD_OUTCOME_UNKNOWN` when some try of a changing call may have
 * been carried out, else the last refusal. An abort throws the signal's reason.
 */
export async function persist<Answer>(
  attempt: (place: number) => Promise<TryOutcome<Answer>>,
  how: Persistence,
): Promise<Answer> {
  const deadline = monotonicMs() + how.deadlineMs;
  let doubt = false;
  let internalErrors = 0;
  for (let place = 0; ; place++) {
    how.signal?.throwIfAborted();
    const outcome = await attempt(place);
    if (outcome.kind === "answered") return outcome.answer;
    how.signal?.throwIfAborted();
    const error = refusalOf(outcome);
    if (outcome.kind === "refused") {
      if (error.code === "INTERNAL_ERROR") internalErrors += 1;
      if (!isPassing(error) || internalErrors >= INTERNAL_ERRORS_MAX) throw error;
    }
    doubt ||= outcome.kind === "lost" ? outcome.sent : !error.definite;
    const asked = outcome.kind === "refused" ? outcome.retryAfterMs : undefined;
    const delayMs = place < (how.alternatives ?? 0) ? 0 : Math.max(asked ?? 0, backoffDelayMs(place));
    if (monotonicMs() + delayMs >= deadline) {
      if (!doubt || !how.changes || error.code === "WORKLOAD_OUTCOME_UNKNOWN") throw error;
      throw new MandateError(
        "WORKLOAD_OUTCOME_UNKNOWN",
        "no definite answer came in time; repeating the call is safe",
        {
          cause: error,
        },
      );
    }
    await pause(delayMs, how.signal);
  }
}
