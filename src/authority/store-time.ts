import type { Clock } from "../base/clock.ts";

/** One sighting of the store's clock: it showed `storeAt` at some moment between the two monotonic readings. */
export interface TimeSample {
  /** Epoch ms by the store's clock. */
  readonly storeAt: number;
  /** Monotonic ms when the write was sent. */
  readonly sentAt: number;
  /** Monotonic ms when the write was known to be stored. */
  readonly seenAt: number;
}

/** An estimate that is older than this is not to be served on, ms. */
export const ESTIMATE_AGE_MAX_MS = 10_000;

/** A sighting that shows more than later ones do is believed for this long, ms: so far the drift of a clock means nothing. */
const BELIEVED_MS = 10_000;

/**
 * The store's clock, as a node estimates it from the timestamps the log puts on the node's own heartbeats (contract
 * 5.5). It never runs ahead of the store by more than drift, is late by the shortest of the last round trips at most, and
 * only moves forward.
 * A step of the machine's wall clock moves nothing, since between samples a monotonic clock counts.
 *
 * Where the two clocks differ by more than they may, one of them is wrong, and the node does not serve. The time stands
 * still then: a server whose clock is an hour ahead while it leads would otherwise have moved it for good.
 */
export class StoreTime implements Clock {
  readonly #monotonic: () => number;
  readonly #wall: Clock;
  readonly #skewMaxMs: number;
  #sample: TimeSample | undefined;
  /** When the newest sighting was sent for, monotonic ms. */
  #sentAt = 0;
  #last = 0;

  constructor(options: { readonly monotonic: () => number; readonly wall: Clock; readonly skewMaxMs: number }) {
    this.#monotonic = options.monotonic;
    this.#wall = options.wall;
    this.#skewMaxMs = options.skewMaxMs;
  }

  /** Takes a sighting in. */
  observe(sample: TimeSample): void {
    this.#sentAt = sample.sentAt;
    const known = this.#sample;
    const isBelieved =
      known !== undefined &&
      sample.seenAt - known.seenAt < BELIEVED_MS &&
      Math.abs(this.offsetMs() ?? 0) <= this.#skewMaxMs;
    // Each sighting says how late it is at least: the one that shows the latest time is the best of them.
    if (!isBelieved || sample.storeAt - sample.seenAt >= known.storeAt - known.seenAt) this.#sample = sample;
  }

  /** The store's time. Before the first sighting the machine's own, which nothing is decided on: the node is not ready. */
  now(): number {
    if (this.#sample === undefined) return this.#wall.now();
    const estimate = Math.floor(this.#sample.storeAt + (this.#monotonic() - this.#sample.seenAt));
    if (Math.abs(this.offsetMs() ?? 0) > this.#skewMaxMs) return this.#last === 0 ? estimate : this.#last;
    this.#last = Math.max(this.#last, estimate);
    return this.#last;
  }

  /** How old the last sighting is, ms; absent before the first. */
  ageMs(): number | undefined {
    return this.#sample === undefined ? undefined : this.#monotonic() - this.#sentAt;
  }

  /** The machine's clock minus the store's, ms; absent before the first sighting. */
  offsetMs(): number | undefined {
    if (this.#sample === undefined) return undefined;
    return Math.round(this.#wall.now() - (this.#sample.storeAt + (this.#monotonic() - this.#sample.seenAt)));
  }
}
