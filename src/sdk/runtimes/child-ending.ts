import { parseJsonBytes } from "../../wire/json-text.ts";
import { WorkloadFailure } from "../workload-failure.ts";
import type { GroupExit } from "./process-group.ts";

/** How much of what a program said stands in an error text; the authority keeps 4,096 characters of it. */
const SAID_LENGTH_MAX = 3_500;

/** The failure of a program that did not end with exit code 0: how it ended, and the end of what it said. */
export function exitFailure({ code, signal }: GroupExit, said: string): WorkloadFailure {
  const how = signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
  const text = said.trim();
  const tail = text.length <= SAID_LENGTH_MAX ? text : `…${text.slice(-SAID_LENGTH_MAX)}`.toWellFormed();
  const message = tail === "" ? `${how} and wrote nothing to standard error` : `${how}; standard error:\n${tail}`;
  return new WorkloadFailure(signal === null ? "exit_code" : "killed", message);
}

/**
 * What a program printed, as one JSON value.
 *
 * @throws WorkloadFailure of the kind `output_invalid`.
 */
export function outputOf(bytes: Buffer): unknown {
  if (bytes.toString("latin1").trim() === "")
    throw new WorkloadFailure("output_invalid", "it printed nothing; a program that has nothing to say prints null");
  const parsed = parseJsonBytes(bytes);
  if (parsed.ok) return parsed.value;
  const why = parsed.error.message.replace("the body", "its standard output");
  throw new WorkloadFailure("output_invalid", `${why}; it must be one JSON value`);
}
