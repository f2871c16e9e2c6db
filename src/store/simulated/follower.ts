import type { Random } from "../../base/random.ts";
import type { Entry, FollowOptions, FollowState, Follower } from "../store.ts";
import type { EventQueue } from "./event-queue.ts";
import { chance, drawMs } from "./faults.ts";
import type { Faults } from "./faults.ts";
import type { ShardLog } from "./shard-log.ts";

/** How long a follower takes to notice that entries went missing, and to begin again, ms. */
const MEND_MS = 1000;

/** How many entries arrive together while loading. */
const LOAD_STEP = 256;

/** What arrives together: entries in order, then perhaps news about the follower and what it has thereby caught up to. */
interface Flight {
  readonly entries: readonly Entry[];
  readonly state?: FollowState | undefined;
  readonly revision?: number;
}

export interface FollowerContext {
  readonly log: ShardLog;
  readonly queue: EventQueue;
  readonly random: Random;
  readonly faults: () => Faults;
  /** Whether the servers can be heard at this moment. */
  readonly connected: () => boolean;
}

/**
 * Delivers a shard's entries to one listener.
 *
 * It is either *following*: it has taken a snapshot of what is newer than its cursor, delivers it, says `current` when the
 * last of it has arrived, and meanwhile and from then on passes on what is committed. Or it is *broken off*: the link is
 * gone or an entry was lost on the way; nothing is delivered until it begins again behind its cursor, or from scratch.
 * Held, it is none the wiser: what arrives is kept back, and handed over at the release.
 */
export class SimulatedFollower implements Follower {
  readonly #context: FollowerContext;
  readonly #options: FollowOptions;
  readonly #unlisten: () => void;
  /** Sent and not arrived yet, with what takes the arrival back. */
  readonly #inFlight = new Map<Flight, () => void>();
  readonly #kept: (() => void)[] = [];
  #held = false;
  #following = false;
  #stopped = false;
  /** What has arrived, and what was handed over: they differ while it is held. */
  #arrived = 0;
  #delivered = 0;
  #resets = 0;
  #lastDueAt = 0;
  #overtaken = false;
  #cancelBegin: () => void = () => undefined;

  constructor(context: FollowerContext, options: FollowOptions) {
    this.#context = context;
    this.#options = options;
    this.#unlisten = context.log.listen((entries) => {
      for (const entry of entries) {
        if (this.#following && options.families.includes(entry.key.charAt(0))) this.#send({ entries: [entry] }, true);
      }
    });
    if (context.connected()) this.#beginAfter(0);
    else context.queue.after(0, () => this.#state({ kind: "interrupted", reason: "the store is out of reach" }));
  }

  cursor(): number {
    return this.#overtaken ? Math.min(this.#delivered, this.#lowestInFlight()) : this.#delivered;
  }

  resets(): number {
    return this.#resets;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#following = false;
    this.#unlisten();
    this.#cancelBegin();
    this.#kept.length = 0;
    this.#dropInFlight();
  }

  /** Keeps back whatever arrives; nobody is told. */
  hold(): void {
    this.#held = true;
  }

