import { randomUUID } from "node:crypto";
import type { Log } from "../base/log.ts";
import { MandateError, type ErrorCode } from "../core/errors.ts";
import type { Fence } from "../core/workload/fence.ts";
import type { ExecutionContext, HeartbeatAnswer } from "../core/workload/lease.ts";
import type { Checkpoint, Claim } from "../core/workload/record.ts";
import { requireExactJson } from "./exact-json.ts";
import type { LeaseHold, LeaseRenewer } from "./lease-renewer.ts";
import { failureOf, Reporter, type ReportOutcome } from "./report.ts";
import { sharedMonotonicMs } from "./shared-clock.ts";
import type { WorkConnection } from "./work-connection.ts";
import type { Handler, Work } from "./work-context.ts";
import { WorkloadFailure, WorkStopped, type StopCause } from "./workload-failure.ts";

export interface ExecutionOptions {
  readonly claim: Claim;
  /** When the request that was granted the claim was sent, ms of the shared clock. */
  readonly sentAt: number;
  readonly leaseMs: number;
  readonly connection: WorkConnection;
  readonly renewer: LeaseRenewer;
  readonly handler: Handler;
  readonly log: Log;
  /** Ends the repeating of reports when the worker closes. */
  readonly closing: AbortSignal;
}

/** How a claim ended for this worker. */
export type ExecutionEnd = ReportOutcome | "lost" | "abandoned";

type Settled = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly thrown: unknown };

/** A lease with less than this share left when the claim arrives is renewed before the handler starts. */
const FRESH_SHARE = 1 / 3;
const CALL_DEADLINE_MS = 30_000;
/** Error texts for work that goes back undone. */
const GIVEN_BACK: { readonly [Cause in StopCause]: string } = {
  shutdown: "the worker shut down before the work was done",
  lease_lost: "the worker could not renew its lease in time",
  cancelled: "the work was cancelled",
};

/** Refusals that say that the claim is over. */
const FENCE_CODES = new Set<ErrorCode>([
  "WORKLOAD_CLAIM_INVALID",
  "WORKLOAD_STALE_FENCE",
  "WORKLOAD_LEASE_EXPIRED",
  "WORKLOAD_TIMED_OUT",
  "WORKLOAD_NOT_FOUND",
]);

interface Deferred<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
}

function deferred<Value>(): Deferred<Value> {
  let settle: ((value: Value) => void) | undefined;
  const promise = new Promise<Value>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle?.(value) };
}

/** One claim, from its arrival to the definite answer about its end. */
export class Execution {
  readonly claim: Claim;
  /** Fulfilled when the claim is no longer this worker's business; never rejected. */
  readonly ended: Promise<ExecutionEnd>;
  /** Fulfilled when the handler's code has settled as well. */
  readonly settled: Promise<void>;
  readonly #options: ExecutionOptions;
  readonly #fence: Fence;
  readonly #reporter: Reporter;
  readonly #stop = new AbortController();
  readonly #lost = deferred<"lost">();
  readonly #abandoned = deferred<"abandoned">();
  readonly #settled = deferred<void>();
  #hold: LeaseHold | undefined;
  #renewed: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #cancelTimer: NodeJS.Timeout | undefined;
  #cancelled = false;
  #started = false;
  #reporting = false;

  constructor(options: ExecutionOptions) {
    const { claim, connection, log } = options;
    this.claim = claim;
    this.#options = options;
    const { workloadId, claimId, workerId, fencingToken } = claim;
    this.#fence = { workloadId, claimId, workerId, fencingToken };
    this.#reporter = new Reporter(connection, this.#fence, { log, signal: options.closing });
    this.settled = this.#settled.promise;
    this.ended = this.#run().finally(() => this.#release());
  }

  /** The worker's grace period is over: the handler is told to stop, and what it leaves undone is given back. */
  shutDown(): void {
    this.#abort(new WorkStopped("shutdown", "the worker is shutting down"));
  }

  /** Gives the work back without waiting for the handler any longer. */
  abandon(): void {
    this.#abandoned.resolve("abandoned");
  }

  async #run(): Promise<ExecutionEnd> {
    const work = await Promise.race([this.#prepare(), this.#lost.promise, this.#abandoned.promise]);
    if (typeof work === "string" || this.#stop.signal.aborted) {
      this.#settled.resolve();
      return typeof work === "string" && work !== "abandoned" ? work : this.#giveBack();
    }
    this.#started = true;
    const handled = this.#handle(work);
    void handled.then(() => this.#settled.resolve());
    const first = await Promise.race([handled, this.#lost.promise, this.#abandoned.promise]);
    if (first === "lost") return "lost";
    if (first === "abandoned") return this.#giveBack();
    return this.#report(first);
  }

  async #handle(work: Work): Promise<Settled> {
    try {
      return { ok: true, value: await this.#options.handler(work) };
    } catch (thrown) {
      return { ok: false, thrown };
    }
  }

  /** Makes sure of the lease and reads what the handler needs. */
  async #prepare(): Promise<Work | ExecutionEnd> {
    const { leaseMs, sentAt, renewer } = this.#options;
    this.#hold = renewer.hold(this.#fence, sentAt, {
      onRenewed: () => this.#renewed?.(),
      onCancel: () => this.#onCancel(),
      onLost: (code) => this.#onLost(code),
    });
    const context = await this.#readContext();
    if (typeof context === "string") return context;
    if (this.#trustLeft() < leaseMs * FRESH_SHARE) await this.#renewNow();
    this.#watchTrust();
    return this.#workOf(context);
  }

  async #readContext(): Promise<ExecutionContext | ExecutionEnd> {
    try {
      return (await this.#call("work.context", {})) as ExecutionContext;
    } catch (thrown) {
      if (!(thrown instanceof MandateError)) return "unresolved";
      this.#options.log.warn({ ...this.#place(), code: thrown.code }, "claimed work could not be read");
      if (FENCE_CODES.has(thrown.code)) return "lost";
      this.#reporting = true;
      return this.#reporter.fail({
        // Work that no message can hold will not fit the next time either: it is not what `worker_failure` retries.
        kind: thrown.code === "WORKLOAD_TOO_LARGE" ? "context_too_large" : "worker_failure",
        error: `the worker could not read the work (${thrown.code})`,
        effect: "none",
      });
    }
  }

