/**
 * The program of a child process: simulates seeds until a judge names a fault, and tells its parent what came of it. It
 * is bundled with the source of a mutant, or with the source as it is.
 */
import { registryScript } from "../simulation/registry-script.ts";
import { simulate } from "../simulation/simulate.ts";

import type { ScriptName } from "./mutant.ts";

/** What a run of seeds came to. */
export type Finding =
  /** A judge named a fault. */
  | { readonly kind: "caught"; readonly seed: number; readonly fault: string }
  /** The product, or the simulation on it, ended in exceptions alone: no judge found a rule broken. */
  | { readonly kind: "crashed"; readonly seed: number; readonly cause: string }
  | { readonly kind: "clean" };

/** What the judge says of a call that ended in an exception. */
const CRASH = "it met a bug";

async function simulateSeeds(count: number, script: ScriptName): Promise<Finding> {
  for (let seed = 1; seed <= count; seed++) {
    try {
      const { faults } = await (script === "registry" ? simulate(seed, registryScript()) : simulate(seed));
      const [fault, crash] = [faults.find((text) => !text.includes(CRASH)), faults[0]];
      if (fault !== undefined) return { kind: "caught", seed, fault };
      if (crash !== undefined) return { kind: "crashed", seed, cause: crash };
    } catch (thrown) {
      const cause = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
      return { kind: "crashed", seed, cause };
    }
  }
  return { kind: "clean" };
}

// A parent that is gone takes this process with it.
process.once("disconnect", () => process.exit(1));
const finding = await simulateSeeds(Number(process.argv[2]), process.argv[3] === "registry" ? "registry" : "usual");
process.send?.(finding, () => process.exit(0));
