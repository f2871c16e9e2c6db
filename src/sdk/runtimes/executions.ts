import { monotonicMs } from "../../base/clock.ts";
import { MandateError } from "../../core/errors.ts";
import { WorkloadFailure, WorkStopped } from "../workload-failure.ts";
import type { RuntimeClaim, RuntimePolicy } from "./runtime.ts";

/** One claim that a runtime has taken on: what stops it, and how long it has gone on. */
export class RuntimeExecution {
  readonly policy: RuntimePolicy;
  readonly #stop = new AbortController();
  readonly #over = new AbortController();
  #begunAt = monotonicMs();
  #timer: NodeJS.Timeout | undefined;

  constructor(policy: RuntimePolicy) {
    this.policy = policy;
  }

  /** Aborts with what is to be thrown in the place of a result. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get durationMs(): number {
    return Math.round(monotonicMs() - this.#begunAt);
  }

  /** It goes on from now; `outer` stops it as well. */
  begin(outer: AbortSignal): void {
    const { maxDurationMs } = this.policy;
    this.#begunAt = monotonicMs();
    this.#timer = setTimeout(() => this.timeout(), maxDurationMs);
    const pass = (): void => this.stop(outer.reason);
    if (outer.aborted) pass();
    else outer.addEventListener("abort", pass, { once: true, signal: this.#over.signal });
  }

  /** It is over. */
  end(): void {
    clearTimeout(this.#timer);
    this.#over.abort();
  }

  /** For what a handler does that went on after its execution had ended; throws the reason of that. */
  refuseIfOver(): void {
    if (this.#over.signal.aborted) throw this.signal.reason ?? new WorkStopped("cancelled", "the execution has ended");
  }

  /** The first reason counts. */
  stop(reason: unknown): void {
    if (!this.#stop.signal.aborted) this.#stop.abort(reason);
  }

  cancel(): void {
    this.stop(new WorkStopped("cancelled", "the runtime was told to cancel it"));
  }

  timeout(): void {
    const message = `it took longer than ${this.policy.maxDurationMs} ms`;
    this.stop(new WorkloadFailure("timeout", message, { effect: "unknown" }));
  }
}

interface Entry {
  readonly execution: RuntimeExecution;
  ended: Promise<unknown> | undefined;
}

const keyOf = ({ workloadId, fencingToken }: RuntimeClaim): string => `${fencingToken} ${workloadId}`;

/** The claims that a runtime has taken on. */
export class RuntimeExecutions {
  readonly #entries = new Map<string, Entry>();

  /** @throws MandateError `WORKLOAD_INVALID` when that claim is under way. */
  start(claim: RuntimeClaim, policy: RuntimePolicy): void {
    if (this.#entries.has(keyOf(claim))) throw new MandateError("WORKLOAD_INVALID", "the claim is under way already");
    this.#entries.set(keyOf(claim), { execution: new RuntimeExecution(policy), ended: undefined });
  }

  /** @throws MandateError `WORKLOAD_INVALID` when the claim was not started, or is under way. */
  async run<Result>(
    claim: RuntimeClaim,
    outer: AbortSignal,
    carryOut: (execution: RuntimeExecution) => Promise<Result>,
  ): Promise<Result> {
    const entry = this.#entries.get(keyOf(claim));
    if (entry === undefined || entry.ended !== undefined)
      throw new MandateError("WORKLOAD_INVALID", "the claim was not started, or is under way");
    const { execution } = entry;
    execution.begin(outer);
    const running = carryOut(execution);
    entry.ended = running.catch(() => undefined);
    try {
      return await running;
    } finally {
      execution.end();
      this.#entries.delete(keyOf(claim));
    }
  }

  /** Stops a claim's execution; answers when it has ended. */
  async stop(claim: RuntimeClaim, how: "cancel" | "timeout"): Promise<void> {
    const entry = this.#entries.get(keyOf(claim));
    entry?.execution[how]();
    await entry?.ended;
  }
}
