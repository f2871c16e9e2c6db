// Goal: a new user's command works: it comes up, does real work, heals, ends cleanly, and goes on with its data.
// Method: the command itself as a process, the very commands that it prints, and signals.

import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { authorityProgram } from "../../cluster/authority-program.ts";
import { freePorts } from "../../cluster/free-ports.ts";
import { demoScope } from "../../src/cli/demo-work.ts";
import { connect } from "../../src/sdk/client.ts";
import { noProcessesOf, processesOf, UpProcess } from "./up-setting.ts";

const run = promisify(execFile);
const subject = { kind: "human", id: "tester" } as const;
const started: UpProcess[] = [];
let directory: string;
let args: readonly string[];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-up-"));
  const [port] = await freePorts([undefined]);
  args = ["--data", directory, "--port", String(port), "--nodes", "2"];
});

afterAll(async () => {
  for (const { child } of started) child.kill("SIGKILL");
  await noProcessesOf(directory);
  await rm(directory, { recursive: true, force: true });
});

function up(...more: readonly string[]): UpProcess {
  const process = new UpProcess([...args, ...more], directory);
  started.push(process);
  return process;
}

/** SIGINT to a process that may have ended already. */
function interrupt(pid: number): void {
  try {
    process.kill(pid, "SIGINT");
  } catch {
    // It has ended: so much the better.
  }
}

test("it does sample work of each kind, heals what is killed, and leaves nothing behind", async () => {
  const first = up();
  const [, url = ""] = await first.prints(/Mandate answers at (http:\S+)/);
  await first.prints(/kill -9 \d+\n[\s\S]*kill -9 \d+\n/);
  const idOf = (kind: string): string => new RegExp(`(workload_\\w+)  ${kind}`).exec(first.output)?.[1] ?? "";
  const client = connect({ url, subject });

  const approve = first.output.split("\n").find((line) => line.includes("/decision")) ?? "";
  const { stdout } = await run("bash", ["-c", approve]);
  expect(JSON.parse(stdout)).toMatchObject({ decision: { outcome: "approved" }, replayed: false });

  const [, doctor = ""] = /npx mandate (doctor .+)/.exec(first.output) ?? [];
  const { program, arguments: before } = authorityProgram();
  const looked = await run(program, [...before, ...doctor.split(" ")]);
  expect(looked.stdout).toContain("the store of epoch local has format");
  expect(looked.stdout).not.toContain("not looked at");

  const [, nodePid = ""] = /kill -9 (\d+)/.exec(first.output) ?? [];
  process.kill(Number(nodePid), "SIGKILL");
  const again = up();
  expect(await again.ended).toBe(1);
  expect(again.output).toContain(`runs already in ${directory} at ${url}`);

  for (const kind of ["plain", "dependent", "flaky", "gated", "delayed"])
    expect(await client.result(idOf(kind), { waitMs: 30_000 }), kind).toMatchObject({ state: "SUCCEEDED" });
  await first.prints(/node a1 runs again \(pid \d+, ready\)/);
  const long = await client.get(idOf("long"));
  expect(["RUNNING", "CHECKPOINTED"]).toContain(long.state);
  expect(long.attemptCount).toBe(1);

  expect(processesOf(directory).length).toBeGreaterThan(5);
  first.child.kill("SIGTERM");
  expect(await first.ended).toBe(0);
  expect(await noProcessesOf(directory)).toEqual([]);
}, 120_000);

test("started again it has its data, and killed it takes all of its processes along", async () => {
  const second = up("--no-demo");
  const [, url = ""] = await second.prints(/Mandate answers at (http:\S+)/);
  const client = connect({ url, subject });
  const page = await client.list({ ...demoScope });
  expect(page.workloads).toHaveLength(6);
  const long = page.workloads.find(({ definitionId }) => definitionId === "demo.long");
  expect(long).toMatchObject({ state: "READY", attemptCount: 1 });
  expect(long?.checkpoints.length).toBeGreaterThan(0);
  second.child.kill("SIGKILL");
  await second.ended;
  expect(await noProcessesOf(directory)).toEqual([]);

  const third = up("--no-demo");
  await third.prints(/All nodes are ready/);
  third.child.kill("SIGINT");
  expect(await third.ended).toBe(0);
  expect(await noProcessesOf(directory)).toEqual([]);
}, 120_000);

test("interrupted while it comes up, as Ctrl-C does it to every process on the terminal, it leaves at once", async () => {
  for (const stage of [/looking for nats-server/, /starting three nats-servers/, /starting 2 authority nodes/]) {
    const early = up("--no-demo");
    await early.prints(stage);
    for (const pid of processesOf(directory)) interrupt(pid);
    expect(await early.ended, String(stage)).not.toBeNull();
    expect(await noProcessesOf(directory), String(stage)).toEqual([]);
  }
}, 120_000);
