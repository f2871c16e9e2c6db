import { TIMER_MAX_MS } from "../base/clock.ts";
import type { Random } from "../base/random.ts";

const FIRST_MS = 50;
const LONGEST_MS = 2_000;

/** How long to wait before try `attempt` + 1 (0, 1, 2 …), ms: doubling, bounded, and spread over its upper half. */
export const backoffDelayMs = (attempt: number, random: Random = Math.random): number =>
  Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 16)) * (0.5 + random() / 2);

/** Waits, as long as a timer can at most; answers early when the signal aborts. Never rejects. */
export function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.min(TIMER_MAX_MS, Math.max(0, delayMs)));
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** Fulfilled once the signal has aborted. Never rejects. */
export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
