/**
 * Goal: SPEC.md says of workers what the code does.
 * Method: its tables are read and compared with the lifecycles, the table of moves, the invariants and the reasons, both ways.
 */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  workerChecks,
  workerInvariants,
  workerSuccessionChecks,
  workerSuccessionInvariants,
} from "../../../src/core/worker/invariants.ts";
import { workerMoves } from "../../../src/core/worker/lifecycle.ts";
import { workerLifecycles } from "../../../src/core/worker/record.ts";
import { repository, tableUnder } from "../spec-text.ts";

const sourceOf = (path: string): string => readFileSync(new URL(path, repository), "utf8");

describe("SPEC.md on workers", () => {
  it("lists every lifecycle once, in the order of the code", () => {
    const lifecycles = tableUnder("| lifecycle | meaning | how it is kept |").map(([lifecycle]) => lifecycle);
    expect(lifecycles).toEqual(workerLifecycles);
  });

  it("has the table of moves of the code", () => {
    expect(tableUnder("| lifecycle | may go to |")).toEqual(
      workerLifecycles.map((lifecycle) => [lifecycle, workerMoves[lifecycle].join(", ")]),
    );
  });

  it("has the invariants of the code, each with a test that exists and a check", () => {
    const rows = tableUnder("| | what holds of workers | enforced by |");
    expect(rows.map(([name, sentence]) => [name, sentence])).toEqual(
      Object.entries({ ...workerInvariants, ...workerSuccessionInvariants }),
    );
    for (const [, , file] of rows) expect([file, existsSync(new URL(file ?? "", repository))]).toEqual([file, true]);
    expect(Object.keys({ ...workerChecks, ...workerSuccessionChecks })).toEqual(rows.map(([name]) => name));
  });

  it("names the reasons of ineligibility in the order in which they are declared", () => {
    const declared = [...sourceOf("src/core/worker/eligibility.ts").matchAll(/\| \{ readonly reason: "(\w+)"/g)];
    const told = /`scope`, [^.]*\./.exec(sourceOf("SPEC.md"))?.[0] ?? "";
    expect(told.match(/\w+(?=`)/g)).toEqual(declared.map(([, reason]) => reason));
  });
});
