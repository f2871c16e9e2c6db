import { readFileSync } from "node:fs";

/** Linux counts in hundredths of a second. */
const TICK_MS = 10;

/** Processor time that a process has used, all threads, ms; `undefined` where the system does not tell it this way. */
export function processorMs(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name may hold anything; what follows its closing bracket begins with the third field.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return undefined;
  }
}

/** Processor time of several processes while something runs, ms by name. */
export async function processorTimeOf<Answer>(
  pids: Readonly<Record<string, readonly number[]>>,
  run: () => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly usedMs: Readonly<Record<string, number>> }> {
  const read = (): Map<string, number> =>
    new Map(
      Object.entries(pids).map(([name, ids]) => [name, ids.reduce((sum, id) => sum + (processorMs(id) ?? 0), 0)]),
    );
  const before = read();
  const answer = await run();
  const usedMs = Object.fromEntries([...read()].map(([name, ms]) => [name, ms - (before.get(name) ?? 0)]));
  return { answer, usedMs };
}
