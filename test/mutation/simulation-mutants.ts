import { commitMutants } from "./commit-mutants.ts";
import type { SimulationMutant } from "./mutant.ts";
import { registryMutants } from "./registry-mutants.ts";
import { ruleMutants } from "./rule-mutants.ts";

/** Mutants that the simulation of several authorities has to catch. */
export const simulationMutants: readonly SimulationMutant[] = [...commitMutants, ...ruleMutants, ...registryMutants];
