import { monotonicMs } from "../base/clock.ts";

const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;

/**
 * When to say again what has been said before: at once, a second later, then after pauses that double up to 30 s. What
 * is said about is done as often as before; only the log stays readable when a server is away over a night.
 */
export class GrowingPause {
  readonly #now: () => number;
  #pauseMs = FIRST_MS;
  #dueAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = monotonicMs) {
    this.#now = now;
  }

  /** Whether it is time; if so, the next pause begins. */
  over(): boolean {
    const now = this.#now();
    if (now < this.#dueAt) return false;
    this.#dueAt = now + this.#pauseMs;
    this.#pauseMs = Math.min(LONGEST_MS, this.#pauseMs * 2);
    return true;
  }
}
