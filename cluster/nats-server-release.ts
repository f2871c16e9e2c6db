import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ClusterError } from "./cluster-error.ts";

const run = promisify(execFile);

/** How long a machine without a way out may hold up the start: the checksums are small, so no answer means no network. */
const CHECKSUMS_TIMEOUT_MS = 5_000;
const ARCHIVE_TIMEOUT_MS = 120_000;

const refuse = (message: string): ClusterError => new ClusterError("NATS_SERVER_REFUSED", message);

async function download(url: string, timeoutMs: number): Promise<Uint8Array> {
  const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
  if (!response.ok) throw refuse(`${url} answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

function platformName(): string {
  const processor = { x64: "amd64", arm64: "arm64" }[process.arch as string];
  if (processor === undefined || (process.platform !== "linux" && process.platform !== "darwin"))
    throw refuse(`no release is known for ${process.platform} ${process.arch}`);
  return `${process.platform}-${processor}`;
}

/**
 * Fetches the official release archive of a version into `folder` and unpacks it, after its SHA-256 was found equal to
 * the one the release publishes. Answers the path of the program.
 *
 * @throws ClusterError `NATS_SERVER_REFUSED`, or what the network or tar said.
 */
export async function fetchRelease(version: string, folder: string): Promise<string> {
  const name = `nats-server-v${version}-${platformName()}`;
  const base = `https://github.com/nats-io/nats-server/releases/download/v${version}`;
  const checksums = new TextDecoder().decode(await download(`${base}/SHA256SUMS`, CHECKSUMS_TIMEOUT_MS));
  const expected = checksums
    .split("\n")
    .map((line) => line.trim().split(/\s+\*?/))
    .find(([, file]) => file === `${name}.tar.gz`)?.[0];
  if (expected === undefined) throw refuse(`SHA256SUMS of ${version} does not list ${name}.tar.gz`);
  const archive = await download(`${base}/${name}.tar.gz`, ARCHIVE_TIMEOUT_MS);
  const found = createHash("sha256").update(archive).digest("hex");
  if (found !== expected) throw refuse(`${name}.tar.gz has SHA-256 ${found}, published is ${expected}`);
  const file = join(folder, "release.tar.gz");
  await writeFile(file, archive);
  await run("tar", ["-xzf", file, "-C", folder], { timeout: ARCHIVE_TIMEOUT_MS });
  return join(folder, name, "nats-server");
}
