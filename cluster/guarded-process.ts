import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { ClusterError, problemText } from "./cluster-error.ts";
import { poll } from "./poll.ts";
import { guardProcess, releaseProcess } from "./process-guard.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import { identify, isStopped, signalProcess } from "./process-identity.ts";
import { dropRecord, takeRecord, writeChild } from "./process-record.ts";

/** How a process ended: its exit code, or the signal that ended it. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** What to run and where it may write. */
export interface ProgramStart {
  readonly name: string;
  readonly program: string;
  readonly arguments: readonly string[];
  /** Its own folder: the record of who runs there and the log are kept in it. Made when missing. */
  readonly directory: string;
  readonly env?: { readonly [name: string]: string | undefined };
}

/** A log larger than this is put aside at the next start. */
const LOG_BYTES_MAX = 16 * 1024 * 1024;
const PAUSE_TIMEOUT_MS = 1_000;
const LOG_TAIL_CHARACTERS = 2_000;

function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) renameSync(file, `${file}.old`);
  return openSync(file, "a");
}

/**
 * A child process that does not outlive its owner, that holds its directory while it runs, and that can be paused,
 * resumed and killed. It leads a process group of its own: Ctrl-C reaches the owner alone, which then ends its children
 * in the right order.
 */
export class GuardedProcess {
  readonly name: string;
  readonly pid: number;
  /** Standard output and error, appended. */
  readonly logPath: string;
  /** Fulfilled when the process has ended and its directory is free; never rejected. */
  readonly exited: Promise<ProcessExit>;
  /** The process of an earlier, vanished owner that had to be ended before this one could start. */
  readonly reaped: number | undefined;
  readonly #identity: ProcessIdentity;
  #exit: ProcessExit | undefined;
  #paused = false;

  private constructor(
    start: ProgramStart,
    child: ChildProcess,
    facts: { identity: ProcessIdentity; reaped: number | undefined },
  ) {
    this.name = start.name;
    this.logPath = GuardedProcess.#logPath(start);
    this.#identity = facts.identity;
    this.pid = facts.identity.pid;
    this.reaped = facts.reaped;
    const record = GuardedProcess.#recordPath(start);
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#exit = { code, signal };
        releaseProcess(this.#identity);
        void dropRecord(record).finally(() => resolve({ code, signal }));
      });
    });
  }

  static #logPath = (start: ProgramStart): string => join(start.directory, `${start.name}.log`);
  static #recordPath = (start: ProgramStart): string => join(start.directory, "process.json");

  /**
   * Starts the program. It runs when this answers; whether it is of use, its own readiness has to say.
   *
   * @throws ClusterError `DIRECTORY_IN_USE`, `PROCESS_NOT_STOPPED` (see {@link takeRecord}) or `PROCESS_EXITED` when it
   * could not be started at all.
   */
  static async start(start: ProgramStart): Promise<GuardedProcess> {
    const record = this.#recordPath(start);
    const reaped = await takeRecord(record);
    try {
      const started = await this.#spawn(start, reaped);
      await writeChild(record, started.#identity).catch(async (thrown: unknown) => {
        await started.kill();
        throw thrown;
      });
      if (!started.running) await dropRecord(record);
      return started;
    } catch (thrown) {
      await dropRecord(record);
      if (thrown instanceof ClusterError) throw thrown;
      const message = `${start.program} could not be started: ${problemText(thrown)}`;
      throw new ClusterError("PROCESS_EXITED", message, { cause: thrown });
    }
  }

  static async #spawn(start: ProgramStart, reaped: number | undefined): Promise<GuardedProcess> {
    const output = openLog(this.#logPath(start));
    const child = spawn(start.program, [...start.arguments], {
      stdio: ["ignore", output, output],
      detached: true,
      env: { ...process.env, ...start.env },
    });
    const identity = child.pid === undefined ? undefined : identify(child.pid);
    // In the same turn as the birth, so that there is no moment at which the owner could die and leave it behind.
    if (identity !== undefined) guardProcess(identity);
    closeSync(output);
    if (child.pid === undefined) await once(child, "spawn");
    if (identity === undefined) throw new ClusterError("PROCESS_EXITED", `${start.name} ended at once`);
    return new GuardedProcess(start, child, { identity, reaped });
  }

  get running(): boolean {
    return this.#exit === undefined;
  }

  get paused(): boolean {
    return this.#paused && this.running;
  }

  /** How it ended; `undefined` while it runs. */
  get exit(): ProcessExit | undefined {
    return this.#exit;
  }

  /** Sends a signal that ends it (a paused process is resumed so that it hears it); answers when it has ended. */
  kill(signal: NodeJS.Signals = "SIGKILL"): Promise<ProcessExit> {
    if (this.running) {
      signalProcess(this.#identity, signal);
      if (this.#paused && signal !== "SIGKILL") this.resume();
    }
    return this.exited;
  }

  /** Asks it to end and kills it after `graceMs`; answers when it has ended. */
  async stop(graceMs = 10_000): Promise<ProcessExit> {
    const timer = setTimeout(() => void this.kill("SIGKILL"), graceMs);
    try {
      return await this.kill("SIGTERM");
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Stops it in its tracks (SIGSTOP): it keeps its memory, files and connections but does nothing. Answers when every
   * thread of it stands still, which is a moment after the signal.
   */
  async pause(): Promise<void> {
    if (!signalProcess(this.#identity, "SIGSTOP")) return;
    this.#paused = true;
    await poll(() => (isStopped(this.#identity) || !this.running ? true : undefined), {
      timeoutMs: PAUSE_TIMEOUT_MS,
      intervalMs: 1,
    });
  }

  /** Lets a paused process go on. */
  resume(): void {
    signalProcess(this.#identity, "SIGCONT");
    this.#paused = false;
  }

  /** The end of its log, for an error message. */
  logTail(): string {
    try {
      return readFileSync(this.logPath, "utf8").slice(-LOG_TAIL_CHARACTERS);
    } catch {
      return "";
    }
  }

  /** The error of a process that ended while it was expected to run. */
  exitError(): ClusterError {
    const how = this.#exit?.signal ?? `exit code ${this.#exit?.code ?? "unknown"}`;
    return new ClusterError(
      "PROCESS_EXITED",
      `${this.name} ended (${how}); the end of ${this.logPath}:\n${this.logTail()}`,
      {
        details: { name: this.name, ...this.#exit, logPath: this.logPath },
      },
    );
  }
}
