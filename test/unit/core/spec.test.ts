/**
 * Goal: SPEC.md says what the code does.
 * Method: its tables are read and compared with the transition table, the event types and the invariants, both ways.
 */
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { recordInvariants, successionInvariants } from "../../../src/core/workload/invariants.ts";
import { recordChecks } from "../../../src/core/workload/invariants-of-record.ts";
import { successionChecks } from "../../../src/core/workload/invariants-of-succession.ts";
import { eventTypes, transitions, workloadStates } from "../../../src/core/workload/states.ts";
import { repository, tableUnder } from "../spec-text.ts";

describe("SPEC.md", () => {
  it("lists every state once, in the order of the code", () => {
    const states = tableUnder("| state | meaning | who waits for whom |").map(([state]) => state);
    expect(states).toEqual(workloadStates);
  });

  it("has the transition table of the code", () => {
    const rows = tableUnder("| from | may go to |");
    expect(rows).toEqual(
      workloadStates.map((state) => [state, transitions[state].length === 0 ? "none" : transitions[state].join(", ")]),
    );
  });

  it("has the event types of the code", () => {
    expect(tableUnder("| to | event |")).toEqual(workloadStates.map((state) => [state, `\`${eventTypes[state]}\``]));
  });

  it("has the invariants of the code, each with a test that exists", () => {
    const rows = tableUnder("| | what holds | enforced by |");
    expect(rows.map(([name, sentence]) => [name, sentence])).toEqual(
      Object.entries({ ...recordInvariants, ...successionInvariants }),
    );
    for (const [, , file] of rows) expect([file, existsSync(new URL(file ?? "", repository))]).toEqual([file, true]);
  });

  it("is about invariants that are all checked", () => {
    expect(Object.keys(recordChecks)).toEqual(Object.keys(recordInvariants));
    expect(Object.keys(successionChecks)).toEqual(Object.keys(successionInvariants));
  });
});
