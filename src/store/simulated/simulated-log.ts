import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { seededRandom } from "../../base/random.ts";
import type { Random } from "../../base/random.ts";
import { EventQueue } from "./event-queue.ts";
import { noFaults } from "./faults.ts";
import type { Faults } from "./faults.ts";
import type { ServerState } from "./link.ts";
import { defaultLimits, ShardLog } from "./shard-log.ts";
import type { Limits, LoggedCommit } from "./shard-log.ts";
import { SimulatedStore } from "./simulated-store.ts";

export interface SimulatedLogOptions {
  /** What entries are stamped with, and times to live measured by. */
  readonly clock: Clock;
  /** At least 1, the default. */
  readonly shards?: number;
  /** Virtual time of everything that is on its way; one of its own that drives itself when there is none. */
  readonly queue?: EventQueue;
  /** Whatever is drawn derives from it. */
  readonly seed?: number;
  /** Keeps every commit for {@link SimulatedLog.history}. */
  readonly history?: boolean;
  readonly limits?: Partial<Limits>;
}

export interface ClientOptions {
  readonly faults?: Partial<Faults>;
  /** How long one attempt, or one read, waits for its answer, ms. */
  readonly attemptTimeoutMs?: number;
  /** How long a commit is tried when its caller does not say, ms. */
  readonly commitDeadlineMs?: number;
  /** How long a read is tried, ms. */
  readonly readDeadlineMs?: number;
}

/**
 * The simulated store's servers: all shards of one deployment, in this process (contract 5.1). What they acknowledged they
 * never lose; everything else can be made to happen: to the servers here, to a client's link by its {@link Faults}.
 */
export class SimulatedLog {
  readonly queue: EventQueue;
  readonly #shards: readonly ShardLog[];
  readonly #clients = new Set<SimulatedStore>();
  readonly #random: Random;
  readonly #waiting: (() => void)[] = [];
  #paused = false;
  #down = false;
  #removed = false;
  #incarnation = 0;

  constructor(options: SimulatedLogOptions) {
    const { clock, shards = 1, history = false } = options;
    assert(Number.isInteger(shards) && shards >= 1, "a log has at least one shard");
    this.queue = options.queue ?? new EventQueue({ automatic: true });
    this.#random = seededRandom(options.seed ?? 1);
    const limits = { ...defaultLimits, ...options.limits };
    this.#shards = Array.from({ length: shards }, () => new ShardLog({ clock, limits, history }));
  }

  /** Another client of the same log, with a link and faults of its own. */
  client(options: ClientOptions = {}): SimulatedStore {
    const client = new SimulatedStore({
      shards: this.#shards,
      queue: this.queue,
      server: this.#server(),
      random: seededRandom(Math.floor(this.#random() * 4_294_967_296)),
      faults: { ...noFaults, ...options.faults },
      attemptTimeoutMs: options.attemptTimeoutMs ?? 2000,
      commitDeadlineMs: options.commitDeadlineMs ?? 10_000,
      readDeadlineMs: options.readDeadlineMs ?? 5000,
      onClose: () => this.#clients.delete(client),
    });
    this.#clients.add(client);
    return client;
  }

  /** Every commit of a shard in order; empty unless the log keeps its history. */
  history(shard: number): readonly LoggedCommit[] {
    return this.#shard(shard).history();
  }

  /** The log itself, beside all links: for judging a run, and for what no client may do. */
  shard(index: number): ShardLog {
    return this.#shard(index);
  }

  /** The servers stop in the middle of everything: requests wait, unanswered, until {@link resume}. */
  pause(): void {
    this.#paused = true;
  }

  /** Whatever waited is served now, whether or not its sender still waits. */
  resume(): void {
    this.#paused = false;
    for (const serve of this.#waiting.splice(0)) serve();
  }

  /** No server takes anything, and senders are told so; followers are broken off. */
  beginOutage(): void {
    this.#down = true;
    this.#lose("no server answers");
  }

  endOutage(): void {
    this.#down = this.#removed;
    if (!this.#removed) for (const client of this.#clients) client.linkRestored();
  }

  /** The servers are stopped and started: what was on its way, either way, is lost; what was committed is there. */
  restart(): void {
    this.#paused = false;
    this.#lose("the servers were restarted");
  }

  /** The streams are deleted: nothing can be read or committed any more, and nobody creates them again. */
  remove(): void {
    this.#removed = true;
    this.#down = true;
    this.#lose("the stream was deleted");
    for (const client of this.#clients) client.streamsRemoved();
  }

  #lose(reason: string): void {
    this.#incarnation += 1;
    this.#waiting.length = 0;
    for (const client of this.#clients) client.linkBroken(reason);
  }

  #shard(index: number): ShardLog {
    const shard = this.#shards[index];
    assert(shard !== undefined, `there is no shard ${index}`);
    return shard;
  }

  #server(): ServerState {
    return {
      down: () => this.#down,
      incarnation: () => this.#incarnation,
      admit: (serve) => {
        if (this.#paused) this.#waiting.push(serve);
        else serve();
      },
    };
  }
}
