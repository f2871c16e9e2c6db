import { randomUUID } from "node:crypto";
import { MandateError, type ErrorCode } from "../core/errors.ts";
import type { Claim } from "../core/workload/record.ts";
import { CLAIMS_MAX } from "../wire/limits.ts";
import { aborted, backoffDelayMs, pause } from "./backoff.ts";
import { Execution } from "./execution.ts";
import { checkToken } from "./grant-token.ts";
import { LeaseRenewer } from "./lease-renewer.ts";
import { Registration } from "./registration.ts";
import { Reporter } from "./report.ts";
import { sharedMonotonicMs } from "./shared-clock.ts";
import { WorkConnection, type WorkConnectionOptions } from "./work-connection.ts";
import { checkWorkerOptions, type WorkerOptions, type WorkerSettings } from "./worker-options.ts";

export interface RunningWorker {
  readonly workerId: string;
  /** Fulfilled when the worker has stopped; rejected when the authority refuses its requests for work for good. */
  readonly ended: Promise<void>;
  /** How many handlers run. */
  readonly active: number;
  /**
   * Another grant, in time before the last one expires: the worker registers under it, however long it takes until the
   * authority knows it, and from then on it goes with every call, renewals of leases and repeats included.
   *
   * @throws MandateError `WORKLOAD_INVALID` when it can't be a grant.
   */
  useToken(token: string): void;
  /** Claims nothing more from this very call on, lets handlers finish, gives the rest back; answers when all is done. */
  stop(): Promise<void>;
}

const CLAIM_DEADLINE_MS = 30_000;
/** How long handlers have to settle once their signal aborted at shutdown, and last reports to be answered, ms. */
const SETTLE_MS = 2_000;
const LAST_REPORTS_MS = 5_000;

/** A place that a handler keeps though its claim is over is given up after this long, ms. */
const ABANDON_MS = 30_000;

/** Refusals of a request for work that no repetition cures. */
const finalCodes: readonly ErrorCode[] = ["WORKLOAD_INVALID", "WORKLOAD_UNAUTHORIZED", "WORKER_SUPERSEDED"];

class WorkerLoop implements RunningWorker {
  readonly workerId: string;
  readonly ended: Promise<void>;
  readonly #settings: WorkerSettings;
  readonly #connection: WorkConnection;
  readonly #renewer: LeaseRenewer;
  readonly #registration: Registration;
  readonly #running = new Set<Execution>();
  /** Reports about work that arrived after the worker began to drain; no handler has seen it. */
  readonly #givenBack = new Set<Promise<unknown>>();
  readonly #draining = new AbortController();
  readonly #closing = new AbortController();
  #freed: (() => void) | undefined;
  #stopped: Promise<void> | undefined;

  constructor(settings: WorkerSettings, connection: WorkConnection, renewer: LeaseRenewer) {
    this.workerId = settings.workerId;
    this.#settings = settings;
    this.#connection = connection;
    this.#renewer = renewer;
    this.#registration = new Registration(settings, connection, {
      claimIds: () => [...this.#running].map(({ claim }) => claim.claimId),
      stop: (claimIds) => {
        for (const execution of this.#running)
          if (claimIds.includes(execution.claim.claimId)) execution.lose("WORKLOAD_CLAIM_INVALID");
      },
      useToken: (token) => renewer.useToken(token),
    });
    this.ended = this.#run();
  }

  get active(): number {
    return this.#running.size;
  }

  useToken(token: string): void {
    checkToken(token);
    this.#registration.useToken(token);
  }

  stop(): Promise<void> {
    this.#draining.abort();
    this.#freed?.();
    this.#stopped ??= this.ended.catch(() => undefined);
    return this.#stopped;
  }

  async #run(): Promise<void> {
    try {
      await this.#claimUntilDrained();
      // Another process has its name, say: whoever waits for the worker's end is told.
      if (this.#registration.lost.aborted) throw this.#registration.lost.reason;
    } finally {
      await this.#close();
    }
  }

