import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * One process and no other: a process id is given to a new process once its owner is gone, so the id alone must never
 * be sent a signal. `startedAt` is when the kernel says it began, in the kernel's own terms; `boot` tells two runs of
 * the machine apart.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string;
  readonly boot: string;
}

let boot: string | undefined;

function bootId(): string {
  if (boot !== undefined) return boot;
  try {
    boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    boot = "";
  }
  return boot;
}

/** When a process began, or `undefined` when there is none that could still run code (gone, or a zombie). */
function startOf(pid: number): string | undefined {
  try {
    if (process.platform === "linux") {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      // The name in brackets may hold anything; the state is the first field behind it and the start the twentieth.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
    }
    const line = execFileSync("ps", ["-o", "state=,lstart=", "-p", `${pid}`], { encoding: "utf8" }).trim();
    return line === "" || line.startsWith("Z") ? undefined : line.replace(/^\S+\s+/, "");
  } catch {
    return undefined;
  }
}

/** The identity of a running process; `undefined` when it is gone. */
export function identify(pid: number): ProcessIdentity | undefined {
  const startedAt = startOf(pid);
  return startedAt === undefined ? undefined : { pid, startedAt, boot: bootId() };
}

/** `true` while this very process runs (a paused one counts); `false` for a zombie and for a later bearer of its id. */
export const isAlive = ({ pid, startedAt, boot: ownBoot }: ProcessIdentity): boolean =>
  ownBoot === bootId() && startOf(pid) === startedAt;

/** Sends a signal if the very process still runs; answers whether it did. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    return process.kill(identity.pid, signal);
  } catch {
    return false;
  }
}
