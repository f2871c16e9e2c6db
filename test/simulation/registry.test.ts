/**
 * Goal: whatever goes wrong between several authorities, their store and the workers of the registry, no worker and no pool
 * ever has more claims than it has room for, a slot is held exactly while its claim is current, nobody is given what he
 * may not run, and when nothing goes wrong any more all work comes to its end.
 * Method: as in authority.test.ts, with workers that share few names: many processes ask in one name through all nodes,
 * replace each other, are drained, recovered and removed, and change what they have room for; the complete log is judged.
 *
 * MANDATE_SEED=<seed> begins there, MANDATE_SEEDS=<number> runs so many.
 */
import { describe, expect, it } from "vitest";
import { registryScript } from "./registry-script.ts";
import { simulate } from "./simulate.ts";

const firstSeed = Number(process.env["MANDATE_SEED"] ?? 1);
const asked = process.env["MANDATE_SEEDS"] ?? (process.env["MANDATE_SEED"] === undefined ? undefined : "1");
const seeds = Number(asked ?? 30);
/** A slow machine runs fewer, ms. */
const BUDGET_MS = asked === undefined ? 9_000 : Number.POSITIVE_INFINITY;
/** However slow it is. */
const SEEDS_MIN = 4;

describe("simulated authorities with workers of the registry", () => {
  it("never give a worker or a pool more than it has room for, nor anybody what he may not run", async () => {
    const startedAt = performance.now();
    let taken = 0;
    let run = 0;
    for (; run < seeds; run++) {
      if (run >= SEEDS_MIN && performance.now() - startedAt > BUDGET_MS) break;
      const seed = firstSeed + run;
      const report = await simulate(
        seed,
        registryScript((count) => (taken += count)),
      );
      const again = `MANDATE_SEED=${seed} npx vitest run test/simulation/registry.test.ts`;
      expect(report.faults, `seed ${seed}; run it again with ${again}`).toEqual([]);
    }
    expect(taken).toBeGreaterThan(run);
    console.info(`simulated ${run} seeds from ${firstSeed} on: ${taken} slots taken`);
  }, 3_600_000);
});
