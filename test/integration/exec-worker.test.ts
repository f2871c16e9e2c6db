/**
 * Goal: any program can be a worker by one command, which says what it does, and takes the program with it however it ends.
 * Method: the command as a process against a real nats-server and a node; programs of the shell.
 */
import { spawn, execFileSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { authorityProgram } from "../../cluster/authority-program.ts";
import { poll } from "../../cluster/poll.ts";
import { FaultProxy } from "../../cluster/proxy.ts";
import { scope, SdkSetting } from "./sdk-setting.ts";

let setting: SdkSetting;
let directory: string;
let child: ChildProcess | undefined;
let said = "";

beforeAll(async () => {
  setting = await SdkSetting.start();
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-exec-"));
});
afterEach(async () => {
  // A worker that is killed leaves its request for work behind, which would take what the next test admits.
  if (child !== undefined && child.exitCode === null && child.signalCode === null) {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  }
  await rm(directory, { recursive: true, force: true });
});
afterAll(() => setting.close());

/** Starts `mandate worker` in the test's folder. */
function start(...args: readonly string[]): ChildProcess {
  const program = authorityProgram();
  const place = ["--tenant", scope.tenantId, "--application", scope.applicationId];
  said = "";
  child = spawn(program.program, [...program.arguments, "worker", ...place, ...args], {
    env: { ...process.env, FOLDER: directory },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data: Buffer) => (said += data.toString()));
  return child;
}

const nats = (): string => new URL(setting.nats.urls[0] ?? "").host;
const heard = (words: string | RegExp): Promise<true | undefined> =>
  poll(() => (new RegExp(words).test(said) ? true : undefined), { timeoutMs: 20_000 });

/** Ignores SIGTERM, as its child does, and tells its group by a file. */
const stubborn = `trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $$ > "$FOLDER/group"; while :; do sleep 1; done`;

async function runningGroup(): Promise<number> {
  const text = await poll(
    async () => {
      const found = await readFile(join(directory, "group"), "utf8").catch(() => "");
      return found.endsWith("\n") ? found : undefined;
    },
    { timeoutMs: 20_000 },
  );
  return Number(text);
}

function membersOf(group: number): string[] {
  const table = execFileSync("ps", ["-eo", "pgid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return table.map((line) => line.trim()).filter((line) => line.startsWith(`${group} `) && !/^\d+ +Z/.test(line));
}

const gone = (group: number): Promise<true | undefined> =>
  poll(() => (membersOf(group).length === 0 ? true : undefined), { timeoutMs: 10_000 });

test("a program does the work, and the command says when it begins and ends", async () => {
  const worker = start(
    "--nats",
    nats(),
    "--exec",
    "sh",
    "-c",
    `read -r line; echo "$line" | grep -q '"question":6' && echo '{"ok":true}'`,
  );
  const { workloadId } = await setting.admit();

  expect((await setting.client.result(workloadId)).result?.output).toEqual({ ok: true });
  await heard("ended");
  expect(said).toMatch(/^\S+Z connected$/m);
  expect(said).toMatch(/^\S+Z worker_[0-9a-f]{24} claims work of tenant\/application for sh -c/m);
  expect(said).toMatch(new RegExp(`^\\S+Z began ${workloadId}, attempt 1$`, "m"));
  expect(said).toMatch(new RegExp(`^\\S+Z ended ${workloadId}, attempt 1 after \\d+ ms: done$`, "m"));
  worker.kill("SIGTERM");
  expect(await once(worker, "exit")).toEqual([0, null]);
});

test("a program that fails ends the work with its exit code and what it said", async () => {
  start("--nats", nats(), "--", "sh", "-c", "echo 'no such order' >&2; exit 9");
  const { workloadId } = await setting.admit();
  const { state, lastFailure } = await setting.client.result(workloadId);
  expect(state).toBe("DEAD_LETTER");
  expect(lastFailure).toBe("exit_code: it ended with exit code 9; standard error:\nno such order");
  await heard(/failed, exit_code: it ended with exit code 9; standard error: no such order/);
});

test("a program sees the variables that are named, commits its progress, and goes on from it", async () => {
  const script = `read -r line; case $line in
    *'"step":1'*) printf '"%s, then done"' "$FOLDER" ;;
    *) echo '{"step":1}' >&3; exit 1 ;;
  esac`;
  start("--nats", nats(), "--env", "FOLDER", "--exec", "sh", "-c", script);
  const { workloadId } = await setting.admit({ retryPolicy: { initialDelayMs: 0, retryOn: ["exit_code"] } });
  expect((await setting.client.result(workloadId)).result?.output).toBe(`${directory}, then done`);
});

test("the demo's worker whose name another takes says so in its log and ends with 1, without a stack trace", async () => {
  const first = start("--nats", nats(), "--name", "twice");
  const { workloadId } = await setting.admit({ input: { kind: "plain", subject: "order 1" } });
  expect((await setting.client.result(workloadId)).state).toBe("SUCCEEDED");
  const ended = once(first, "close");
  start("--nats", nats(), "--name", "twice");
  expect(await ended).toEqual([1, null]);
  expect(said).toMatch(/"code":"WORKER_SUPERSEDED".*"msg":"the worker is refused"/);
  expect(said).not.toMatch(/\n +at /);
});

test("the command says once that NATS is away, and once that it is back", async () => {
  const proxy = await FaultProxy.start({ target: Number(nats().split(":")[1]) });
  try {
    start("--nats", `127.0.0.1:${proxy.port}`, "--exec", "echo", "1");
    await heard(/claims work/);
    proxy.setMode("refuse");
    proxy.cut();
    await heard(/NATS is away; trying again/);
    proxy.setMode("pass");
    await heard(/connected again/);
    const { workloadId } = await setting.admit();
    expect((await setting.client.result(workloadId)).state).toBe("SUCCEEDED");
    expect(said.match(/NATS is away/g)).toHaveLength(1);
    expect(said.match(/connected again/g)).toHaveLength(1);
    child?.kill("SIGTERM");
    await heard(/worker stopped/);
  } finally {
    await proxy.close();
  }
});

test("a worker that is killed takes its program with it, children that ignore SIGTERM included", async () => {
  const worker = start("--nats", nats(), "--lease-ms", "1500", "--env", "FOLDER", "--exec", "sh", "-c", stubborn);
  const { workloadId } = await setting.admit();
  const group = await runningGroup();
  expect(membersOf(group).length).toBeGreaterThan(1);
  worker.kill("SIGKILL");
  await once(worker, "exit");
  expect(await gone(group)).toBe(true);
  expect((await setting.whenIn(workloadId, ["READY"])).lastFailure).toBe("worker_lost: claim lease expired");
  await setting.client.cancel(workloadId);
});

test("a worker that is told to end kills its program after the grace period, and gives the work back", async () => {
  const flags = ["--grace-ms", "300", "--env", "FOLDER"];
  const worker = start("--nats", nats(), ...flags, "--exec", "sh", "-c", stubborn);
  const { workloadId } = await setting.admit();
  const group = await runningGroup();
  worker.kill("SIGTERM");
  expect(await once(worker, "exit")).toEqual([0, null]);
  expect(membersOf(group)).toEqual([]);
  const given = await setting.client.get(workloadId);
  expect(given.lastFailure).toBe("worker_failure: the worker shut down before the work was done");
  await setting.client.cancel(workloadId);
});

test("work that is cancelled ends its program", async () => {
  start("--nats", nats(), "--lease-ms", "1500", "--env", "FOLDER", "--exec", "sh", "-c", stubborn);
  const { workloadId } = await setting.admit();
  const group = await runningGroup();
  await setting.client.cancel(workloadId);
  expect((await setting.whenIn(workloadId, ["CANCELLED"])).state).toBe("CANCELLED");
  expect(await gone(group)).toBe(true);
  expect((await setting.client.get(workloadId)).attempts.at(-1)?.status).toBe("CANCELLED");
});

test.each<[readonly string[], RegExp]>([
  [["--exec", "no-such-program-anywhere"], /^--exec: there is no program "no-such-program-anywhere"$/m],
  [["--max-cpu-ms", "5"], /^--max-cpu-ms needs --exec$/m],
])("a command line that makes no sense ends with 2 and one line that says why: %j", async (args, why) => {
  const worker = start(...args);
  expect(await once(worker, "exit")).toEqual([2, null]);
  expect(said).toMatch(why);
  expect(said).not.toContain("    at ");
});
