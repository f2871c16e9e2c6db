/**
 * Goal: whatever goes wrong between several authorities, their store and their callers, nobody is told anything that is
 * not so: what was acknowledged is committed, what was refused is not, a wish that is repeated is granted once, no
 * invariant is ever broken; and when nothing goes wrong any more, every view shows the log and all work comes to its end.
 * Method: three authorities with all their background work, workers, requesters, approvers and operators in one process
 * and in virtual time, everything drawn from a seed: a phase with faults, one without, then the judges, who know the
 * complete history of the log and everything that anybody was told.
 *
 * MANDATE_SEED=<seed> begins there, MANDATE_SEEDS=<number> runs so many; by default as many as half a minute allows.
 */
import { describe, expect, it } from "vitest";
import { readHistory } from "./history.ts";
import type { Wish } from "./ledger.ts";
import { judgeHistory } from "./judge-history.ts";
import { judgeWishes } from "./judge-wishes.ts";
import { simulate } from "./simulate.ts";

const firstSeed = Number(process.env["MANDATE_SEED"] ?? 1);
const asked = process.env["MANDATE_SEEDS"] ?? (process.env["MANDATE_SEED"] === undefined ? undefined : "1");
const seeds = Number(asked ?? 60);
/** A slow machine runs fewer, ms. */
const BUDGET_MS = asked === undefined ? 18_000 : Number.POSITIVE_INFINITY;
/** However slow it is. */
const SEEDS_MIN = 5;

describe("simulated authorities", () => {
  it("tell nobody what is not so, under every fault, and bring all work to its end afterwards", async () => {
    const startedAt = performance.now();
    let commits = 0;
    let tries = 0;
    let run = 0;
    for (; run < seeds; run++) {
      if (run >= SEEDS_MIN && performance.now() - startedAt > BUDGET_MS) break;
      const seed = firstSeed + run;
      const report = await simulate(seed);
      const again = `MANDATE_SEED=${seed} npx vitest run test/simulation`;
      expect(report.faults, `seed ${seed}; run it again with ${again}`).toEqual([]);
      commits += report.commits;
      tries += report.tries;
    }
    console.info(`simulated ${run} seeds from ${firstSeed} on: ${tries} calls, ${commits} commits`);
  }, 3_600_000);

  it("do the same again for the same seed", async () => {
    const [first, second, other] = [
      await simulate(firstSeed),
      await simulate(firstSeed),
      await simulate(firstSeed + 1),
    ];
    expect(second).toEqual(first);
    expect(other.hash).not.toBe(first.hash);
  });
});

describe("the judge", () => {
  it("misses what was acknowledged and is not committed", () => {
    const wish: Wish = {
      mark: "m0",
      name: "retry",
      arguments: {},
      workloadId: "workload_x",
      repeatable: true,
      tries: [{ nodeId: "node-0", startedAt: 0, endedAt: 1, heard: { kind: "answered", answer: { state: "READY" } } }],
    };
    const empty = readHistory([]);
    expect(judgeHistory(empty)).toEqual([]);
    expect(judgeWishes([wish], empty)).toEqual([expect.stringContaining("the workload does not exist")]);
  });
});
