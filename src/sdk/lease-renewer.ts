import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import type { Fence } from "../core/workload/fence.ts";
import { trustedUntilOf, TrustTable } from "./lease-trust.ts";
import type { FromRenewal, HeldLease, RenewalStart, ToRenewal } from "./renewal-messages.ts";
import type { WorkConnectionOptions } from "./work-connection.ts";

/** What the holder of a lease is told about it. */
export interface LeaseListener {
  /** The authority prolonged it. */
  onRenewed(): void;
  onCancel(): void;
  /** The authority says that it is over, with the code of its refusal. */
  onLost(code: string): void;
}

/** A lease that is kept alive until it is released. */
export interface LeaseHold {
  /** Until when it is trusted, ms of the shared clock. Right even if this thread has been too busy to hear of renewals. */
  trustedUntil(): number;
  renewNow(): void;
  release(): void;
}

export interface LeaseRenewerOptions {
  readonly connection: WorkConnectionOptions;
  readonly leaseMs: number;
  /** How many leases may be held at once. */
  readonly places: number;
  readonly log: Log;
}

interface Held {
  readonly lease: HeldLease;
  readonly listener: LeaseListener;
}

const RESTART_MS = 500;
const STOP_MS = 2_000;

const THREAD_NAME = "mandate lease renewal";

/** Starts the thread's program. From source a thread has to be given the loader first: it does not inherit it. */
function startThread(workerData: RenewalStart): Worker {
  if (!import.meta.url.endsWith(".ts"))
    return new Worker(new URL("./renewal-thread.js", import.meta.url), { name: THREAD_NAME, workerData });
  const loaderPackage = pathToFileURL(createRequire(import.meta.url).resolve("tsx/package.json"));
  const loader = new URL("./dist/esm/api/index.mjs", loaderPackage).href;
  const program = new URL("./renewal-thread.ts", import.meta.url).href;
  const bootstrap = `import(${JSON.stringify(loader)}).then(({ register }) => { register(); return import(${JSON.stringify(program)}); })`;
  return new Worker(bootstrap, { eval: true, name: THREAD_NAME, workerData });
}

/** Keeps leases alive from a thread of its own; if that thread dies, another takes over with the leases still held. */
export class LeaseRenewer {
  readonly #options: LeaseRenewerOptions;
  readonly #trust: TrustTable;
  readonly #held = new Map<number, Held>();
  readonly #free: number[];
  /** Fulfilled once the thread can renew. */
  readonly ready: Promise<void>;
  #onReady: () => void = () => undefined;
  /** Of {@link useToken}: another thread is told it, too. */
  #token: string | undefined;
  #thread: Worker | undefined;
  #restart: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: LeaseRenewerOptions) {
    this.#options = options;
    this.ready = new Promise((resolve) => {
      this.#onReady = resolve;
    });
    this.#trust = TrustTable.create(options.places);
    this.#free = Array.from({ length: options.places }, (_, index) => options.places - 1 - index);
    this.#start();
  }

  /**
   * Keeps a lease alive that was granted in answer to a request sent at `sentAt`. Nothing when all places are taken.
   */
  hold(fence: Fence, sentAt: number, listener: LeaseListener): LeaseHold | undefined {
    const place = this.#free.pop();
    if (place === undefined) return undefined;
    const { workloadId, claimId, workerId, fencingToken } = fence;
    const lease: HeldLease = { workloadId, claimId, workerId, fencingToken, place, sentAt };
    this.#trust.write(place, trustedUntilOf(sentAt, this.#options.leaseMs));
    this.#held.set(place, { lease, listener });
    this.#post({ kind: "hold", lease });
    return {
      trustedUntil: () => (this.#held.get(place)?.lease === lease ? this.#trust.read(place) : 0),
      renewNow: () => this.#post({ kind: "renew-now", place, claimId }),
      release: () => this.#release(lease),
    };
  }

  /** The grant that goes with every renewal from now on. */
  useToken(token: string): void {
    this.#token = token;
    this.#post({ kind: "token", token });
  }

  /** Renews nothing any more and ends the thread. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
    thread.postMessage({ kind: "stop" } satisfies ToRenewal);
    const timer = setTimeout(() => void thread.terminate(), STOP_MS);
    await ended;
    clearTimeout(timer);
  }

  #release(lease: HeldLease): void {
    if (this.#held.get(lease.place)?.lease !== lease) return;
    this.#held.delete(lease.place);
    this.#free.push(lease.place);
    this.#post({ kind: "release", place: lease.place, claimId: lease.claimId });
  }

  #start(): void {
    const thread = startThread({
      connection: this.#options.connection,
      leaseMs: this.#options.leaseMs,
      trust: this.#trust.buffer,
    });
    this.#thread = thread;
    thread.on("message", (message: FromRenewal) => this.#hear(message));
    thread.on("error", (error) => this.#options.log.error({ error: error.message }, "lease renewal failed"));
    thread.once("exit", () => {
      if (this.#thread === thread) this.#thread = undefined;
      if (this.#stopping) return;
      this.#options.log.warn({ held: this.#held.size }, "the thread that renews leases ended; starting another");
      this.#restart = setTimeout(() => this.#start(), RESTART_MS);
    });
    if (this.#token !== undefined) this.#post({ kind: "token", token: this.#token });
    for (const { lease } of this.#held.values()) this.#post({ kind: "hold", lease });
  }

  #hear(message: FromRenewal): void {
    if (message.kind === "ready") {
      this.#onReady();
      return;
    }
    const held = this.#held.get(message.place);
    if (held === undefined || held.lease.claimId !== message.claimId) return;
    if (message.kind === "renewed") held.listener.onRenewed();
    else if (message.kind === "cancel") held.listener.onCancel();
    else held.listener.onLost(message.code);
  }

  #post(message: ToRenewal): void {
    this.#thread?.postMessage(message);
  }
}
