import { createReadStream, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { CallLine, HistoryLine } from "./history.ts";
import type { BeginLine, PartLine } from "./recorder.ts";

const timeOf = (line: HistoryLine): number => {
  if (line.line === "call" || line.line === "run") return line.startedAt;
  return "at" in line ? line.at : 0;
};

/** A process that was killed may leave half a line at the end of what it wrote. */
function parseLine(text: string): PartLine | undefined {
  try {
    return JSON.parse(text) as PartLine;
  } catch {
    return undefined;
  }
}

async function readPart(file: string, endedAt: number): Promise<HistoryLine[]> {
  const lines: HistoryLine[] = [];
  const open = new Map<string, BeginLine>();
  const call = (begin: BeginLine, end: Pick<CallLine, "endedAt" | "outcome">): void => {
    const { line: _line, key: _key, ...rest } = begin;
    lines.push({ line: "call", id: 0, ...rest, ...end });
  };
  for await (const text of createInterface({ input: createReadStream(file) })) {
    const part = parseLine(text);
    if (part === undefined) continue;
    if (part.line === "begin") open.set(part.key, part);
    else if (part.line === "finish") {
      const begin = open.get(part.key);
      if (begin !== undefined) call(begin, { endedAt: part.endedAt, outcome: part.outcome });
      open.delete(part.key);
    } else lines.push(part);
  }
  for (const begin of open.values()) call(begin, { endedAt, outcome: { kind: "unknown", cause: "never answered" } });
  return lines;
}

/**
 * Everything that the processes of a run wrote, in the order of time, its calls numbered from 1. A call without an end is
 * one of unknown outcome that ended with the run.
 */
export async function mergeParts(directory: string, endedAt: number): Promise<readonly HistoryLine[]> {
  const names = readdirSync(directory).filter((name) => name.endsWith(".ndjson"));
  const parts = await Promise.all(names.map((name) => readPart(join(directory, name), endedAt)));
  const lines = parts.flat().sort((left, right) => timeOf(left) - timeOf(right));
  let calls = 0;
  return lines.map((line) => (line.line === "call" ? { ...line, id: ++calls } : line));
}
