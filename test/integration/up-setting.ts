import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { authorityProgram } from "../../cluster/authority-program.ts";
import { poll } from "../../cluster/poll.ts";
import { settings } from "../../src/settings.ts";

/** Every setting that names a file or is a secret, as it stands in the environment of somebody who runs a secure deployment. */
const elsewhere = Object.fromEntries(
  Object.values(settings)
    .filter((setting) => "file" in setting || "secret" in setting)
    .map(({ variable }) => [variable, "/not/of/this/cluster"]),
);

/** The command `mandate up` as a person runs it, and what it prints. */
export class UpProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<number | NodeJS.Signals>;
  #output = "";

  /**
   * Every process that it starts inherits `mark` in its environment, and so whatever else is set for nodes and workers of
   * some other deployment, none of which is its business.
   */
  constructor(args: readonly string[], mark: string) {
    const program = authorityProgram();
    this.child = spawn(program.program, [...program.arguments, "up", ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        ...elsewhere,
        MANDATE_EPOCH: "not this one",
        MANDATE_KEYS: "/not/of/this/cluster",
        MANDATE_LOG_LEVEL: "debug",
        TEST_MARK: mark,
      },
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => (this.#output += text));
    this.ended = once(this.child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  }

  get output(): string {
    return this.#output;
  }

  /** Waits until it has printed something that matches; answers the match. */
  async prints(pattern: RegExp, timeoutMs = 60_000): Promise<RegExpExecArray> {
    const found = await poll(
      () => {
        const match = pattern.exec(this.#output);
        if (match === null && this.child.exitCode !== null) throw new RangeError(`it ended:\n${this.#output}`);
        return match ?? undefined;
      },
      { timeoutMs },
    );
    if (found === undefined) throw new RangeError(`nothing like ${pattern.source} was printed:\n${this.#output}`);
    return found;
  }
}

/** Ids of all processes that bear the mark. */
export function processesOf(mark: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`TEST_MARK=${mark}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Waits until no process with the mark is left; answers those that are. */
export async function noProcessesOf(mark: string, timeoutMs = 10_000): Promise<readonly number[]> {
  await poll(() => (processesOf(mark).length === 0 ? true : undefined), { timeoutMs, intervalMs: 100 });
  return processesOf(mark);
}
