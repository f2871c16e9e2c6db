import { randomUUID } from "node:crypto";
import { MandateError } from "../core/errors.ts";
import { pause } from "./backoff.ts";
import { sharedMonotonicMs } from "./shared-clock.ts";
import type { WorkConnection } from "./work-connection.ts";
import type { WorkerSettings } from "./worker-options.ts";

/** How long one call about the worker is repeated, ms. */
const CALL_DEADLINE_MS = 20_000;
/** How long a worker that stops waits for its word to be taken, ms. */
const DRAIN_DEADLINE_MS = 2_000;
/** Between two tries to register, ms. */
const AGAIN_MS = 1_000;

/** What of an answer about a worker is of use here. */
interface WorkerSeen {
  readonly lifecycle: string;
  readonly capabilityVersion: number;
  /** The authority's time, epoch ms. */
  readonly lastSeen: number;
}

interface HeartbeatAnswer {
  readonly worker: WorkerSeen;
  readonly stopClaims: readonly string[];
}

interface ReconcileAnswer {
  readonly worker: WorkerSeen;
  readonly fencedClaims: readonly string[];
}

/** What a worker does, as far as its place in the registry is about it. */
export interface WorkOfWorker {
  /** Ids of the claims that it holds. */
  claimIds(): readonly string[];
  /** Ends what it does for claims that are no longer its own. */
  stop(claimIds: readonly string[]): void;
  /** The grant that the renewals of its leases bear from now on. */
  useToken(token: string): void;
}

/** Refusals that end a worker for good: another process has its name, or it may not be one. */
const isFinal = ({ code }: MandateError): boolean =>
  code === "WORKER_SUPERSEDED" ||
  code === "WORKER_INVALID" ||
  code === "WORKER_UNAUTHORIZED" ||
  code === "WORKLOAD_UNAUTHORIZED" ||
  code.startsWith("GRANT_");

/**
 * A worker's place in the registry (contract 2.2): it registers under an incarnation of its own, is heard regularly,
 * reconciles when it was given up, and says when it goes. The time that it tells is the authority's as it heard it first,
 * carried on by a clock that never steps: a wrong wall clock costs it nothing.
 */
export class Registration {
  /** Names this process among those of the worker's name. */
  readonly incarnation = randomUUID();
  readonly #settings: WorkerSettings;
  readonly #connection: WorkConnection;
  readonly #work: WorkOfWorker;
  readonly #ending = new AbortController();
  readonly #lost = new AbortController();
  #seen: WorkerSeen = { lifecycle: "OFFLINE", capabilityVersion: 0, lastSeen: 0 };
  #seenAt = 0;
  /** The grant that it is to have, and the one that it registered under. */
  #wanted: string | undefined;
  #standsUnder: string | undefined;
  #isChanging = false;
  /** Registrations, one after the other: the last one is what stands. */
  #registering: Promise<unknown> = Promise.resolve();
  /** An operator drained it: it is given nothing until he recovers it. */
  #drained = false;
  #beating: Promise<void> | undefined;

  constructor(settings: WorkerSettings, connection: WorkConnection, work: WorkOfWorker) {
    this.#settings = settings;
    this.#connection = connection;
    this.#work = work;
  }

