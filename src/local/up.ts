import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { ClusterError, problemText } from "../../cluster/cluster-error.ts";
import { findNatsServer } from "../../cluster/nats-server-binary.ts";
import { dropRecord, takeRecord } from "../../cluster/process-record.ts";
import type { Log } from "../base/log.ts";
import { admitDemo, demoRequester } from "../cli/demo-admissions.ts";
import { renderGuide } from "../cli/demo-guide.ts";
import { ProgressLine } from "../cli/progress.ts";
import { connect } from "../sdk/client.ts";
import { LocalCluster } from "./local-cluster.ts";

export interface UpOptions {
  readonly port: number;
  readonly directory: string;
  readonly nodes: number;
  readonly demo: boolean;
}

const ALL_READY_MS = 30_000;
/** How long a start that was interrupted may take to end in good order, ms. */
const LEAVE_HALF_UP_MS = 5_000;

/** Fulfilled with the first signal to end; the second one calls `onSecond`. */
function firstSignal(onSecond: () => void): Promise<void> {
  return new Promise((fulfil) => {
    let seen = false;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => {
        if (seen) onSecond();
        seen = true;
        fulfil();
      });
  });
}

const lockFile = (directory: string): string => join(directory, "up.json");
const addressFile = (directory: string): string => join(directory, "address.json");

/** Where a cluster of that folder answers, as far as it has noted it. */
async function notedAddress(directory: string): Promise<string | undefined> {
  try {
    const note: unknown = JSON.parse(await readFile(addressFile(directory), "utf8"));
    return typeof note === "object" && note !== null && "url" in note && typeof note.url === "string"
      ? note.url
      : undefined;
  } catch {
    return undefined;
  }
}

async function noteAddress(directory: string, cluster: LocalCluster): Promise<void> {
  const staged = `${addressFile(directory)}.${process.pid}`;
  await writeFile(staged, JSON.stringify({ url: cluster.url, nats: cluster.natsUrls }));
  await rename(staged, addressFile(directory));
}

/** Takes the folder; answers `false`, having said so, when a cluster runs in it already. */
async function takeDirectory(directory: string): Promise<boolean> {
  try {
    await takeRecord(lockFile(directory));
    return true;
  } catch (thrown) {
    if (!(thrown instanceof ClusterError) || thrown.code !== "DIRECTORY_IN_USE") throw thrown;
    const address = await notedAddress(directory);
    const where = address === undefined ? "" : ` at ${address}`;
    process.stderr.write(
      `A cluster runs already in ${directory}${where} (process ${String(thrown.details["owner"])}).\n`,
    );
    return false;
  }
}

async function showDemo(cluster: LocalCluster, progress: ProgressLine): Promise<void> {
  progress.step("starting the demo worker and admitting sample work");
  await cluster.startWorker();
  const client = connect({ url: cluster.url, subject: demoRequester });
  const work = await admitDemo(client, new Date().toISOString());
  progress.end();
  const { url, nodes, workerPid } = cluster;
  process.stdout.write(`${renderGuide({ url, nodes, workerPid }, work)}\n`);
}

/** What runs where, for whoever wants to look closer. */
function describe(cluster: LocalCluster, directory: string): string {
  const nodes = cluster.nodes.map(({ name, pid, url }) => `${name} ${url} (pid ${pid})`).join(", ");
  return [
    `  nodes    ${nodes}`,
    `  NATS     ${cluster.natsUrls.join(", ")}`,
    `  data     ${directory}`,
    `  look     npx mandate doctor ${cluster.storeFlags}`,
    "",
  ].join("\n");
}

/**
 * Runs a local cluster until it is told to end (contract 6.5); answers the process's exit code.
 */
export async function up(options: UpOptions): Promise<number> {
  const directory = resolve(options.directory);
  await mkdir(directory, { recursive: true });
  if (!(await takeDirectory(directory))) return 1;
  const log: Log = pino(
    { formatters: { level: (level) => ({ level }) }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination(join(directory, "up.log")),
  );
  const progress = new ProgressLine(process.stdout);
  let cluster: LocalCluster | undefined;
  const ended = firstSignal(() => {
    process.stdout.write("Leaving at once.\n");
    void (cluster?.kill() ?? Promise.resolve()).finally(() => process.exit(1));
  });
  try {
    progress.step("looking for nats-server");
    await findNatsServer({ log });
    const starting = LocalCluster.start({
      ...options,
      directory,
      log,
      onStep: (text) => progress.step(text),
      onNews: (text) => progress.say(text),
    });
    const first = await Promise.race([starting, ended]);
    if (first === undefined) {
      progress.end();
      process.stdout.write("Stopping …\n");
      // What is half up comes up before it can be ended in good order, unless the same Ctrl-C has ended a part of it: then
      // this process leaves, and its children end with it.
      const over = starting.then(
        (started) => started.stop(),
        () => undefined,
      );
      const inTime = await Promise.race([over.then(() => true), delay(LEAVE_HALF_UP_MS, false)]);
      if (inTime) return 0;
      await dropRecord(lockFile(directory));
      process.exit(0);
    }
    cluster = first;
    await noteAddress(directory, cluster);
    progress.end();
    process.stdout.write(`\nMandate answers at ${cluster.url} (open mode: it believes any caller on this machine)\n`);
    process.stdout.write(`${describe(cluster, directory)}\n`);
    await Promise.race([run(cluster, { demo: options.demo, progress }), ended]);
    await ended;
    progress.end();
    process.stdout.write("Stopping …\n");
    await cluster.stop();
    process.stdout.write("Stopped. The data stay; the same command goes on with them.\n");
    return 0;
  } catch (thrown) {
    progress.end();
    await cluster?.kill();
    process.stderr.write(
      `The cluster could not be started: ${problemText(thrown)}\nSee ${join(directory, "up.log")}\n`,
    );
    return 1;
  } finally {
    await dropRecord(lockFile(directory));
  }
}

async function run(cluster: LocalCluster, how: { demo: boolean; progress: ProgressLine }): Promise<void> {
  const { progress } = how;
  if (how.demo)
    await showDemo(cluster, progress).catch((thrown: unknown) => {
      progress.end();
      process.stderr.write(`The sample work could not be admitted: ${problemText(thrown)}\n`);
    });
  progress.step("waiting for all nodes to be ready");
  const all = await cluster.waitAllReady(ALL_READY_MS);
  progress.end();
  process.stdout.write(all ? "All nodes are ready. Ctrl-C ends everything.\n" : "Not all nodes are ready yet.\n");
}
