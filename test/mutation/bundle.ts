import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { build, type Plugin } from "vite";
import { mutatedFiles, root, type Mutant } from "./mutant.ts";

/** Marks a module of the product that stays as it is. */
const SOUND = "?sound";
/** Whoever judges, and whoever says what work there is: none of them may believe a broken rule. */
const judging = /\/test\/simulation\/(?:judge-[a-z]+|simulate|history|effects|ledger|plan)\.ts$/;

/**
 * Puts the mutant's text in the place of the source's. Judges get the product's rules from copies that are left as they
 * are: a rule that is broken for both sides would pass for right.
 */
function mutating(mutant: Pick<Mutant, "edits">): Plugin {
  const changed = mutatedFiles(mutant);
  const sources = join(root, "src");
  return {
    name: "mutating",
    enforce: "pre",
    async resolveId(source, importer, options) {
      const sound = importer !== undefined && (importer.endsWith(SOUND) || judging.test(importer));
      if (!sound || !source.startsWith(".")) return null;
      const resolved = await this.resolve(source, importer.replace(SOUND, ""), { ...options, skipSelf: true });
      return resolved?.id.startsWith(sources) === true ? `${resolved.id}${SOUND}` : null;
    },
    async load(id) {
      if (id.endsWith(SOUND)) return readFile(id.slice(0, -SOUND.length), "utf8");
      return changed.get(relative(root, id)) ?? null;
    },
  };
}

/**
 * Bundles the program that simulates seeds with a mutant's source; answers the program's file.
 *
 * @throws RangeError when the mutant's edits no longer fit the source.
 */
export async function bundleSimulation(mutant: Pick<Mutant, "edits">, directory: string): Promise<string> {
  await build({
    configFile: false,
    root,
    logLevel: "error",
    plugins: [mutating(mutant)],
    ssr: { noExternal: true },
    build: {
      ssr: join(root, "test", "mutation", "simulate-seeds.ts"),
      outDir: directory,
      emptyOutDir: false,
      minify: false,
      target: "node20",
      rolldownOptions: { output: { entryFileNames: "simulate-seeds.mjs" } },
    },
  });
  return join(directory, "simulate-seeds.mjs");
}
