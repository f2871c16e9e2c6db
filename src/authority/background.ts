import type { Log } from "../base/log.ts";

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
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  readonly #running = new Set<Promise<unknown>>();
  #stopped = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Begins with a task at once. */
  start(task: BackgroundTask): void {
    this.#schedule(task, 0);
  }

  /** Ends all tasks and waits for those under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await Promise.allSettled(this.#running);
  }

  #schedule(task: BackgroundTask, delayMs: number): void {
    if (this.#stopped) return;
    this.#timers.set(
      task.name,
      setTimeout(() => this.#run(task), delayMs),
    );
  }

  #run(task: BackgroundTask): void {
    const startedAt = performance.now();
    const run = task
      .run()
      .catch((cause: unknown) =>
        this.#log.error({ task: task.name, cause: String(cause) }, "a background task failed; it goes on"),
      )
      .finally(() => {
        this.#running.delete(run);
        this.#schedule(task, Math.max(0, task.everyMs - (performance.now() - startedAt)));
      });
    this.#running.add(run);
  }
}
