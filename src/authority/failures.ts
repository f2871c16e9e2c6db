import { MandateError } from "../core/errors.ts";
import { StoreUnavailable, type CommitOutcome } from "../store/store.ts";

/** The error of a commit that neither happened nor was refused by a guard. */
export function failureOf(outcome: Exclude<CommitOutcome, { kind: "committed" } | { kind: "refused" }>): MandateError {
  switch (outcome.kind) {
    case "unknown":
      return new MandateError(
        "WORKLOAD_OUTCOME_UNKNOWN",
        "the store did not say whether the commit happened; repeat the call",
        {
          details: { cause: outcome.cause },
        },
      );
    case "unreached":
      return new MandateError("WORKLOAD_STORAGE_FAILURE", "the store can't be reached; nothing was committed", {
        details: { cause: outcome.cause },
      });
    case "unacceptable":
      // Trying again would not help: whoever reports an output must learn that it is the output.
      return new MandateError("WORKLOAD_TOO_LARGE", "the store can't hold this; nothing was committed", {
        details: { cause: outcome.cause },
      });
  }
}

/** What crosses the boundary for anything thrown on the way: refusals as they are, a silent store as WORKLOAD_STORAGE_FAILURE, bugs as INTERNAL_ERROR. */
export function boundaryError(cause: unknown): MandateError {
  if (cause instanceof MandateError) return cause;
  if (cause instanceof StoreUnavailable)
    return new MandateError("WORKLOAD_STORAGE_FAILURE", "the store can't be reached", { cause });
  return new MandateError("INTERNAL_ERROR", "a bug of the authority; its log has the cause", { cause });
}
