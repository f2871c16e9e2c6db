import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, chmod, copyFile, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import type { Log } from "../src/base/log.ts";
import { silentLog } from "../src/base/log.ts";
import { ClusterError, problemText } from "./cluster-error.ts";
import { fetchDebianPackage } from "./nats-server-debian.ts";
import { fetchRelease } from "./nats-server-release.ts";
import { projectRoot } from "./project-root.ts";

const run = promisify(execFile);

/**
 * The version that is fetched, and the oldest that is taken: several preconditions in one atomic batch are broken in
 * releases shortly before it.
 */
export const NATS_SERVER_VERSION = "2.15.1";

const SCRATCH_PREFIX = ".fetch-";
const SCRATCH_AGE_MAX_MS = 3_600_000;

type Attempt = { readonly where: string; readonly problem: string };

const versionParts = (version: string): number[] => version.split(".").map(Number);

/** `true` when a version `a.b.c` is the pinned one or newer. */
export function isNewEnough(version: string): boolean {
  const least = versionParts(NATS_SERVER_VERSION);
  const differing = versionParts(version)
    .map((part, index) => part - (least[index] ?? 0))
    .find((part) => part !== 0);
  return (differing ?? 0) >= 0;
}

/** Asks a program for its version; answers what is wrong with it when it can't be used. */
async function inspect(file: string): Promise<{ readonly version: string } | { readonly problem: string }> {
  try {
    const { stdout } = await run(file, ["--version"], { timeout: 10_000 });
    const version = /v(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
    if (version === undefined) return { problem: "says no version" };
    return isNewEnough(version)
      ? { version }
      : { problem: `is version ${version}, needed is ≥ ${NATS_SERVER_VERSION}` };
  } catch (thrown) {
    return { problem: problemText(thrown) };
  }
}

const exists = (file: string, mode = constants.X_OK): Promise<boolean> =>
  access(file, mode).then(
    () => true,
    () => false,
  );

async function firstUsable(files: readonly string[], attempts: Attempt[]): Promise<string | undefined> {
  for (const file of files) {
    if (!(await exists(file))) continue;
    const found = await inspect(file);
    if ("version" in found) return file;
    attempts.push({ where: file, problem: found.problem });
  }
  return undefined;
}

/** The cached programs of a folder, the pinned version first. */
async function cached(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  const pinned = `nats-server-${NATS_SERVER_VERSION}`;
  const others = names
    .filter((name) => name.startsWith("nats-server-") && name !== pinned)
    .toSorted()
    .toReversed();
  return [pinned, ...others].map((name) => join(folder, name, "nats-server"));
}

async function writableCache(folders: readonly string[]): Promise<string> {
  const problems: string[] = [];
  for (const folder of folders) {
    try {
      await mkdir(folder, { recursive: true });
      await access(folder, constants.W_OK);
      return folder;
    } catch (thrown) {
      problems.push(problemText(thrown));
    }
  }
  throw new ClusterError("NATS_SERVER_UNAVAILABLE", `no folder to keep nats-server in: ${problems.join("; ")}`);
}

/**
 * Puts a fetched program in its place. Everything happens in a folder of this call's own and is renamed at the end, so
 * that several processes that fetch at once never see half a program; whoever comes second uses the first one's.
 */
async function settle(program: string, cache: string, scratch: string): Promise<string> {
  const staged = join(scratch, "staged");
  await mkdir(staged);
  await copyFile(program, join(staged, "nats-server"));
  await chmod(join(staged, "nats-server"), 0o755);
  const found = await inspect(join(staged, "nats-server"));
  if ("problem" in found) throw new ClusterError("NATS_SERVER_REFUSED", `the fetched program ${found.problem}`);
  const place = join(cache, `nats-server-${found.version}`);
  try {
    await rename(staged, place);
  } catch (thrown) {
    if ("version" in (await inspect(join(place, "nats-server")))) return join(place, "nats-server");
    // What stands there is no usable program: the remains of something that was interrupted.
    await rm(place, { recursive: true, force: true });
    await rename(staged, place).catch(() => {
      throw thrown;
    });
  }
  return join(place, "nats-server");
}

/** Removes what fetches left that were interrupted long ago; a fetch of another process that is under way stays. */
async function sweep(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    if (!name.startsWith(SCRATCH_PREFIX)) continue;
    const age = Date.now() - ((await stat(join(cache, name)).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (age > SCRATCH_AGE_MAX_MS) await rm(join(cache, name), { recursive: true, force: true });
  }
}

async function fetchInto(cache: string, log: Log, attempts: Attempt[]): Promise<string | undefined> {
  const ways = [
    {
      where: "the official release",
      way: (folder: string) => fetchRelease(NATS_SERVER_VERSION, folder),
    },
    { where: "Debian's package", way: fetchDebianPackage },
  ];
  await sweep(cache);
  for (const { where, way } of ways) {
    const scratch = await mkdtemp(join(cache, SCRATCH_PREFIX));
    try {
      log.info({ version: NATS_SERVER_VERSION }, `fetching nats-server from ${where}`);
      return await settle(await way(scratch), cache, scratch);
    } catch (thrown) {
      attempts.push({
        where,
        problem: problemText(thrown).split("\n").slice(0, 4).join(" ").slice(0, 600),
      });
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }
  return undefined;
}

async function search(log: Log): Promise<string> {
  const attempts: Attempt[] = [];
  const named = process.env["NATS_SERVER"] ?? "";
  if (named !== "") {
    const found = await inspect(named);
    if ("version" in found) return named;
    throw new ClusterError("NATS_SERVER_UNAVAILABLE", `NATS_SERVER=${named}: ${found.problem}`, {
      details: { attempts: [{ where: named, problem: found.problem }] },
    });
  }
  const onPath = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const caches = [join(projectRoot(), ".cache"), join(homedir(), ".cache", "mandate")];
  const candidates = [
    ...onPath.map((folder) => join(folder, "nats-server")),
    ...(await Promise.all(caches.map(cached))).flat(),
  ];
  const local = await firstUsable(candidates, attempts);
  if (local !== undefined) return local;
  const fetched = await fetchInto(await writableCache(caches), log, attempts);
  if (fetched !== undefined) return fetched;
  const tried = attempts.map(({ where, problem }) => `\n  ${where}: ${problem}`).join("");
  throw new ClusterError(
    "NATS_SERVER_UNAVAILABLE",
    `nats-server ≥ ${NATS_SERVER_VERSION} is not on PATH and could not be fetched.${tried}\n` +
      "Install it (https://github.com/nats-io/nats-server/releases) and put it on PATH, or name it in NATS_SERVER.",
    { details: { attempts } },
  );
}

let found: Promise<string> | undefined;

/**
 * The path of a nats-server that is new enough ({@link NATS_SERVER_VERSION}): the one that `NATS_SERVER` names (which
 * must then do), else the first good one on PATH, in `.cache/` of the project or in `~/.cache/mandate/`, else one that
 * is fetched into the first of those two folders that can be written: from the official release, or on Debian as its
 * package. Answered once a process; a failure is not remembered. Safe in several processes at once.
 *
 * @throws ClusterError `NATS_SERVER_UNAVAILABLE`, whose message says what was tried and what to do.
 */
export function findNatsServer(options: { readonly log?: Log } = {}): Promise<string> {
  found ??= search(options.log ?? silentLog).catch((thrown: unknown) => {
    found = undefined;
    throw thrown;
  });
  return found;
}
