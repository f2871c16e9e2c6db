import { readFileSync } from "node:fs";
import { join } from "node:path";

/** One place of the source, and what is put there. */
export interface Edit {
  /** From the project's root. */
  readonly file: string;
  /** The text that is taken away: it must stand there exactly once. */
  readonly find: string;
  readonly replace: string;
}

/** The product, broken on purpose. */
export interface Mutant {
  /** In kebab case; no two have the same. */
  readonly name: string;
  /** What is broken, as a sentence. */
  readonly broken: string;
  /** The rule that is broken, by its number in the contract. */
  readonly rule: string;
  readonly edits: readonly Edit[];
}

/** A mutant that the simulation has to catch. */
export interface SimulationMutant extends Mutant {
  /** Within so many seeds, from 1 on, a judge must name a fault. */
  readonly seeds: number;
  /** Who acts: by default workers that are not in the registry. */
  readonly script?: ScriptName;
}

/** The scripts that a simulation may follow. */
export type ScriptName = "usual" | "registry";

/** A mutant that shows only in real processes, in one short run. */
export interface ChaosMutant extends Mutant {
  /** Validators, of which one at least must report a violation. */
  readonly foundBy: readonly string[];
  readonly scenario: string;
  readonly seed: number;
  readonly minutes: number;
}

/** The folder of the project, whose `src/` the mutants are made of. */
export const root = join(import.meta.dirname, "..", "..");

/**
 * A text with an edit made.
 *
 * @throws RangeError when what it takes away does not stand there exactly once: the list has to follow the source.
 */
export function applyEdit(text: string, { file, find, replace }: Edit): string {
  const [before, after, ...more] = text.split(find);
  if (before === undefined || after === undefined || more.length > 0)
    throw new RangeError(`what is to be replaced stands ${text.split(find).length - 1} times in ${file}:\n${find}`);
  return before + replace + after;
}

/**
 * Every file that a mutant changes, by its path from the root, with its text afterwards.
 *
 * @throws RangeError see {@link applyEdit}.
 */
export function mutatedFiles({ edits }: Pick<Mutant, "edits">): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const edit of edits)
    files.set(edit.file, applyEdit(files.get(edit.file) ?? readFileSync(join(root, edit.file), "utf8"), edit));
  return files;
}
