/**
 * Goal: the simulation and its judges notice a broken product: a harness that has never failed proves nothing.
 * Method: each mutant of the list is built from the source with its edits made, in memory, and simulated in a process of
 * its own, seed after seed, until a judge names a fault. A crash or a hang is none. The source as it is goes the same way
 * and must be found sound; judges take the product's rules from copies that no mutant touches.
 */
import { afterAll, describe, it } from "vitest";
import type { Edit } from "./mutant.ts";
import { simulateMutant } from "./simulate-mutant.ts";
import { simulationMutants } from "./simulation-mutants.ts";

/** On a busy machine a seed takes seconds. */
const TIMEOUT_MS = 600_000;
/** More than most mutants need. */
const SOUND_SEEDS = 25;

/** Every node does this when it is born. */
const bornWith = (statement: string): Edit => ({
  file: "src/authority/authority.ts",
  find: "    this.shards = options.store.shards.length;\n",
  replace: `    this.shards = options.store.shards.length;\n    ${statement}\n`,
});

describe.concurrent("the simulation", () => {
  let caught = 0;
  const lines: string[] = [];
  afterAll(() => {
    console.info([...lines.sort(), `mutants caught: ${caught} of ${simulationMutants.length}`].join("\n"));
  });

  it.for(simulationMutants.map((mutant) => [mutant.name, mutant] as const))(
    "catches the mutant %s",
    async ([name, mutant], { expect }) => {
      const { seeds, script } = mutant;
      const outcome = await simulateMutant(mutant, { seeds, script, timeoutMs: TIMEOUT_MS });
      expect(outcome.kind, JSON.stringify(outcome)).toBe("caught");
      if (outcome.kind !== "caught") return;
      caught += 1;
      lines.push(`${name}: seed ${outcome.seed}, ${outcome.fault.slice(0, 200)}`);
    },
  );

  it.for(["usual", "registry"] as const)(
    "finds nothing wrong with the product as it is, on the same way (%s)",
    async (script, { expect }) => {
      const how = { seeds: SOUND_SEEDS, script, timeoutMs: TIMEOUT_MS };
      expect(await simulateMutant({ edits: [] }, how)).toEqual({ kind: "clean" });
    },
  );

  it("does not take a product that crashes for one that a judge has caught", async ({ expect }) => {
    const mutant = { edits: [bornWith(`throw new RangeError("broken on purpose");`)] };
    const outcome = await simulateMutant(mutant, { seeds: 1, timeoutMs: TIMEOUT_MS });
    expect(outcome).toMatchObject({ kind: "crashed", seed: 1 });
  });

  it("ends a product that hangs", async ({ expect }) => {
    const mutant = { edits: [bornWith("for (;;) {}")] };
    expect(await simulateMutant(mutant, { seeds: 1, timeoutMs: 5000 })).toEqual({ kind: "hung" });
  });
});
