import type { Random } from "../../base/random.ts";
import { Resolution } from "../resolution.ts";
import type { AttemptReply, ResolutionStep } from "../resolution.ts";
import { StoreUnavailable } from "../store.ts";
import type { Commit, CommitOutcome, Entry, FollowOptions, Follower, ReadOptions, Shard, Store } from "../store.ts";
import type { EventQueue } from "./event-queue.ts";
import { chance } from "./faults.ts";
import type { Faults } from "./faults.ts";
import { SimulatedFollower } from "./follower.ts";
import { Link } from "./link.ts";
import type { Delivery, ServerState } from "./link.ts";
import type { ShardLog } from "./shard-log.ts";

export interface SimulatedStoreContext {
  readonly shards: readonly ShardLog[];
  readonly queue: EventQueue;
  readonly server: ServerState;
  readonly random: Random;
  readonly faults: Faults;
  readonly attemptTimeoutMs: number;
  readonly commitDeadlineMs: number;
  readonly readDeadlineMs: number;
  onClose(): void;
}

/** One client of a simulated log: the port, and beside it what a test can do to this client alone. */
export class SimulatedStore implements Store {
  readonly shards: readonly Shard[];
  readonly #context: SimulatedStoreContext;
  readonly #link: Link;
  readonly #followers = new Set<SimulatedFollower>();
  #faults: Faults;
  #held = false;
  #closed = false;

  /** Made by {@link SimulatedLog.client}. */
  constructor(context: SimulatedStoreContext) {
    this.#context = context;
    this.#faults = context.faults;
    const { queue, server, random } = context;
    this.#link = new Link({ queue, server, random, faults: () => this.#faults });
    this.shards = context.shards.map(
      (log, index) =>
        new SimulatedShard({
          ...context,
          log,
          index,
          link: this.#link,
          current: () => this.#faults,
          follow: (options) => this.#follow(log, options),
        }),
    );
  }

