import type { ProcessExit } from "../../cluster/guarded-process.ts";
import type { Log } from "../base/log.ts";

/** A process that is to run as long as the cluster does. */
export interface Watched {
  readonly name: string;
  /** When the process that was last started ends. */
  exited(): Promise<ProcessExit> | undefined;
  /** Starts it anew; answers a word about it for people. */
  start(): Promise<string>;
}

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 10_000;
/** A process that ran this long was well: the next wait is a short one again. */
const STEADY_MS = 30_000;

/** Starts processes again that ended while nobody wanted them to. */
export class Supervisor {
  readonly #log: Log;
  readonly #onNews: (text: string) => void;
  readonly #stopping = new AbortController();

  constructor(options: { readonly log: Log; readonly onNews: (text: string) => void }) {
    this.#log = options.log;
    this.#onNews = options.onNews;
  }

  /** From now on it is started again whenever it ends. */
  watch(watched: Watched): void {
    void this.#keep(watched);
  }

  /** Nothing is started any more. */
  stop(): void {
    this.#stopping.abort();
  }

  async #keep(watched: Watched): Promise<void> {
    const { signal } = this.#stopping;
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted;) {
      const begunAt = performance.now();
      const exit = await watched.exited();
      if (signal.aborted) return;
      if (performance.now() - begunAt > STEADY_MS) waitMs = FIRST_WAIT_MS;
      const how = exit?.signal ?? `exit code ${exit?.code ?? "unknown"}`;
      this.#onNews(`${watched.name} ended (${how}); starting it again`);
      this.#log.warn({ name: watched.name, ...exit }, "a process ended; starting it again");
      await this.#wait(waitMs);
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
      if (signal.aborted) return;
      try {
        this.#onNews(`${watched.name} runs again (${await watched.start()})`);
      } catch (thrown) {
        if (signal.aborted) return;
        const problem = thrown instanceof Error ? thrown.message : String(thrown);
        this.#log.error({ name: watched.name, problem }, "a process could not be started again");
      }
    }
  }

  #wait(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#stopping.signal.addEventListener(
        "abort",
        () => {
          clearTimeout(timer);
          resolve();
        },
        { once: true },
      );
    });
  }
}
