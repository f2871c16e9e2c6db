import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ClusterError, systemCode } from "./cluster-error.ts";
import { poll } from "./poll.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import { identify, isAlive, signalProcess } from "./process-identity.ts";

/**
 * A file that says which process uses a directory, and on whose behalf: `owner` started it. It is a lock while the
 * owner lives, and afterwards tells the next start what was left running.
 */
interface ProcessRecord {
  readonly owner: ProcessIdentity;
  readonly child?: ProcessIdentity;
}

/** A file without sense in it is one that is being written, unless it has been so for longer than any write takes. */
const UNREADABLE_MS = 2_000;
const REAP_TIMEOUT_MS = 10_000;

const isIdentity = (value: unknown): value is ProcessIdentity =>
  typeof value === "object" &&
  value !== null &&
  "pid" in value &&
  Number.isSafeInteger(value.pid) &&
  "startedAt" in value &&
  typeof value.startedAt === "string" &&
  "boot" in value &&
  typeof value.boot === "string";

function parseRecord(text: string): ProcessRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("owner" in value) || !isIdentity(value.owner))
      return undefined;
    return "child" in value && isIdentity(value.child)
      ? { owner: value.owner, child: value.child }
      : { owner: value.owner };
  } catch {
    return undefined;
  }
}

function self(): ProcessIdentity {
  return identify(process.pid) ?? { pid: process.pid, startedAt: "", boot: "" };
}

/** Ends a process that its owner left behind, and waits until it is gone. */
async function reap(child: ProcessIdentity): Promise<void> {
  signalProcess(child, "SIGKILL");
  const gone = await poll(() => (isAlive(child) ? undefined : true), { timeoutMs: REAP_TIMEOUT_MS });
  if (gone === undefined)
    throw new ClusterError("PROCESS_NOT_STOPPED", `process ${child.pid}, left by an earlier run, does not end`, {
      details: { pid: child.pid },
    });
}

async function readRecord(file: string): Promise<ProcessRecord | "none" | "unreadable"> {
  try {
    const record = parseRecord(await readFile(file, "utf8"));
    if (record !== undefined) return record;
    return Date.now() - (await stat(file)).mtimeMs > UNREADABLE_MS ? "none" : "unreadable";
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return "none";
    throw thrown;
  }
}

/**
 * Takes a directory for this process by creating its record. What an earlier owner that is gone left running there is
 * ended first (exactly that process: id, start time and boot must agree). Answers the id of the process that was ended.
 *
 * @throws ClusterError `DIRECTORY_IN_USE` while a living process (this one too) holds it, `PROCESS_NOT_STOPPED` when
 * what was left there does not end.
 */
export async function takeRecord(file: string): Promise<number | undefined> {
  await mkdir(dirname(file), { recursive: true });
  let reaped: number | undefined;
  const taken = await poll(
    async () => {
      try {
        await writeFile(file, JSON.stringify({ owner: self() }), { flag: "wx" });
        return true;
      } catch (thrown) {
        if (systemCode(thrown) !== "EEXIST") throw thrown;
      }
      const record = await readRecord(file);
      if (record === "unreadable") return undefined;
      if (record !== "none") {
        if (isAlive(record.owner))
          throw new ClusterError("DIRECTORY_IN_USE", `${dirname(file)} is in use by process ${record.owner.pid}`, {
            details: { directory: dirname(file), owner: record.owner.pid },
          });
        if (record.child !== undefined && isAlive(record.child)) {
          await reap(record.child);
          reaped = record.child.pid;
        }
      }
      await rm(file, { force: true });
      return undefined;
    },
    { timeoutMs: REAP_TIMEOUT_MS + UNREADABLE_MS },
  );
  if (taken === undefined)
    throw new ClusterError("DIRECTORY_IN_USE", `${file} keeps changing hands`, {
      details: { directory: dirname(file) },
    });
  return reaped;
}

/** Notes the process that was started, in one step for any reader. */
export async function writeChild(file: string, child: ProcessIdentity): Promise<void> {
  const staged = `${file}.${process.pid}`;
  await writeFile(staged, JSON.stringify({ owner: self(), child }));
  await rename(staged, file);
}

/** Gives the directory up. */
export const dropRecord = (file: string): Promise<void> => rm(file, { force: true });
