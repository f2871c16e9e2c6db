/** Where a run's time began: the machine's wall clock and its monotonic clock, read at one moment by the runner. */
export interface ClockOrigin {
  readonly epochMs: number;
  /** Of `process.hrtime.bigint()`, which all processes of one machine share. */
  readonly monotonicNs: string;
}

/** Reads both clocks now. */
export const clockOrigin = (): ClockOrigin => ({
  epochMs: Date.now(),
  monotonicNs: String(process.hrtime.bigint()),
});

/**
 * The one clock that everything in a history is stamped with, in every process of the run: it starts at the wall clock
 * and then goes by the monotonic one, so that no step of a clock (the run makes some itself) ever moves it.
 */
export class RunClock {
  readonly origin: ClockOrigin;
  readonly #startNs: bigint;

  constructor(origin: ClockOrigin) {
    this.origin = origin;
    this.#startNs = BigInt(origin.monotonicNs);
  }

  /** Epoch ms with microseconds as fraction. */
  now(): number {
    const microseconds = Number((process.hrtime.bigint() - this.#startNs) / 1000n);
    return Math.round(this.origin.epochMs * 1000 + microseconds) / 1000;
  }
}
