import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { CallLine, FaultLine, HistoryLine, Outcome, WorkLine } from "./history.ts";
import type { RunClock } from "./run-clock.ts";

/** The first half of a call's line: a process that dies while it waits leaves this half, and the call's outcome is unknown. */
export interface BeginLine extends Omit<CallLine, "line" | "id" | "endedAt" | "outcome"> {
  readonly line: "begin";
  /** Joins it to its {@link FinishLine}; unique within one file. */
  readonly key: string;
}

export interface FinishLine {
  readonly line: "finish";
  readonly key: string;
  readonly endedAt: number;
  readonly outcome: Outcome;
}

/** What one process writes while the run goes on; {@link mergeParts} makes the history of it. */
export type PartLine = Exclude<HistoryLine, CallLine> | BeginLine | FinishLine;

/** What is known of a call before it is made. */
export type Begun = Omit<BeginLine, "line" | "key" | "startedAt">;

/**
 * Appends what a process sees to a file of its own. Each line is handed to the system before the call returns, so that
 * nothing is lost when the process is killed.
 */
export class Recorder {
  readonly clock: RunClock;
  readonly #file: number;
  #calls = 0;

  constructor(file: string, clock: RunClock) {
    mkdirSync(dirname(file), { recursive: true });
    this.#file = openSync(file, "a");
    this.clock = clock;
  }

  write(line: PartLine): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  /** A call begins; the answer notes how it ended, and is used once. */
  begin(call: Begun): (outcome: Outcome) => void {
    const key = `${process.pid}.${++this.#calls}`;
    this.write({ line: "begin", key, startedAt: this.clock.now(), ...call });
    let open = true;
    return (outcome) => {
      if (open) this.write({ line: "finish", key, endedAt: this.clock.now(), outcome });
      open = false;
    };
  }

  work(seen: Omit<WorkLine, "line" | "at">): void {
    this.write({ line: "work", at: this.clock.now(), ...seen });
  }

  fault(made: Omit<FaultLine, "line" | "at">): void {
    this.write({ line: "fault", at: this.clock.now(), ...made });
  }

  close(): void {
    closeSync(this.#file);
  }
}
