import { createReadStream, createWriteStream, mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { Draw } from "./draw.ts";
import { dumpStore, findConsumers } from "./dump.ts";
import { FaultSchedule } from "./faults/schedule.ts";
import type { EndLine, HistoryLine, RunLine } from "./history.ts";
import { findCrashes, findFiles, findProcesses, RUN_MARK } from "./leftovers.ts";
import type { AnswerTap } from "./network/answer-tap.ts";
import { mergeParts } from "./parts.ts";
import { pause } from "../src/sdk/backoff.ts";
import { Probes } from "./probes.ts";
import { Recorder } from "./recorder.ts";
import { clockOrigin, RunClock } from "./run-clock.ts";
import type { Scenario } from "./scenarios.ts";
import { settleWorkers } from "./settle-registry.ts";
import { readViews, settleAll } from "./settle.ts";
import { Commits, summarize, type Summary } from "./summary.ts";
import { lengths } from "./system/setting.ts";
import { System } from "./system/system.ts";
import { tenantsOf } from "./system/tenants.ts";

export interface RunOptions {
  /** Where everything of the run is kept. */
  readonly directory: string;
  readonly seed: number;
  readonly minutes: number;
  readonly name: string;
  readonly scenario: Scenario;
  readonly version: string;
  readonly say: (text: string) => void;
  /** Ends the run early, in good order. */
  readonly signal: AbortSignal;
}

/** Everything that the store ever committed, until it is a part of the history. */
const STORE_FILE = "store.ndjson";
/** How long everything may take to come to its end once all is healed, and how long it is waited for, ms. */
const SETTLE_MS = 60_000;
const SETTLE_WAIT_MS = 80_000;
/** How long a node that was started last may need to load all that an hour has left, on a loaded machine, ms. */
const READY_WAIT_MS = 240_000;

const parametersOf = ({ scenario, seed }: RunOptions): RunLine["parameters"] => ({
  ...scenario.shape,
  ...lengths,
  faultLanes: scenario.faultLanes,
  trafficLanes: scenario.trafficLanes,
  settleMaxMs: SETTLE_MS,
  ...(scenario.shape.secure === true
    ? { tenantMarks: Object.fromEntries(tenantsOf(seed).map(({ tenantId, mark }) => [tenantId, mark])) }
    : {}),
});

/** Heals everything and waits until all has come to its end; then everything is looked at and stopped. */
async function conclude(
  options: RunOptions,
  parts: { readonly system: System; readonly schedule: FaultSchedule; readonly recorder: Recorder },
): Promise<Pick<EndLine, "healedAt" | "endedAt">> {
  const { say } = options;
  const { system, schedule, recorder } = parts;
  await schedule.stop();
  const healedAt = recorder.clock.now();
  say("all is healed; waiting until everything has come to its end");
  await system.crew.finish();
  await system.endTraffic();
  await system.ring.waitReady();
  await system.nodes.waitReady(READY_WAIT_MS);
  const open = await settleAll(system, recorder, SETTLE_WAIT_MS);
  if (open.length > 0)
    say(
      `${open.length} workloads have not settled: ${JSON.stringify(open.slice(0, 5).map(({ workloadId, state }) => [workloadId, state]))}`,
    );
  await settleWorkers(system.nodes.front.url, system.observers, SETTLE_WAIT_MS);
  await readViews(system.nodes.present, system.observers, recorder);
  return { healedAt, endedAt: recorder.clock.now() };
}

/** Stops everything and notes what is left behind; answers after the store has been read. */
async function takeApart(
  options: RunOptions,
  parts: {
    readonly system: System;
    readonly recorder: Recorder;
    readonly mark: string;
    readonly times: Pick<EndLine, "healedAt" | "endedAt">;
  },
): Promise<Commits> {
  const { directory, scenario, say } = options;
  const { system, recorder, mark, times } = parts;
  const { shards } = scenario.shape;
  say("stopping workers and nodes");
  await system.crew.stop();
  await system.nodes.stop();
  say("looking for what is left behind, and reading the store");
  const consumers = await findConsumers(system.ring, shards);
  const commits = new Commits();
  const entries = new Recorder(join(directory, STORE_FILE), recorder.clock);
  await dumpStore(system.ring, shards, (entry) => {
    commits.take(entry);
    entries.write(entry);
  });
  entries.close();
  await system.ring.stop();
  await system.disk?.remove();
  // What was in them is in the history now.
  for (const { server } of system.ring.servers)
    await rm(join(server.directory, "data"), { recursive: true, force: true });
  const processes = await findProcesses(mark);
  const files = findFiles(directory);
  for (const { found } of [consumers, processes, files]) for (const leftover of found) recorder.write(leftover);
  const crashes = findCrashes(directory);
  for (const crash of crashes.found) recorder.write(crash);
  const inspected = {
    consumers: consumers.inspected,
    processes: processes.inspected,
    files: files.inspected,
    logs: crashes.inspected,
  };
  recorder.write({ line: "end", ...times, inspected });
  return commits;
}

async function writeHistory(
  options: RunOptions,
  parts: { readonly run: RunLine; readonly commits: Commits; readonly answers: AnswerTap },
): Promise<Summary> {
  const { directory } = options;
  const merged = await mergeParts(join(directory, "parts"), Date.now());
  const rest = merged.filter(({ line }) => line !== "end");
  const file = createWriteStream(join(directory, "history.ndjson"));
  const write = async (line: HistoryLine): Promise<void> => {
    if (!file.write(`${JSON.stringify(line)}\n`))
      await new Promise<void>((resolve) => void file.once("drain", resolve));
  };
  await write(parts.run);
  for (const line of rest) await write(line);
  // The store's history is by far the largest part, and goes straight from file to file.
  for await (const piece of createReadStream(join(directory, STORE_FILE)))
    if (!file.write(piece)) await new Promise<void>((resolve) => void file.once("drain", resolve));
  await rm(join(directory, STORE_FILE));
  for (const line of merged) if (line.line === "end") await write(line);
  file.end();
  await finished(file);
  return summarize(rest, parts.commits, parts.answers);
}

/** Makes a run and writes its history into its folder. Whatever fails, nothing is left running. */
export async function makeRun(options: RunOptions): Promise<Summary> {
  const { directory, scenario, seed, say, signal } = options;
  mkdirSync(join(directory, "tmp"), { recursive: true });
  const mark = `${process.pid}-${Date.now()}`;
  // Everything that is started from here on inherits both.
  process.env[RUN_MARK] = mark;
  process.env["TMPDIR"] = join(directory, "tmp");
  const clock = new RunClock(clockOrigin());
  const recorder = new Recorder(join(directory, "parts", "runner.ndjson"), clock);
  const draw = new Draw(seed);
  const { name, minutes, version } = options;
  const parameters = parametersOf(options);
  const run: RunLine = { line: "run", version, seed, scenario: name, minutes, startedAt: clock.now(), parameters };
  const { plays: weights, trafficLanes, breakMs } = scenario;
  const system = await System.start({
    directory,
    shape: scenario.shape,
    seed,
    draw,
    recorder,
    traffic: { weights, lanes: trafficLanes, breakMs },
    say,
  });
  let commits: Commits;
  try {
    const probes = new Probes(system, recorder);
    const { faults, faultLanes, calmMs } = scenario;
    say(`running for ${minutes} minutes`);
    const schedule = new FaultSchedule({ system, draw, recorder, weights: faults, lanes: faultLanes, calmMs, say });
    await pause(minutes * 60_000, signal);
    const times = await conclude(options, { system, schedule, recorder });
    await probes.stop();
    commits = await takeApart(options, { system, recorder, mark, times });
  } catch (thrown) {
    await system.kill();
    throw thrown;
  }
  recorder.close();
  return writeHistory(options, { run, commits, answers: system.nodes.answers });
}
