import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { projectRoot } from "../cluster/project-root.ts";

const compiledRoot = (): string => join(projectRoot(), ".cache", "bench");

/**
 * Compiles everything that is measured, and what measures it. A loader that compiles on the way wraps every function
 * that is made at run time, which costs the product and the floor alike.
 */
export function compileAll(): void {
  const root = projectRoot();
  const compiler = join(dirname(createRequire(join(root, "package.json")).resolve("typescript/package.json")), "bin");
  execFileSync(process.execPath, [join(compiler, "tsc"), "-p", join(root, "bench", "tsconfig.json")], {
    cwd: root,
    stdio: "inherit",
  });
}

/** The compiled form of a source file, named from the project's root without its ending. */
export const compiledProgram = (name: string): string => join(compiledRoot(), `${name}.js`);

/** Node's flags for a profile in a folder; none without one. */
export const profileFlags = (folder: string | undefined): readonly string[] =>
  folder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${folder}`];
