import { ClusterError } from "./cluster-error.ts";
import { authorityProgram } from "./authority-program.ts";
import type { ProcessExit } from "./guarded-process.ts";
import { GuardedProcess } from "./guarded-process.ts";
import { poll } from "./poll.ts";

/** One authority node as a process. */
export interface AuthorityOptions {
  readonly name: string;
  /** Its own folder, for its log and its record. Made when missing. */
  readonly directory: string;
  /** Where its HTTP surface will answer, such as `http://127.0.0.1:7701`; must agree with `env`. */
  readonly url: string;
  /** Added to this process's environment; `undefined` takes a variable away. */
  readonly env: { readonly [name: string]: string | undefined };
  /** What the command line is told; `["serve"]` when absent. */
  readonly arguments?: readonly string[];
}

const READY_TIMEOUT_MS = 30_000;
const PROBE_TIMEOUT_MS = 1_000;

/** A process `mandate serve` that can be paused, killed and started again, and that ends with its owner. */
export class AuthorityProcess {
  readonly name: string;
  readonly url: string;
  readonly #options: AuthorityOptions;
  #process: GuardedProcess | undefined;

  constructor(options: AuthorityOptions) {
    this.name = options.name;
    this.url = options.url;
    this.#options = options;
  }

  get running(): boolean {
    return this.#process?.running ?? false;
  }

  /** The id of the running process; `undefined` when there is none. */
  get pid(): number | undefined {
    return this.running ? this.#process?.pid : undefined;
  }

  /** Its standard output and error, appended over all starts; `undefined` before the first. */
  get logPath(): string | undefined {
    return this.#process?.logPath;
  }

  /** Fulfilled when the process that was last started has ended. */
  get exited(): Promise<ProcessExit> | undefined {
    return this.#process?.exited;
  }

  /**
   * Starts the process; it is not ready yet ({@link waitReady}).
   *
   * @throws ClusterError `PROGRAM_MISSING`, `DIRECTORY_IN_USE` (also when it already runs), `PROCESS_EXITED`.
   */
  async start(): Promise<void> {
    const { name, directory, env } = this.#options;
    const command = authorityProgram();
    this.#process = await GuardedProcess.start({
      name,
      directory,
      env,
      program: command.program,
      arguments: [...command.arguments, ...(this.#options.arguments ?? ["serve"])],
    });
  }

  /** Whether `GET /readyz` answers 200 now. */
  async ready(): Promise<boolean> {
    try {
      const response = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
      await response.arrayBuffer();
      return response.ok;
    } catch {
      return false;
    }
  }

  /**
   * Waits until the node says that it is ready. With `supervised`, somebody starts it again whenever it ends: that is
   * waited for as well.
   *
   * @throws ClusterError `PROCESS_EXITED` when it ends meanwhile and nobody starts it again, `PROCESS_NOT_READY` after
   * `timeoutMs` (30 s), with the end of its log.
   */
  async waitReady(timeoutMs = READY_TIMEOUT_MS, { supervised = false } = {}): Promise<void> {
    const child = this.#process;
    const ready = await poll(
      async () => {
        if (!supervised && child?.exit !== undefined) throw child.exitError();
        return (await this.ready()) ? true : undefined;
      },
      { timeoutMs, intervalMs: 50 },
    );
    if (ready === undefined)
      throw new ClusterError(
        "PROCESS_NOT_READY",
        `${this.name} was not ready within ${timeoutMs} ms; the end of ${this.logPath}:\n${this.#process?.logTail() ?? ""}`,
        { details: { name: this.name, logPath: this.logPath } },
      );
  }

  /** Ends it with a signal, SIGKILL by default; answers when it has ended. Nothing to do when none runs. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#process?.kill(signal);
  }

  /** Lets it finish what it has in hand (SIGTERM), and kills it after `graceMs` (10 s). */
  async stop(graceMs?: number): Promise<void> {
    await this.#process?.stop(graceMs);
  }

  /** SIGSTOP: it keeps its connections and does nothing. Answers when it stands still. */
  async pause(): Promise<void> {
    await this.#process?.pause();
  }

  /** SIGCONT. */
  resume(): void {
    this.#process?.resume();
  }
}
