import { settledStates } from "../core/workload/states.ts";
import type { Projection } from "../store/projection/projection.ts";

/** Callers who wait for workloads to settle, by workload: a change costs a look-up, however many wait. */
export class Settling {
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(projection: Projection) {
    projection.listen(({ workload: { outline } }) => {
      if (this.#waiting.size === 0 || !settledStates.includes(outline.state)) return;
      for (const wake of this.#waiting.get(outline.workloadId) ?? []) wake();
    });
  }

  /** Begins to wait; `settled` resolves when the workload has settled, the time is up, or the signal aborts. Call `end` in any case. */
  begin(
    workloadId: string,
    until: { readonly waitMs: number; readonly signal: AbortSignal | undefined },
  ): { readonly settled: Promise<void>; readonly end: () => void } {
    let wake: () => void = () => undefined;
    const settled = new Promise<void>((resolve) => (wake = resolve));
    const waiters = this.#waiting.get(workloadId) ?? new Set();
    this.#waiting.set(workloadId, waiters.add(wake));
    const timer = setTimeout(wake, until.waitMs);
    until.signal?.addEventListener("abort", wake, { once: true });
    if (until.signal?.aborted === true) wake();
    const end = (): void => {
      clearTimeout(timer);
      until.signal?.removeEventListener("abort", wake);
      waiters.delete(wake);
      if (waiters.size === 0 && this.#waiting.get(workloadId) === waiters) this.#waiting.delete(workloadId);
    };
    return { settled, end };
  }
}