  /** Aborted, with the refusal as its reason, when the worker has lost its place for good. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Registers and is heard, however long it takes; from then on by itself.
   *
   * @throws MandateError the refusal when this process can't have the place. An abort ends the attempt.
   */
  async begin(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#register(signal);
        await this.beat();
        this.#beating = this.#keepBeating();
        if (this.#wanted !== undefined) this.useToken(this.#wanted);
        return;
      } catch (thrown) {
        if (signal.aborted) return;
        if (!(thrown instanceof MandateError)) throw thrown;
        if (isFinal(thrown)) throw thrown;
        this.#settings.log.warn({ code: thrown.code }, "the worker can't be registered yet; trying again");
        await pause(AGAIN_MS, signal);
      }
    }
  }

  /** It was refused work: it is heard now, and waits for the next time if an operator wants it to do nothing. */
  async mend(signal: AbortSignal): Promise<void> {
    await this.beat();
    if (this.#drained) await pause(this.#settings.heartbeatIntervalMs, signal);
  }

  /** Is heard now; whatever keeps it from that is mended: it registers, or reconciles, but not against an operator who drained it. */
  async beat(): Promise<void> {
    const { log } = this.#settings;
    const runningClaims = this.#work.claimIds();
    const told = { ...this.#told(), health: "HEALTHY", active: runningClaims.length };
    try {
      const answer = (await this.#call(
        "worker.heartbeat",
        { ...told, runningClaims },
        this.#ending.signal,
      )) as HeartbeatAnswer;
      this.#note(answer.worker);
      this.#work.stop(answer.stopClaims);
      this.#drained = this.#seen.lifecycle === "DRAINING" || this.#seen.lifecycle === "OFFLINE";
    } catch (thrown) {
      if (!(thrown instanceof MandateError)) throw thrown;
      // A worker that was given up for its silence is UNHEALTHY; one that was drained is as well as it said.
      if (thrown.code === "WORKER_RECOVERY_REQUIRED" && thrown.details?.["health"] !== "UNHEALTHY") {
        if (!this.#drained) log.info({}, "the worker was drained; it waits until it is recovered");
        this.#drained = true;
        return;
      }
      if (thrown.code === "WORKER_NOT_FOUND" || thrown.code === "WORKER_HEARTBEAT_REJECTED")
        await this.#register(this.#ending.signal);
      else if (thrown.code === "WORKER_RECOVERY_REQUIRED") await this.#reconcile();
      else throw thrown;
      log.info(
        { code: thrown.code, lifecycle: this.#seen.lifecycle },
        "the worker has its place in the registry again",
      );
    }
  }

  /**
   * Goes over to another grant: the worker registers under it first, and only once the authority has taken it do all other
   * calls bear it. A node may come to know of a new key later than the worker: the last grant is kept until then.
   */
  useToken(token: string): void {
    this.#wanted = token;
    // Nothing rests on the last one yet.
    if (this.#seenAt === 0) this.#adopt(token);
    else if (!this.#isChanging) void this.#change();
  }

  #adopt(token: string): void {
    this.#connection.useToken(token);
    this.#work.useToken(token);
  }

  async #change(): Promise<void> {
    const { log } = this.#settings;
    const { signal } = this.#ending;
    this.#isChanging = true;
    for (;;) {
      const token = this.#wanted;
      if (signal.aborted || this.lost.aborted || token === undefined || token === this.#standsUnder) break;
      try {
        await this.#register(signal, token);
        this.#adopt(token);
        log.info({}, "the worker stands under another grant");
      } catch (thrown) {
        if (signal.aborted) break;
        const code = thrown instanceof MandateError ? thrown.code : String(thrown);
        log.warn({ code }, "the new grant is not taken yet, the last one is kept; trying again");
        await pause(AGAIN_MS, signal);
      }
    }
    this.#isChanging = false;
  }

  /** Says that it goes: it is given nothing more. Nothing is repeated for long. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#beating;
    if (this.#seenAt === 0 || this.lost.aborted) return;
    const how = { deadlineMs: DRAIN_DEADLINE_MS };
    await this.#connection.call("worker.drain", this.#self(), how).catch(() => undefined);
  }

  async #keepBeating(): Promise<void> {
    const { signal } = this.#ending;
    const { heartbeatIntervalMs, log } = this.#settings;
    for (;;) {
      await pause(heartbeatIntervalMs, signal);
      if (signal.aborted) return;
      try {
        await this.beat();
      } catch (thrown) {
        if (signal.aborted) return;
        if (thrown instanceof MandateError && isFinal(thrown)) {
          this.#lost.abort(thrown);
          return;
        }
        log.warn({ cause: String(thrown) }, "the worker could not be heard; trying again");
      }
    }
  }

  #register(signal: AbortSignal, token?: string): Promise<void> {
    const registered = this.#registering.then(() => this.#registerNow(signal, token));
    this.#registering = registered.catch(() => undefined);
    return registered;
  }

  async #registerNow(signal: AbortSignal, token: string | undefined): Promise<void> {
    const { name, runtime, version, capabilities, workloadKinds, labels, concurrency } = this.#settings;
    const { heartbeatIntervalMs, resourceProfile } = this.#settings;
    const request = {
      name,
      runtime,
      version,
      declaredCapabilities: capabilities,
      workloadKinds,
      labels,
      resourceProfile,
      concurrency,
      heartbeatIntervalMs,
      // As many beats may be lost as with the usual interval.
      heartbeatTimeoutMs: heartbeatIntervalMs * 3,
      incarnation: this.incarnation,
    };
    // Should another come meanwhile, this one counts: then it is registered once more.
    const standsUnder = token ?? this.#connection.token;
    const how = { deadlineMs: CALL_DEADLINE_MS, signal, token };
    const answer = await this.#connection.call("worker.register", request, how);
    this.#standsUnder = standsUnder;
    this.#note((answer as { readonly worker: WorkerSeen }).worker);
  }

  async #reconcile(): Promise<void> {
    const knownClaims = this.#work.claimIds();
    const told = { ...this.#told(), knownClaims, runningAttempts: [] };
    const answer = (await this.#call("worker.reconcile", told, this.#ending.signal)) as ReconcileAnswer;
    this.#note(answer.worker);
    this.#work.stop(answer.fencedClaims);
  }

  #self(): { readonly workerId: string; readonly incarnation: string } {
    return { workerId: this.#settings.workerId, incarnation: this.incarnation };
  }

  #told(): object {
    const { version } = this.#settings;
    const { capabilityVersion, lastSeen } = this.#seen;
    const timestamp = Math.round(lastSeen + sharedMonotonicMs() - this.#seenAt);
    return { ...this.#self(), version, capabilityVersion, timestamp };
  }

  #call(verb: Parameters<WorkConnection["call"]>[0], args: object, signal: AbortSignal): Promise<unknown> {
    return this.#connection.call(verb, args, { deadlineMs: CALL_DEADLINE_MS, signal });
  }

  #note(seen: WorkerSeen): void {
    this.#seen = seen;
    this.#seenAt = sharedMonotonicMs();
  }
}
