import { assert } from "../../src/base/assert.ts";
import type { Timers } from "../../src/base/clock.ts";
import { silentLog, type Log } from "../../src/base/log.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Authority } from "../../src/authority/authority.ts";
import type { Readiness } from "../../src/authority/api.ts";
import type { AuthorityOptions } from "../../src/authority/parts.ts";
import type { EventQueue } from "../../src/store/simulated/event-queue.ts";
import type { Faults } from "../../src/store/simulated/faults.ts";
import type { SimulatedLog } from "../../src/store/simulated/simulated-log.ts";
import type { SimulatedStore } from "../../src/store/simulated/simulated-store.ts";
import type { Follower, Shard, Store } from "../../src/store/store.ts";

/**
 * What happens to a process that is stopped in the middle of everything: whatever would run in it waits, in order, until
 * it goes on.
 */
export class Pause {
  #paused = false;
  #waiting: (() => void)[] = [];

  get isPaused(): boolean {
    return this.#paused;
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    for (const action of this.#waiting.splice(0)) action();
  }

  /** Nothing that waits will ever run. */
  forget(): void {
    this.#waiting = [];
  }

  /** Runs now, or when the process goes on. */
  run(action: () => void): void {
    if (this.#paused) this.#waiting.push(action);
    else action();
  }

  /** A promise whose result arrives only while the process runs. */
  gate<Value>(promise: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      promise.then(
        (value) => this.run(() => resolve(value)),
        (cause: unknown) =>
          this.run(() => {
            reject(cause);
          }),
      );
    });
  }
}

const gatedShard = (shard: Shard, pause: Pause): Shard => ({
  index: shard.index,
  read: (keys, options) => pause.gate(shard.read(keys, options)),
  commit: (commit, options) => pause.gate(shard.commit(commit, options)),
  follow: (options): Follower => {
    let cursor = 0;
    const follower = shard.follow({
      families: options.families,
      onEntry: (entry) => {
        const delivered = follower.cursor();
        pause.run(() => {
          cursor = delivered;
          options.onEntry(entry);
        });
      },
      onState: (state) => {
        const delivered = follower.cursor();
        pause.run(() => {
          cursor = delivered;
          options.onState(state);
        });
      },
    });
    return {
      cursor: () => (pause.isPaused ? cursor : Math.max(cursor, follower.cursor())),
      resets: () => follower.resets(),
      stop: () => follower.stop(),
    };
  },
});

const gatedStore = (store: Store, pause: Pause): Store => ({
  shards: store.shards.map((shard) => gatedShard(shard, pause)),
  reachable: () => store.reachable(),
  close: () => store.close(),
});

const gatedTimers = (queue: EventQueue, pause: Pause): Timers => ({
  after: (delayMs, action) => {
    let live = true;
    const cancel = queue.after(delayMs, () => pause.run(() => live && action()));
    return () => {
      live = false;
      cancel();
    };
  },
});

export interface VirtualNodeOptions {
  readonly log: SimulatedLog;
  readonly nodeId: string;
  /** Given when the same node id is used again. */
  readonly nonce?: string;
  readonly seed?: number;
  readonly faults?: Partial<Faults>;
  /** The node's wall clock minus the store's, ms. */
  readonly wallOffsetMs?: number;
  /** How fast the node's monotonic clock runs; 1 when it is right. */
  readonly rate?: number;
  readonly sink?: Log;
  readonly options?: Partial<AuthorityOptions>;
}

/** One authority in virtual time, with a client of its own: a process that can be paused, killed and started again. */
export class VirtualNode {
  readonly nodeId: string;
  readonly client: SimulatedStore;
  readonly authority: Authority;
  readonly #queue: EventQueue;
  readonly #pause = new Pause();
  /** What the wall clock is off by, ms; may be changed at any time. */
  wallOffsetMs: number;
  #pausedAt = 0;
  /** How long the machine has slept, ms: its monotonic clock stood still. */
  #sleptMs = 0;
  #dead = false;

  constructor(options: VirtualNodeOptions) {
    const { log, nodeId, seed = 1, rate = 1, sink = silentLog } = options;
    const queue = log.queue;
    this.#queue = queue;
    this.nodeId = nodeId;
    this.wallOffsetMs = options.wallOffsetMs ?? 0;
    this.client = log.client(options.faults === undefined ? {} : { faults: options.faults });
    this.authority = new Authority({
      store: gatedStore(this.client, this.#pause),
      nodeId,
      nonce: options.nonce ?? nodeId,
      log: sink,
      random: seededRandom(seed),
      monotonic: () => (queue.now() - this.#sleptMs) * rate,
      wall: { now: () => Math.floor(queue.now() + this.wallOffsetMs) },
      timers: gatedTimers(queue, this.#pause),
      ...options.options,
    });
    this.authority.open();
  }

  get isDead(): boolean {
    return this.#dead;
  }

  readiness(): Readiness {
    return this.authority.readiness();
  }

  /** Runs virtual time until the node is ready. */
  async becomeReady(limitMs = 60_000): Promise<void> {
    const end = this.#queue.now() + limitMs;
    while (!this.authority.readiness().ready && this.#queue.now() < end) await this.#queue.advance(50);
    const { ready, reasons } = this.authority.readiness();
    assert(ready, `${this.nodeId} did not become ready: ${reasons.join("; ")}`);
  }

  pause(): void {
    this.#pausedAt = this.#queue.now();
    this.#pause.pause();
  }

  resume(): void {
    this.#pause.resume();
  }

  /** Goes on after a pause as a machine does that has slept: no time has passed for it. */
  wakeUp(): void {
    this.#sleptMs += this.#queue.now() - this.#pausedAt;
    this.#pause.resume();
  }

  /** Something that reaches the process: it waits as long as the process is paused, and is lost with it. */
  reach<Value>(call: (authority: Authority) => Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#pause.run(() => {
        if (!this.#dead) this.#pause.gate(call(this.authority)).then(resolve, reject);
      });
    });
  }

  /** The process ends at once: nothing of it is heard again, and what it had sent may still arrive. */
  kill(): void {
    this.#dead = true;
    this.client.cutOff();
    this.#pause.pause();
    this.#pause.forget();
    void this.authority.close();
  }
}
