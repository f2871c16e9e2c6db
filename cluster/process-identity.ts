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

interface ProcessStatus {
  /** The kernel's letter: `T` is stopped by a signal, `Z` a zombie. */
  readonly state: string;
  readonly startedAt: string;
}

/** `undefined` when there is no process that could still run code: it is gone, or a zombie. */
function statusOf(pid: number): ProcessStatus | undefined {
  try {
    const [state, startedAt] = process.platform === "linux" ? readStatus(pid) : askStatus(pid);
    if (state === undefined || startedAt === undefined || /^[ZX]/.test(state)) return undefined;
    return { state, startedAt };
  } catch {
    return undefined;
  }
}

function readStatus(pid: number): [string | undefined, string | undefined] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name in brackets may hold anything; the state is the first field behind it and the start the twentieth.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return [fields[0], fields[19]];
}

function askStatus(pid: number): [string | undefined, string | undefined] {
  const line = execFileSync("ps", ["-o", "state=,lstart=", "-p", `${pid}`], { encoding: "utf8" }).trim();
  return [/^\S+/.exec(line)?.[0], line.replace(/^\S+\s+/, "")];
}

/** The identity of a running process; `undefined` when it is gone. */
export function identify(pid: number): ProcessIdentity | undefined {
  const status = statusOf(pid);
  return status === undefined ? undefined : { pid, startedAt: status.startedAt, boot: bootId() };
}

/** `true` while this very process runs (a paused one counts); `false` for a zombie and for a later bearer of its id. */
export const isAlive = ({ pid, startedAt, boot: ownBoot }: ProcessIdentity): boolean =>
  ownBoot === bootId() && statusOf(pid)?.startedAt === startedAt;

/** `true` when the very process stands still after SIGSTOP. */
export const isStopped = (identity: ProcessIdentity): boolean =>
  isAlive(identity) && statusOf(identity.pid)?.state.startsWith("T") === true;

/** Sends a signal if the very process still runs; answers whether it did. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    return process.kill(identity.pid, signal);
  } catch {
    return false;
  }
}