  reachable(): boolean {
    return this.#connected();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#link.cut = true;
    await Promise.all([...this.#followers].map((follower) => follower.stop()));
    this.#followers.clear();
    this.#context.onClose();
  }

  /** Changes what goes wrong from now on; what is not named stays as it is. */
  setFaults(faults: Partial<Faults>): void {
    this.#faults = { ...this.#faults, ...faults };
  }

  /** Nothing this client sends arrives, and nothing arrives at it. */
  cutOff(): void {
    this.#link.cut = true;
    this.linkBroken("the link is cut");
  }

  reconnect(): void {
    this.#link.cut = this.#closed;
    this.linkRestored();
  }

  /** Followers keep back whatever arrives, and nobody is told: the view of this client stays where it is. */
  hold(): void {
    this.#held = true;
    for (const follower of this.#followers) follower.hold();
  }

  /** Hands over, before it returns, what was kept back since {@link hold}. */
  release(): void {
    this.#held = false;
    for (const follower of this.#followers) follower.release();
  }

  /** Followers begin from scratch. */
  resetFollowers(reason: string): void {
    for (const follower of this.#followers) follower.reset(reason);
  }

  /** Told by the log: nothing is heard of the servers. */
  linkBroken(reason: string): void {
    for (const follower of this.#followers) follower.breakOff(reason);
  }

  /** Told by the log: the servers are back. */
  linkRestored(): void {
    if (this.#connected()) for (const follower of this.#followers) follower.reconnected();
  }

  /** Told by the log: the streams are gone for good. */
  streamsRemoved(): void {
    for (const follower of this.#followers) follower.missing("the stream was deleted");
  }

  #connected(): boolean {
    return !this.#closed && !this.#link.cut && !this.#context.server.down();
  }

  #follow(log: ShardLog, options: FollowOptions): Follower {
    const { queue, random } = this.#context;
    const faults = (): Faults => this.#faults;
    const connected = (): boolean => this.#connected();
    const follower = new SimulatedFollower({ log, queue, random, faults, connected }, options);
    if (this.#held) follower.hold();
    this.#followers.add(follower);
    const stop = async (): Promise<void> => {
      this.#followers.delete(follower);
      await follower.stop();
    };
    return { cursor: () => follower.cursor(), resets: () => follower.resets(), stop };
  }
}

interface ShardContext extends SimulatedStoreContext {
  readonly log: ShardLog;
  readonly index: number;
  readonly link: Link;
  readonly current: () => Faults;
  readonly follow: (options: FollowOptions) => Follower;
}

class SimulatedShard implements Shard {
  readonly index: number;
  readonly #context: ShardContext;

  constructor(context: ShardContext) {
    this.index = context.index;
    this.#context = context;
  }

  follow(options: FollowOptions): Follower {
    return this.#context.follow(options);
  }

  async read(keys: readonly string[], options: ReadOptions = {}): Promise<ReadonlyMap<string, Entry>> {
    const { queue, attemptTimeoutMs, readDeadlineMs } = this.#context;
    const end = queue.now() + readDeadlineMs;
    for (let failures = 0; ; failures += 1) {
      const leftMs = end - queue.now();
      if (leftMs <= 0) throw new StoreUnavailable("the store did not answer in time");
      const delivery = await this.#readOnce(keys, options.fresh ?? false, Math.min(leftMs, attemptTimeoutMs));
      if (delivery.kind === "reply") return delivery.reply;
      if (delivery.kind === "unreached") throw new StoreUnavailable("no server answers");
      await queue.sleep(this.#backOffMs(failures));
    }
  }

  async commit(commit: Commit, options: { readonly deadlineMs?: number } = {}): Promise<CommitOutcome> {
    const { queue, attemptTimeoutMs, commitDeadlineMs } = this.#context;
    const end = queue.now() + (options.deadlineMs ?? commitDeadlineMs);
    const resolution = new Resolution(commit);
    let step: ResolutionStep = { next: "attempt", failures: 0 };
    for (;;) {
      if (step.next === "answer") return step.outcome;
      if (step.failures > 0)
        await queue.sleep(Math.min(this.#backOffMs(step.failures), Math.max(0, end - queue.now())));
      const leftMs = end - queue.now();
      if (leftMs <= 0) return resolution.onDeadline();
      const timeoutMs = Math.min(leftMs, attemptTimeoutMs);
      if (step.next === "attempt") {
        step = resolution.onReply(await this.#attempt(commit, timeoutMs));
      } else {
        const { fresh } = step;
        const delivery: Delivery<ReadonlyMap<string, Entry>> = await this.#readOnce(
          resolution.keys(),
          fresh,
          timeoutMs,
        );
        if (delivery.kind === "reply") step = resolution.onSnapshot(delivery.reply, fresh);
        else step = resolution.onReadFailed(delivery.kind === "lost" ? "no answer" : "no server answers");
      }
    }
  }

  async #attempt(commit: Commit, timeoutMs: number): Promise<AttemptReply> {
    const delivery = await this.#context.link.request(() => this.#serve(commit), timeoutMs);
    switch (delivery.kind) {
      case "reply":
        return delivery.reply;
      case "unreached":
        return { kind: "unreached", cause: "no server answers" };
      case "lost":
        return { kind: "lost", cause: "no answer" };
    }
  }

  /** What the servers do with a commit, and what they say: a server that was just deposed may speak up first. */
  #serve(commit: Commit): AttemptReply {
    const { log, random, current } = this.#context;
    if (!chance(random, current().falseRefusal)) return log.apply(commit);
    if (chance(random, 0.75)) {
      const reply = log.apply(commit);
      if (reply.kind !== "stored") return reply;
    }
    const expected = Math.max(0, ...commit.puts.map((put) => (put.base === "absent" ? 0 : put.base.revision)));
    return chance(random, 0.5)
      ? { kind: "refused" }
      : { kind: "refused", revision: Math.floor(random() * (expected + 1)) };
  }

  #readOnce(keys: readonly string[], fresh: boolean, timeoutMs: number): Promise<Delivery<ReadonlyMap<string, Entry>>> {
    const { log, link, random, current } = this.#context;
    const serve = (): ReadonlyMap<string, Entry> => {
      const stale = !fresh && chance(random, current().staleRead);
      return log.read(keys, stale ? 1 + Math.floor(random() * 20) : 0);
    };
    return link.request(serve, timeoutMs);
  }

  #backOffMs(failures: number): number {
    return Math.min(500, 10 * 2 ** Math.min(failures, 10)) * (0.5 + this.#context.random());
  }
}
