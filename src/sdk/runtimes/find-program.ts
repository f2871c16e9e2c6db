import { accessSync, constants, statSync } from "node:fs";
import { delimiter, resolve } from "node:path";

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Where a command's program is, as the system looks for it; `undefined` when there is none that may be started. */
export function findProgram(
  command: string,
  where: { readonly path?: string | undefined; readonly cwd?: string | undefined },
): string | undefined {
  const { cwd = ".", path = "/usr/bin:/bin" } = where;
  const folders = command.includes("/") ? [""] : path.split(delimiter);
  return folders.map((folder) => resolve(cwd, folder, command)).find(isProgram);
}
