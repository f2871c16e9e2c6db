import { randomUUID } from "node:crypto";
import type { Json } from "../base/json.ts";
import type { Log } from "../base/log.ts";
import { MandateError } from "../core/errors.ts";
import type { Fence } from "../core/workload/fence.ts";
import { exactJson } from "./exact-json.ts";
import type { WorkConnection } from "./work-connection.ts";
import { WorkloadFailure } from "./workload-failure.ts";

/** How an attempt is reported to have failed. */
export interface FailureReport {
  readonly kind: string;
  readonly error: string;
  readonly effect?: "none" | "unknown" | undefined;
}

/** How a report went; only `reported` says that the authority took it. */
export type ReportOutcome = "reported" | "cancelled" | "refused" | "unresolved";

/** How long a report is repeated while the authority can't be reached, ms. */
const REPORT_DEADLINE_MS = 300_000;
/** Longest error text that is sent; the authority keeps less and says so. */
const ERROR_LENGTH_MAX = 16_384;

/** Refusals of what a report contains, rather than of the report. */
const isContentRefusal = ({ code }: MandateError): boolean =>
  code === "WORKLOAD_TOO_LARGE" || code === "WORKLOAD_SECRET_REJECTED" || code === "WORKLOAD_INVALID";

/** The text of what a handler threw. */
export function failureOf(thrown: unknown): FailureReport {
  if (thrown instanceof WorkloadFailure) return { kind: thrown.kind, error: thrown.message, effect: thrown.effect };
  if (thrown instanceof Error) return { kind: "error", error: thrown.message === "" ? thrown.name : thrown.message };
  return { kind: "error", error: typeof thrown === "string" ? thrown : "the handler threw something that is no error" };
}

/** The place that a refusal names, as far as it may be repeated. */
function placeOf(error: MandateError): string {
  const { path } = error.details ?? {};
  return typeof path === "string" && path.length <= 200 ? ` at ${path}` : "";
}

/**
 * Reports how an attempt ended, until the answer is definite. What can't be stored never keeps the work from ending: an
 * output that is refused becomes a failure of the kind `result_rejected`, an error text that is refused is replaced by
 * one that says so.
 */
export class Reporter {
  readonly #connection: WorkConnection;
  readonly #fence: Fence;
  readonly #log: Log;
  readonly #signal: AbortSignal;

  /** `signal` ends the repeating, for a worker that must close. */
  constructor(connection: WorkConnection, fence: Fence, how: { readonly log: Log; readonly signal: AbortSignal }) {
    this.#connection = connection;
    this.#fence = fence;
    this.#log = how.log;
    this.#signal = how.signal;
  }

  async complete(output: unknown): Promise<ReportOutcome> {
    const checked = exactJson(output ?? null, "output");
    if (!checked.ok)
      return this.fail({
        kind: "result_rejected",
        error: `${checked.error.path} ${checked.error.rule}`.toWellFormed(),
      });
    return this.#completeWith(checked.value);
  }

  async #completeWith(output: Json): Promise<ReportOutcome> {
    try {
      await this.#call("work.complete", { output });
      return "reported";
    } catch (thrown) {
      if (!(thrown instanceof MandateError)) return this.#unresolved(thrown);
      if (isContentRefusal(thrown))
        return this.fail({
          kind: "result_rejected",
          error: `the output was refused with ${thrown.code}${placeOf(thrown)}`,
        });
      return this.#afterRefusal(thrown);
    }
  }

  async fail(report: FailureReport): Promise<ReportOutcome> {
    const error = report.error.toWellFormed().slice(0, ERROR_LENGTH_MAX).toWellFormed();
    const effect = report.effect === undefined ? {} : { effect: report.effect };
    const safe = { kind: report.kind, error: "the error text was refused; the worker's log may have it", ...effect };
    const tries = [{ kind: report.kind, error, ...effect }, safe, { ...safe, kind: "error" }];
    for (const args of tries) {
      try {
        await this.#call("work.fail", args);
        return "reported";
      } catch (thrown) {
        if (!(thrown instanceof MandateError)) return this.#unresolved(thrown);
        if (!isContentRefusal(thrown)) return this.#afterRefusal(thrown);
        safe.error = `the error text was refused with ${thrown.code}; the worker's log may have it`;
        this.#log.warn({ ...this.#place(), code: thrown.code }, "an error text was refused; a safe one replaces it");
      }
    }
    return "refused";
  }

  /** Tells the authority that the work stopped as it was asked to. */
  async confirmCancel(): Promise<ReportOutcome> {
    try {
      await this.#call("work.confirm-cancel", {});
      return "cancelled";
    } catch (thrown) {
      if (!(thrown instanceof MandateError)) return this.#unresolved(thrown);
      this.#log.warn({ ...this.#place(), code: thrown.code }, "the report was refused");
      return "refused";
    }
  }

  /** A report that comes after a request to cancel is denied; then stopping is what is to be reported. */
  async #afterRefusal(error: MandateError): Promise<ReportOutcome> {
    if (error.code === "WORKLOAD_OUTCOME_UNKNOWN" || error.retry) return this.#unresolved(error);
    if (error.code === "WORKLOAD_TRANSITION_DENIED") return this.confirmCancel();
    this.#log.warn({ ...this.#place(), code: error.code }, "the report was refused");
    return "refused";
  }

  #unresolved(thrown: unknown): ReportOutcome {
    const code = thrown instanceof MandateError ? thrown.code : undefined;
    this.#log.error({ ...this.#place(), code }, "the report was not answered; the lease decides");
    return "unresolved";
  }

  #place(): object {
    return { workloadId: this.#fence.workloadId, fencingToken: this.#fence.fencingToken };
  }

  #call(verb: "work.complete" | "work.fail" | "work.confirm-cancel", args: object): Promise<unknown> {
    const request = { ...this.#fence, ...args, requestId: randomUUID() };
    return this.#connection.call(verb, request, { deadlineMs: REPORT_DEADLINE_MS, signal: this.#signal });
  }
}
