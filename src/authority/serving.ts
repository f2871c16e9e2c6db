import type { Readiness } from "./api.ts";
import { ESTIMATE_AGE_MAX_MS, type StoreTime } from "./store-time.ts";

/** A view older than this is not served from, ms (contract 5.4). */
export const VIEW_AGE_MAX_MS = 3000;

export interface ServingOptions {
  readonly reachable: () => boolean;
  /** What keeps the view from being current, in words. */
  readonly viewObstacles: () => readonly string[];
  readonly viewAgeMs: () => number | undefined;
  readonly time: StoreTime;
  readonly monotonic: () => number;
  readonly clockSkewMaxMs: number;
  /** The time that decisions are taken at, ms. */
  readonly now: () => number;
  readonly onTurn: (readiness: Readiness) => void;
}

/**
 * Whether this node may serve (contract 5.4, 5.5), and since when it has without a break. Asked at every use, and the
 * break is remembered: a process that was stopped for a minute finds its view a minute old before it does anything.
 */
export class Serving {
  readonly #options: ServingOptions;
  /** Monotonic ms: the estimate of the store's time may be corrected meanwhile, and a length of time must not be. */
  #since: number | undefined;
  #stopped = false;

  constructor(options: ServingOptions) {
    this.#options = options;
  }

  /** From now on the node is not ready: it is going away. */
  stop(): void {
    this.#stopped = true;
    this.readiness();
  }

  /** What a load balancer is told. */
  readiness(): Readiness {
    const { time } = this.#options;
    const reasons = this.#reasons();
    const viewAgeMs = this.#options.viewAgeMs();
    const clockOffsetMs = time.offsetMs();
    const readiness: Readiness = {
      ready: reasons.length === 0,
      reasons,
      ...(viewAgeMs === undefined ? {} : { viewAgeMs: Math.round(viewAgeMs) }),
      ...(clockOffsetMs === undefined ? {} : { clockOffsetMs }),
    };
    this.#turn(readiness);
    return readiness;
  }

  /** Whether the store was heard of lately: otherwise a call would only wait. */
  storeAnswers(): boolean {
    const age = this.#options.viewAgeMs();
    return this.#options.reachable() && age !== undefined && age <= VIEW_AGE_MAX_MS;
  }

  /** Since when the node has been able to serve without a break, by the store's time; `undefined` while it is not. */
  since(): number | undefined {
    if (!this.readiness().ready || this.#since === undefined) return undefined;
    return Math.ceil(this.#options.now() - (this.#options.monotonic() - this.#since));
  }

  #reasons(): readonly string[] {
    const { reachable, viewAgeMs, time, clockSkewMaxMs, viewObstacles } = this.#options;
    const reasons: string[] = [];
    if (this.#stopped) reasons.push("the node is stopping");
    if (!reachable()) reasons.push("the store can't be reached");
    reasons.push(...viewObstacles());
    const age = viewAgeMs();
    if (age === undefined) reasons.push("no own heartbeat has been seen yet");
    else if (age > VIEW_AGE_MAX_MS) reasons.push(`the view is ${Math.round(age)} ms old`);
    const estimateAgeMs = time.ageMs();
    if (estimateAgeMs !== undefined && estimateAgeMs > ESTIMATE_AGE_MAX_MS)
      reasons.push(`the store's time was last seen ${Math.round(estimateAgeMs)} ms ago`);
    const offset = time.offsetMs();
    if (offset !== undefined && Math.abs(offset) > clockSkewMaxMs)
      reasons.push(`the node's clock differs from the store's by ${offset} ms`);
    return reasons;
  }

  #turn(readiness: Readiness): void {
    const was = this.#since !== undefined;
    if (readiness.ready === was) return;
    this.#since = readiness.ready ? this.#options.monotonic() : undefined;
    this.#options.onTurn(readiness);
  }
}
