import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { ClusterError } from "./cluster-error.ts";

/**
 * The folder of the package itself: the nearest one upwards with a package.json. It is the same whether this file runs
 * from source or from `dist`.
 *
 * @throws ClusterError `PROGRAM_MISSING` when there is none.
 */
export function projectRoot(): string {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (dirname(folder) === folder)
      throw new ClusterError("PROGRAM_MISSING", `no package.json above ${import.meta.dirname}`);
  }
}
