import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { LeftoverLine } from "./history.ts";
import { pause } from "./pause.ts";

/** Everything that a run starts inherits it. */
export const RUN_MARK = "CHAOS_RUN";

/** Processes that only wait for their parent (the guard of the processes, the compiler's) end with it. */
const helpers = /\0-e\0|esbuild/;
const PROCESSES_GONE_MS = 10_000;

function bearersOf(mark: string): readonly string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .flatMap((pid) => {
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
}

/** Processes of the run that still are when all has been stopped. */
export async function findProcesses(mark: string): Promise<readonly LeftoverLine[]> {
  const deadline = performance.now() + PROCESSES_GONE_MS;
  for (;;) {
    const names = bearersOf(mark);
    if (names.length === 0 || performance.now() > deadline)
      return names.map((name) => ({ line: "leftover", kind: "process", name }));
    await pause(200);
  }
}

/** What a loader keeps for the next start is not left behind by the product. */
const caches = /^(tsx-|node-compile-cache)/;

/** Files that a stopped deployment should not leave: in the place for temporary ones, and records of running processes. */
export function findFiles(directory: string): readonly LeftoverLine[] {
  const temporary = readdirSync(join(directory, "tmp")).filter((name) => !caches.test(name));
  const records = ["nodes", "nats", "workers", "traffic"].flatMap((folder) =>
    readdirSync(join(directory, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => /(^|\/)process\.json/.test(name) || /store-seen\.json\.\d+$/.test(name))
      .map((name) => join(folder, name)),
  );
  return [...temporary.map((name) => join("tmp", name)), ...records].map((name) => ({
    line: "leftover",
    kind: "file",
    name,
  }));
}
