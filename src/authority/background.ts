import type { Timers } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { StoreUnavailable } from "../store/store.ts";

/** Work that a node does by itself, over and over. */
export interface BackgroundTask {
  readonly name: string;
  readonly everyMs: number;
  run(): Promise<unknown>;
}

/**
 * Runs tasks at their intervals; a task never runs twice at once, and its failure is logged and does not end it. A timer
 * that is late is not made up for.
 */
export class Background {
  readonly #log: Log;
  readonly #timers: Timers;
  readonly #monotonic: () => number;
  /** What takes back the next run of each task. */
  readonly #pending = new Map<string, () => void>();
  readonly #running = new Set<Promise<unknown>>();
  #stopped = false;

  constructor(options: { readonly log: Log; readonly timers: Timers; readonly monotonic: () => number }) {
    this.#log = options.log;
    this.#timers = options.timers;
    this.#monotonic = options.monotonic;
  }

  /** Begins with a task at once. */
  start(task: BackgroundTask): void {
    this.#schedule(task, 0);
  }

  /** Ends all tasks and waits for those under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const takeBack of this.#pending.values()) takeBack();
    await Promise.allSettled(this.#running);
  }

  #schedule(task: BackgroundTask, delayMs: number): void {
    if (this.#stopped) return;
    this.#pending.set(
      task.name,
      this.#timers.after(delayMs, () => this.#run(task)),
    );
  }

  #run(task: BackgroundTask): void {
    const startedAt = this.#monotonic();
    const run = task
      .run()
      .catch((cause: unknown) => {
        // A store that is away is a bad day, not a fault of this program.
        const level = cause instanceof StoreUnavailable ? "warn" : "error";
        this.#log[level]({ task: task.name, cause: String(cause) }, "a background task failed; it goes on");
      })
      .finally(() => {
        this.#running.delete(run);
        this.#schedule(task, Math.max(0, task.everyMs - (this.#monotonic() - startedAt)));
      });
    this.#running.add(run);
  }
}
