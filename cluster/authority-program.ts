import { existsSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ClusterError } from "./cluster-error.ts";
import { projectRoot } from "./project-root.ts";

/** Node's arguments that run the product's command line. */
export interface AuthorityProgram {
  readonly program: string;
  readonly arguments: readonly string[];
}

function newestChange(folder: string): number {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((newest, { parentPath, name }) => Math.max(newest, statSync(join(parentPath, name)).mtimeMs), 0);
}

/**
 * How to run `mandate` as a process: the built program when this code itself is the built one, or when the build is
 * newer than every source; else the source through tsx. A stale build is never taken for the source.
 *
 * @throws ClusterError `PROGRAM_MISSING` when there is neither.
 */
export function authorityProgram(): AuthorityProgram {
  const root = projectRoot();
  const built = join(root, "dist", "src", "main.js");
  const source = join(root, "src", "main.ts");
  const runsFromSource = import.meta.filename.endsWith(".ts");
  const stale =
    runsFromSource &&
    existsSync(source) &&
    existsSync(built) &&
    newestChange(join(root, "src")) > statSync(built).mtimeMs;
  if (existsSync(built) && !stale) return { program: process.execPath, arguments: [built] };
  if (!existsSync(source))
    throw new ClusterError("PROGRAM_MISSING", `neither ${built} nor ${source} exists; run npm run build`);
  const loader = createRequire(join(root, "package.json")).resolve("tsx");
  return { program: process.execPath, arguments: ["--import", pathToFileURL(loader).href, source] };
}
