import { createReadStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { HistoryLine } from "../history.ts";
import { HistoryError } from "./collect.ts";

/** The file of a run's folder that holds its history. */
export const HISTORY_FILE = "history.ndjson";

/**
 * The lines of a saved history in their order, never more than one at a time.
 *
 * @throws HistoryError when a line is no JSON object.
 */
export async function* readHistory(directory: string): AsyncGenerator<HistoryLine> {
  const input = createReadStream(join(directory, HISTORY_FILE), { encoding: "utf8", highWaterMark: 1 << 20 });
  let number = 0;
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1;
    if (text === "") continue;
    try {
      yield JSON.parse(text) as HistoryLine;
    } catch (cause) {
      throw new HistoryError(`line ${number} of ${HISTORY_FILE} is not JSON`, { cause });
    }
  }
}