  async #claimUntilDrained(): Promise<void> {
    const { signal } = this.#draining;
    // Work whose lease nobody can renew yet is better left to others.
    await Promise.race([this.#renewer.ready, aborted(signal)]);
    await this.#registration.begin(signal);
    void aborted(this.#registration.lost).then(() => this.stop());
    for (let failures = 0; !signal.aborted;) {
      const free = Math.min(CLAIMS_MAX, this.#settings.concurrency - this.#running.size);
      if (free <= 0) {
        await new Promise<void>((resolve) => {
          this.#freed = resolve;
        });
        continue;
      }
      failures = (await this.#claim(free)) ? 0 : failures + 1;
      if (failures > 0) await pause(backoffDelayMs(failures), signal);
    }
  }

  /**
   * Asks for work once, with one requestId for all tries, so that claims whose reply was lost arrive after all. A worker
   * that drains neither asks nor repeats, and gives back what still arrives. Answers whether the authority answered.
   */
  async #claim(max: number): Promise<boolean> {
    const { applicationId, capabilities, leaseMs, log, tenantId, waitMs } = this.#settings;
    const { signal } = this.#draining;
    const request = {
      tenantId,
      applicationId,
      workerId: this.workerId,
      capabilities,
      max,
      waitMs,
      leaseMs,
      start: true,
      incarnation: this.#registration.incarnation,
      requestId: randomUUID(),
    };
    // Of the first try: it may have been the one that was granted the claims.
    const sentAt = sharedMonotonicMs();
    for (;;) {
      try {
        for (const claim of await this.#poll(request)) this.#take(claim, sentAt);
        return true;
      } catch (thrown) {
        if (signal.aborted) return false;
        if (!(thrown instanceof MandateError)) throw thrown;
        log.warn({ code: thrown.code }, "no work could be asked for");
        if (finalCodes.includes(thrown.code)) throw thrown;
        // It was given up, or forgotten: that is mended by being heard.
        if (thrown.code === "MESH_PLACEMENT_DENIED" || thrown.code === "WORKER_NOT_FOUND")
          await this.#registration.mend(signal).catch(() => undefined);
        if (thrown.code !== "WORKLOAD_OUTCOME_UNKNOWN") return false;
      }
    }
  }

  /**
   * One request for work. Once the worker drains, whoever holds the request is told to answer it now, and the answer is
   * waited for: what has just been handed out is never missed.
   */
  async #poll(request: { readonly requestId: string; readonly workerId: string }): Promise<readonly Claim[]> {
    const { signal } = this.#draining;
    const { workerId, requestId } = request;
    const end = (): void => this.#connection.endPoll({ workerId, requestId });
    signal.addEventListener("abort", end, { once: true });
    try {
      const how = { deadlineMs: CLAIM_DEADLINE_MS, waitMs: this.#settings.waitMs, signal };
      return (await this.#connection.call("work.next", request, how)) as readonly Claim[];
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  #take(claim: Claim, sentAt: number): void {
    const { handler, leaseMs, log } = this.#settings;
    if (this.#draining.signal.aborted) {
      void this.#giveBack(claim);
      return;
    }
    const execution = new Execution({
      claim,
      sentAt,
      leaseMs,
      connection: this.#connection,
      renewer: this.#renewer,
      handler,
      log,
      closing: this.#closing.signal,
    });
    this.#running.add(execution);
    void this.#follow(execution);
  }

  async #follow(execution: Execution): Promise<void> {
    const { log } = this.#settings;
    const { workloadId, fencingToken } = execution.claim;
    const end = await execution.ended;
    log.debug({ workloadId, fencingToken, end }, "claim ended");
    const waiting = new AbortController();
    const timer = pause(ABANDON_MS, waiting.signal).then(() => {
      if (!waiting.signal.aborted) log.warn({ workloadId }, "a handler goes on though its claim is over");
    });
    await Promise.race([execution.settled, timer]);
    waiting.abort();
    this.#running.delete(execution);
    this.#freed?.();
  }

  async #giveBack(claim: Claim): Promise<void> {
    const { workloadId, claimId, workerId, fencingToken } = claim;
    const reporter = new Reporter(
      this.#connection,
      { workloadId, claimId, workerId, fencingToken },
      { log: this.#settings.log, signal: this.#closing.signal },
    );
    const report = reporter.fail({
      kind: "worker_failure",
      error: "the worker was shutting down when the work arrived",
      effect: "none",
    });
    this.#givenBack.add(report);
    await report.finally(() => this.#givenBack.delete(report));
  }

  async #close(): Promise<void> {
    const { graceMs, log } = this.#settings;
    log.info({ active: this.#running.size }, "worker is stopping");
    // While no authority answers this takes long; handlers end in their time all the same.
    const gone = this.#registration.end();
    await this.#allEnded(graceMs);
    for (const execution of this.#running) execution.shutDown();
    await this.#allEnded(SETTLE_MS);
    for (const execution of this.#running) execution.abandon();
    await gone;
    await this.#allEnded(LAST_REPORTS_MS);
    this.#closing.abort();
    await this.#renewer.stop();
    await this.#connection.close();
    log.info({ active: this.#running.size }, "worker stopped");
  }

  async #allEnded(timeoutMs: number): Promise<void> {
    const waiting = new AbortController();
    const all = Promise.all([...this.#givenBack, ...[...this.#running].map(({ ended }) => ended)]);
    await Promise.race([all, pause(timeoutMs, waiting.signal)]);
    waiting.abort();
  }
}

/** Stops the worker at the first signal; the next one has its usual effect. */
function stopOnSignals(worker: RunningWorker): void {
  const signals = ["SIGTERM", "SIGINT"] as const;
  const forget = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = (): void => {
    forget();
    void worker.stop();
  };
  for (const signal of signals) process.on(signal, onSignal);
  worker.ended.then(forget, forget);
}

/**
 * Runs a worker: claims work over NATS, hands it to the handler, keeps its lease alive from a second thread however busy
 * the handler is, and reports how it ended until that is definite (contract 6.4). Answers when it is connected.
 *
 * @throws MandateError `WORKLOAD_INVALID` for bad options, `WORKLOAD_UNAUTHORIZED` when NATS refuses the login.
 */
export async function runWorker(options: WorkerOptions): Promise<RunningWorker> {
  const settings = checkWorkerOptions(options);
  const connectionOptions: WorkConnectionOptions = {
    servers: options.servers,
    tenantId: settings.tenantId,
    applicationId: settings.applicationId,
    name: settings.name,
    encoding: options.encoding ?? "json",
    clientName: `mandate worker ${settings.name}`,
    login: options.login,
    token: options.token,
  };
  const connection = await WorkConnection.open(connectionOptions, {
    signal: options.signal,
    onState: options.onState,
  });
  const renewer = new LeaseRenewer({
    connection: { ...connectionOptions, clientName: `${connectionOptions.clientName} (leases)` },
    leaseMs: settings.leaseMs,
    places: settings.concurrency,
    log: settings.log,
  });
  const worker = new WorkerLoop(settings, connection, renewer);
  if (settings.handleSignals) stopOnSignals(worker);
  options.signal?.addEventListener("abort", () => void worker.stop(), { once: true });
  return worker;
}