  /** Waits until the authority has prolonged the lease; for ever if it does not, which losing the lease ends. */
  #renewNow(): Promise<void> {
    const renewed = new Promise<void>((resolve) => {
      this.#renewed = resolve;
    });
    this.#hold?.renewNow();
    return renewed;
  }

  #workOf(context: ExecutionContext): Work {
    const { attemptId, capabilities, checkpoints, connectionScopes, fencingToken, input } = context;
    return {
      workloadId: this.#fence.workloadId,
      attemptId,
      attempt: Number(/_(\d+)$/.exec(attemptId)?.[1] ?? 1),
      input,
      checkpoints,
      capabilities,
      connectionScopes,
      fencingToken,
      signal: this.#stop.signal,
      checkpoint: (state) => this.#checkpoint(state),
      heartbeat: () => this.#heartbeat(),
    };
  }

  async #checkpoint(state: unknown): Promise<Checkpoint> {
    this.#refuseIfLost();
    const args = { state: requireExactJson(state ?? null, "state"), requestId: randomUUID() };
    return (await this.#call("work.checkpoint", args)) as Checkpoint;
  }

  async #heartbeat(): Promise<{ readonly cancellationRequested: boolean }> {
    this.#refuseIfLost();
    this.#hold?.renewNow();
    const answer = (await this.#call("work.heartbeat", { extendMs: this.#options.leaseMs })) as HeartbeatAnswer;
    if (answer.cancellationRequested) this.#onCancel();
    return { cancellationRequested: answer.cancellationRequested };
  }

  #refuseIfLost(): void {
    if (this.#stopCause() === "lease_lost") throw this.#stop.signal.reason;
  }

  /** Tells the authority how it ended. The fence decides whether it still counts, whatever this worker believes. */
  #report(settled: Settled): Promise<ExecutionEnd> {
    this.#reporting = true;
    if (this.#cancelled) return this.#reporter.confirmCancel();
    if (settled.ok) return this.#reporter.complete(settled.value);
    const { thrown } = settled;
    const stopped = this.#stop.signal.aborted && !(thrown instanceof WorkloadFailure);
    return stopped ? this.#giveBack() : this.#reporter.fail(failureOf(thrown));
  }

  #giveBack(): Promise<ReportOutcome> {
    if (this.#cancelled) return this.#reporter.confirmCancel();
    return this.#reporter.fail({
      kind: "worker_failure",
      error: GIVEN_BACK[this.#stopCause() ?? "shutdown"],
      effect: this.#started ? "unknown" : "none",
    });
  }

  #onCancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#abort(new WorkStopped("cancelled", "cancellation was requested"));
    // A handler that does not stop loses its lease, and with it the work ends as cancelled.
    this.#cancelTimer = setTimeout(() => this.#lost.resolve("lost"), this.#options.leaseMs);
  }

  /** The authority says that the claim is over: the handler is told to stop. One that has ended may be why it is over. */
  lose(code: ErrorCode): void {
    if (!this.#reporting && this.#stopCause() !== "lease_lost") this.#onLost(code);
  }

  #onLost(code: string): void {
    this.#options.log.warn({ ...this.#place(), code }, "the lease is lost");
    this.#abort(new WorkStopped("lease_lost", `the authority says that the lease is over (${code})`));
    this.#lost.resolve("lost");
  }

  #stopCause(): StopCause | undefined {
    const reason: unknown = this.#stop.signal.reason;
    return reason instanceof WorkStopped ? reason.stopCause : undefined;
  }

  #trustLeft(): number {
    return (this.#hold?.trustedUntil() ?? 0) - sharedMonotonicMs();
  }

  /** Aborts when the trust is over. Looks at the shared time itself, since this thread may have been too busy to hear. */
  #watchTrust(): void {
    const leftMs = this.#trustLeft();
    if (leftMs > 0) {
      this.#timer = setTimeout(() => this.#watchTrust(), Math.min(60_000, leftMs));
      return;
    }
    this.#abort(new WorkStopped("lease_lost", "the lease could not be renewed in time"));
  }

  #abort(reason: WorkStopped): void {
    if (!this.#stop.signal.aborted) this.#stop.abort(reason);
  }

  #release(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#cancelTimer);
    this.#hold?.release();
  }

  #place(): object {
    return { workloadId: this.#fence.workloadId, fencingToken: this.#fence.fencingToken };
  }

  #call(verb: "work.context" | "work.checkpoint" | "work.heartbeat", args: object): Promise<unknown> {
    return this.#options.connection.call(
      verb,
      { ...this.#fence, ...args },
      { deadlineMs: CALL_DEADLINE_MS, signal: this.#options.closing },
    );
  }
}
