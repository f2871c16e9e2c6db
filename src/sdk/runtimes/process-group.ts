import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { findProgram } from "./find-program.ts";
import { guardGroup, readyGuard, releaseGroup } from "./group-guard.ts";

/** How the first process of a group ended. */
export interface GroupExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface GroupStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: { readonly [name: string]: string };
  readonly cwd: string | undefined;
  /** Most processor time of each process, whole seconds: the kernel sends SIGXCPU then. */
  readonly cpuSeconds: number | undefined;
}

/** Sets the kernel's limit and becomes the program. What can't be set is bounded more tightly already. */
const LIMITED = 'ulimit -S -t "$1"; ulimit -H -t "$2"; shift 2; exec "$@"';

function commandOf({ args, command, cpuSeconds, cwd, env }: GroupStart): readonly [string, readonly string[]] {
  if (cpuSeconds === undefined) return [command, args];
  const program = findProgram(command, { path: env["PATH"], cwd });
  // The shell would say that by an exit code, which could be the program's own.
  if (program === undefined) return [command, args];
  return ["/bin/sh", ["-c", LIMITED, "sh", `${cpuSeconds}`, `${cpuSeconds + 1}`, program, ...args]];
}

/**
 * A program that leads a process group of its own, so that all it starts can be ended with it. Nothing of the group
 * outlives its first process, nor this process: a process that leaves the group (`setsid`) does, and is not covered.
 */
export class ProcessGroup {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Descriptor 3, as far as the program writes to it. */
  readonly reports: Readable;
  /** Fulfilled when the first process has ended and the rest of its group has been killed; never rejected. */
  readonly exited: Promise<GroupExit>;
  #running = true;
  #timer: NodeJS.Timeout | undefined;

  private constructor(child: ChildProcess, pid: number) {
    this.pid = pid;
    const [stdin, stdout, stderr, reports] = child.stdio;
    this.stdin = stdin as Writable;
    this.stdout = stdout as Readable;
    this.stderr = stderr as Readable;
    this.reports = reports as Readable;
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#signal("SIGKILL");
        this.#running = false;
        clearTimeout(this.#timer);
        releaseGroup(pid);
        resolve({ code, signal });
      });
    });
  }

  /** Rejects with the system's error when it can't be started; nothing runs then. */
  static async start(start: GroupStart): Promise<ProcessGroup> {
    await readyGuard();
    const [command, args] = commandOf(start);
    const child = spawn(command, [...args], {
      stdio: ["pipe", "pipe", "pipe", "pipe"],
      detached: true,
      env: { ...start.env },
      ...(start.cwd === undefined ? {} : { cwd: start.cwd }),
    });
    child.on("error", () => undefined);
    const { pid } = child;
    if (pid !== undefined) {
      // In the same turn as the birth, so that there is no moment at which this process could die and leave it behind.
      guardGroup(pid);
      return new ProcessGroup(child, pid);
    }
    const [problem] = (await once(child, "error")) as [Error];
    throw problem;
  }

  /** Asks all of it to end, and kills what is left after `graceMs`. */
  end(graceMs: number): void {
    if (!this.#running) return;
    this.#signal("SIGTERM");
    // A stopped process does not hear it otherwise.
    this.#signal("SIGCONT");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.kill(), graceMs);
  }

  /** Ends all of it at once. */
  kill(): void {
    if (this.#running) this.#signal("SIGKILL");
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.pid, signal);
    } catch {
      // Nobody of the group is there any more.
    }
  }
}
