import { fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleSimulation } from "./bundle.ts";
import type { Mutant, ScriptName } from "./mutant.ts";
import type { Finding } from "./simulate-seeds.ts";

/** What became of a mutant in the simulation. */
export type Outcome =
  | Finding
  /** It was not through in time: nobody judged it. */
  | { readonly kind: "hung" }
  /** The process ended without a word, with what it wrote. */
  | { readonly kind: "died"; readonly output: string };

/** How a mutant is simulated. */
interface Simulating {
  readonly seeds: number;
  readonly timeoutMs: number;
  readonly script?: ScriptName | undefined;
}

/** Longest text of a dead process that is told. */
const OUTPUT_LENGTH_MAX = 2000;

function simulateIn(program: string, how: Simulating): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = fork(program, [String(how.seeds), how.script ?? "usual"], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    let outcome: Outcome | undefined;
    let output = "";
    const timer = setTimeout(() => {
      outcome ??= { kind: "hung" };
      child.kill("SIGKILL");
    }, how.timeoutMs);
    child.on("message", (finding) => (outcome = finding as Finding));
    child.stderr?.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("error", reject);
    child.once("close", () => {
      clearTimeout(timer);
      resolve(outcome ?? { kind: "died", output: output.slice(-OUTPUT_LENGTH_MAX) });
    });
  });
}

/**
 * Simulates a mutant in a process of its own, seed by seed, until a judge names a fault. Without edits: the product as
 * it is, on the very same way.
 *
 * @throws RangeError when an edit does not fit the source.
 */
export async function simulateMutant(mutant: Pick<Mutant, "edits">, how: Simulating): Promise<Outcome> {
  const directory = await mkdtemp(join(tmpdir(), "mandate-mutant-"));
  try {
    return await simulateIn(await bundleSimulation(mutant, directory), how);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
