// Prepares `.cache/prebuilt`, which the Dockerfile's target `prebuilt` is made of: the program compiled from this
// checkout's sources, and those of its installed packages that it needs to run. Needs `npm ci` to have run, no network.
import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const cache = join(root, ".cache");
const place = join(cache, "prebuilt");

await mkdir(cache, { recursive: true });
// In a folder of its own and renamed at the end: a build never sees half of it.
const staged = await mkdtemp(join(cache, "prebuilt-"));
try {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const compiled = spawnSync(
    process.execPath,
    [compiler, "-p", join(root, "tsconfig.build.json"), "--outDir", join(staged, "dist")],
    { stdio: "inherit" },
  );
  if (compiled.status !== 0) throw new Error("the sources do not compile");
  const { packages } = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  const needed = Object.entries(packages).filter(
    ([path, entry]) => path !== "" && entry.dev !== true && entry.devOptional !== true && existsSync(join(root, path)),
  );
  for (const [path] of needed) {
    const nested = join(root, path, "node_modules");
    await cp(join(root, path), join(staged, path), { recursive: true, filter: (source) => source !== nested });
  }
  await rm(place, { recursive: true, force: true });
  await rename(staged, place);
} finally {
  await rm(staged, { recursive: true, force: true });
}