  /** Hands over what was kept back, in order, before it returns. */
  release(): void {
    this.#held = false;
    while (!this.#held && this.#kept.length > 0) this.#kept.shift()?.();
  }

  /** Delivery ends here; it begins again when the link is back, or when the loss is noticed. */
  breakOff(reason: string): void {
    if (this.#stopped) return;
    this.#halt();
    this.#state({ kind: "interrupted", reason });
    if (this.#context.connected()) this.#beginAfter(MEND_MS);
  }

  /** The servers can be heard again. */
  reconnected(): void {
    if (!this.#stopped && !this.#following) this.#beginAfter(0);
  }

  /** The stream is gone for good. */
  missing(reason: string): void {
    if (this.#stopped) return;
    this.#halt();
    this.#state({ kind: "missing", reason });
  }

  /** Begins from scratch. */
  reset(reason: string): void {
    if (this.#stopped) return;
    this.#halt();
    this.#arrived = 0;
    this.#hand(() => {
      this.#delivered = 0;
      this.#resets += 1;
      this.#options.onState({ kind: "reset", reason });
    });
    this.#beginAfter(0);
  }

  #halt(): void {
    this.#following = false;
    this.#cancelBegin();
    if (this.#overtaken) this.#arrived = Math.min(this.#arrived, this.#lowestInFlight());
    this.#dropInFlight();
  }

  #beginAfter(delayMs: number): void {
    this.#cancelBegin();
    this.#cancelBegin = this.#context.queue.after(delayMs, () => this.#begin());
  }

  #begin(): void {
    const { log, random, faults, connected } = this.#context;
    if (this.#stopped || !connected()) return;
    if (this.#arrived > 0 && chance(random, faults().followReset)) {
      this.reset("delivery could not be resumed");
      return;
    }
    this.#following = true;
    this.#load(log.since(this.#arrived, this.#options.families), log.revision());
  }

  /** Sends a snapshot in steps. What is committed meanwhile queues up behind it. */
  #load(backlog: readonly Entry[], revision: number): void {
    this.#state({ kind: "loading", pending: backlog.length });
    for (let start = 0; start < backlog.length; start += LOAD_STEP) {
      const pending = Math.max(0, backlog.length - start - LOAD_STEP);
      const state: FollowState | undefined = pending > 0 ? { kind: "loading", pending } : undefined;
      this.#send({ entries: backlog.slice(start, start + LOAD_STEP), state }, false);
    }
    this.#send({ entries: [], state: { kind: "current", revision }, revision }, false);
  }

  #send(flight: Flight, mayOvertake: boolean): void {
    if (!this.#following) return;
    const { queue, random, faults } = this.#context;
    const { followLost, followDelayMs, followReorder } = faults();
    if (chance(random, followLost)) {
      this.#lose();
      return;
    }
    let dueAt = queue.now() + drawMs(random, followDelayMs);
    if (mayOvertake && chance(random, followReorder) && !this.#awaits(flight)) this.#overtaken = true;
    else dueAt = Math.max(dueAt, this.#lastDueAt);
    this.#lastDueAt = Math.max(this.#lastDueAt, dueAt);
    const arrive = (): void => this.#arrive(flight);
    this.#inFlight.set(flight, queue.after(Math.max(0, dueAt - queue.now()), arrive));
  }

  #arrive(flight: Flight): void {
    this.#inFlight.delete(flight);
    if (this.#inFlight.size === 0) this.#overtaken = false;
    const revision = Math.max(flight.revision ?? 0, flight.entries.at(-1)?.revision ?? 0);
    this.#arrived = Math.max(this.#arrived, revision);
    this.#hand(() => {
      for (const entry of flight.entries) {
        if (this.#stopped) return;
        this.#delivered = Math.max(this.#delivered, entry.revision);
        this.#options.onEntry(entry);
      }
      this.#delivered = Math.max(this.#delivered, revision);
      if (flight.state !== undefined && !this.#stopped) this.#options.onState(flight.state);
    });
  }

  /** Something got lost: what was sent before still arrives, nothing after it, and after a while that is noticed. */
  #lose(): void {
    const { queue } = this.#context;
    this.#following = false;
    const noticedMs = Math.max(0, this.#lastDueAt - queue.now()) + MEND_MS;
    this.#cancelBegin();
    this.#cancelBegin = queue.after(noticedMs, () => this.breakOff("entries went missing on the way"));
  }

  /** Whether the flight must wait for another: for entries of the same key, and for the end of a snapshot. */
  #awaits(flight: Flight): boolean {
    const key = flight.entries[0]?.key;
    for (const other of this.#inFlight.keys()) {
      if (other.entries.length !== 1 || other.state !== undefined || other.entries[0]?.key === key) return true;
    }
    return false;
  }

  /** Everything up to here has arrived, whatever overtook it. */
  #lowestInFlight(): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (const flight of this.#inFlight.keys()) lowest = Math.min(lowest, (flight.entries[0]?.revision ?? lowest) - 1);
    return lowest;
  }

  #state(state: FollowState): void {
    this.#hand(() => this.#options.onState(state));
  }

  #hand(action: () => void): void {
    if (this.#stopped) return;
    if (this.#held) this.#kept.push(action);
    else action();
  }

  #dropInFlight(): void {
    for (const cancel of this.#inFlight.values()) cancel();
    this.#inFlight.clear();
    this.#lastDueAt = 0;
    this.#overtaken = false;
  }
}
