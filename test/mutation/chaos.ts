/**
 * `npm run chaos:mutants`: breaks the product in one way after the other, makes a short chaos run of each, and expects the
 * judge to report it. Exit code 0 when every mutant was caught. Names as arguments: those alone.
 *
 * Each mutant is a folder of its own with copies of the sources; the harness runs from there, so that nodes and workers
 * are the mutant's. What judges a run shares no rule with the product.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Verdict } from "../../chaos/history.ts";
import { chaosMutants } from "./chaos-mutants.ts";
import { mutatedFiles, root, type ChaosMutant } from "./mutant.ts";

/** How long a run may take beside its minutes: it starts, settles and judges, ms. */
const ALLOWANCE_MS = 240_000;
const copied = ["src", "cluster", "chaos", "package.json", "tsconfig.json", "tsconfig.build.json"] as const;
const shared = ["node_modules", ".cache"] as const;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** The run under way; a signal is passed on to it, so that it ends in good order. */
let running: ChildProcess | undefined;
const halt = { stopped: false };
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    halt.stopped = true;
    running?.kill(signal);
  });

/** Runs node in a folder until it ends, whatever it has to say; answers that. */
function run(directory: string, args: readonly string[], timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: directory, stdio: ["ignore", "pipe", "pipe"] });
    running = child;
    let output = "";
    const take = (chunk: Buffer): void => void (output += chunk.toString());
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const timer = setTimeout(() => child.kill("SIGTERM"), timeoutMs);
    child.once("error", reject);
    child.once("close", () => {
      clearTimeout(timer);
      resolve(output);
    });
  });
}

/** A copy of the product with the mutant in it, compiled as a release is. */
async function makeCopy(mutant: ChaosMutant, directory: string): Promise<void> {
  await mkdir(join(root, ".cache"), { recursive: true });
  for (const name of copied) await cp(join(root, name), join(directory, name), { recursive: true });
  for (const name of shared) await symlink(join(root, name), join(directory, name));
  for (const [file, text] of mutatedFiles(mutant)) await writeFile(join(directory, file), text);
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  // What a mutant no longer uses is an error to the compiler, which writes the program all the same.
  await run(directory, [compiler, "-p", "tsconfig.build.json", "--noEmitOnError", "false"], ALLOWANCE_MS);
}

/** How many seeds are tried, the mutant's own first: faults fall differently each time, and a busy machine may not even get a node ready. */
const SEEDS_MAX = 3;

/** A run of the mutant's copy: its verdicts, or what it said instead. */
async function runChaos(
  { scenario, minutes }: ChaosMutant,
  directory: string,
  { seed, out }: { readonly seed: number; readonly out: string },
): Promise<readonly Verdict[] | string> {
  const plan = ["--scenario", scenario, "--seed", String(seed), "--minutes", String(minutes), "--out", out];
  const output = await run(
    directory,
    ["--import", "tsx", join("chaos", "main.ts"), ...plan],
    minutes * 60_000 + ALLOWANCE_MS,
  );
  try {
    return JSON.parse(await readFile(join(out, "verdicts.json"), "utf8")) as readonly Verdict[];
  } catch {
    return output.slice(-2_000);
  }
}

/** What kept a run from catching the mutant; nothing when it did. */
function findEscape({ name, foundBy }: ChaosMutant, verdicts: readonly Verdict[] | string): string | undefined {
  if (typeof verdicts === "string") return `the run was not judged:\n${verdicts}`;
  const broken = verdicts.filter(({ violations }) => violations.length > 0);
  const counts = broken.map(({ validator, violations }) => `${validator} ${violations.length}`).join(", ");
  const named = broken.find(({ validator }) => foundBy.includes(validator));
  if (named === undefined) return `none of ${foundBy.join(", ")} reports it (violations: ${counts || "none"})`;
  say(`caught   ${name}: ${counts}\n         ${named.violations[0]?.message.slice(0, 300) ?? ""}`);
  return undefined;
}

async function tryMutant(mutant: ChaosMutant): Promise<boolean> {
  const directory = await mkdtemp(join(tmpdir(), "mandate-mutant-"));
  try {
    await makeCopy(mutant, directory);
    for (let tries = 0; tries < SEEDS_MAX && !halt.stopped; tries++) {
      const seed = mutant.seed + tries;
      const escape = findEscape(
        mutant,
        await runChaos(mutant, directory, { seed, out: join(directory, `seed-${seed}`) }),
      );
      if (escape === undefined) return true;
      say(`${tries + 1 < SEEDS_MAX ? "at large" : "SURVIVED"} ${mutant.name}, seed ${seed}: ${escape}`);
    }
    return false;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const wanted = process.argv.slice(2);
const chosen = chaosMutants.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
let caught = 0;
for (const mutant of chosen) if (!halt.stopped && (await tryMutant(mutant))) caught += 1;
say(`chaos mutants caught: ${caught} of ${chosen.length}`);
process.exitCode = caught === chosen.length && chosen.length > 0 ? 0 : 1;
