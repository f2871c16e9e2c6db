/** A source of time. Everything that needs the time is handed one of these; nothing below the wiring reads the machine's. */
export interface Clock {
  /** Epoch milliseconds, an integer. */
  now(): number;
}

/** The machine's wall clock. */
export const systemClock: Clock = { now: () => Date.now() };

/** Milliseconds from an arbitrary origin that never step: for measuring how long something took. */
export const monotonicMs = (): number => performance.now();

/** Makes things happen later. Whatever waits by itself is handed one of these, so that a test can hold the time. */
export interface Timers {
  /** Runs `action` once after `delayMs`, or after the longest delay a timer can be set to; the answer takes it back. */
  after(delayMs: number, action: () => void): () => void;
}

/** The longest delay a timer can be set to: a larger one would fire at once (2^31 − 1 ms, about 24.8 days). */
export const TIMER_MAX_MS = 2_147_483_647;

/** The machine's timers. */
export const systemTimers: Timers = {
  after: (delayMs, action) => {
    const timer = setTimeout(action, Math.min(delayMs, TIMER_MAX_MS));
    return () => clearTimeout(timer);
  },
};
