import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { CrashLine, LeftoverLine } from "./history.ts";
import { pause } from "../src/sdk/backoff.ts";

/** What should not be, among how many things that were looked at. */
export interface Inspection<Line = LeftoverLine> {
  readonly inspected: number;
  readonly found: readonly Line[];
}

/** Everything that a run starts inherits it. */
export const RUN_MARK = "CHAOS_RUN";

/** Processes that only wait for their parent (the guard of the processes, the compiler's) end with it. */
const helpers = /\0-e\0|esbuild/;
const PROCESSES_GONE_MS = 10_000;

/** All processes but this one; none where there is no /proc. */
const processIds = (): readonly string[] =>
  process.platform === "linux"
    ? readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    : [];

const bearersOf = (mark: string): readonly string[] =>
  processIds().flatMap((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`${RUN_MARK}=${mark}`)) return [];
      if (/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "latin1"))) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, "latin1");
      return helpers.test(command) ? [] : [`${pid} ${command.replaceAll("\0", " ").trim()}`];
    } catch {
      // It has ended in this moment.
      return [];
    }
  });

/** Processes of the run that still are when all has been stopped. */
export async function findProcesses(mark: string): Promise<Inspection> {
  const deadline = performance.now() + PROCESSES_GONE_MS;
  for (;;) {
    const names = bearersOf(mark);
    if (names.length === 0 || performance.now() > deadline) {
      const found = names.map((name) => ({ line: "leftover", kind: "process", name }) as const);
      return { inspected: processIds().length, found };
    }
    await pause(200);
  }
}

/** What a loader keeps for the next start is not left behind by the product. */
const caches = /^(tsx-|node-compile-cache)/;

/** Files that a stopped deployment should not leave: in the place for temporary ones, and records of running processes. */
export function findFiles(directory: string): Inspection {
  const all = ["tmp", "nodes", "nats", "workers", "traffic"].flatMap((folder) =>
    readdirSync(join(directory, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  );
  const left = all.filter(
    (name) =>
      (name.startsWith("tmp/") && !caches.test(name.slice("tmp/".length))) ||
      /\/process\.json|store-seen\.json\.\d+$/.test(name),
  );
  return { inspected: all.length, found: left.map((name) => ({ line: "leftover", kind: "file", name }) as const) };
}

/** How a node tells, as its last line, that it ends over a bug. */
const crash = /^\{.*"(?:uncaught exception|unhandled rejection): .*\}$/gm;

/** Nodes that ended over a bug of their own, by what they logged. */
export function findCrashes(directory: string): Inspection<CrashLine> {
  const logs = readdirSync(join(directory, "nodes"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".log"),
  );
  const found = logs.flatMap((log) =>
    [...readFileSync(join(directory, "nodes", log), "utf8").matchAll(crash)].map(
      ([told]) => ({ line: "crash", node: basename(log, ".log"), told }) as const,
    ),
  );
  return { inspected: logs.length, found };
}
