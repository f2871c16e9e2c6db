// Goal: a node waits for a store that is away, refuses one that it must not use, says why, and leaves in good order.
// Method: the command as a process against a real nats-server that comes late, is unfit, or has lost its stream.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AuthorityProcess } from "../../cluster/authority-process.ts";
import { authorityProgram } from "../../cluster/authority-program.ts";
import { freePorts } from "../../cluster/free-ports.ts";
import { NatsServer } from "../../cluster/nats-server.ts";
import { poll } from "../../cluster/poll.ts";

let directory: string;
let nats: NatsServer;
let node: AuthorityProcess;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-serve-"));
  const [clientPort = 0, monitorPort = 0, httpPort = 0] = await freePorts([undefined, undefined, undefined]);
  nats = new NatsServer({ name: "n1", directory: join(directory, "n1"), clientPort, monitorPort, sync: "always" });
  node = new AuthorityProcess({
    name: "a1",
    directory: join(directory, "a1"),
    url: `http://127.0.0.1:${httpPort}`,
    env: {
      MANDATE_NATS_SERVERS: `127.0.0.1:${clientPort}`,
      MANDATE_NATS_MONITOR_URLS: nats.monitorUrl,
      MANDATE_HTTP_PORT: String(httpPort),
      MANDATE_NODE_ID: "a1",
      MANDATE_REPLICAS: "1",
      MANDATE_STATE_DIR: join(directory, "a1"),
    },
  });
});

afterEach(async () => {
  await node.kill();
  await nats.kill();
  await rm(directory, { recursive: true, force: true });
});

const statusOf = async (path: string, init?: RequestInit): Promise<number | undefined> => {
  try {
    return (await fetch(`${node.url}${path}`, init)).status;
  } catch {
    return undefined;
  }
};
const logOf = async (): Promise<string> => readFile(node.logPath ?? "", "utf8");

/** Runs the command to its end; answers its exit code and what it printed. */
function run(...args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  const program = authorityProgram();
  return new Promise((resolve) => {
    execFile(program.program, [...program.arguments, ...args], (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === "number" ? error.code : 0, output: `${stdout}${stderr}` }),
    );
  });
}

test("a node that finds no store answers, says that it is not ready, and serves when the store comes", async () => {
  await node.start();
  expect(await poll(async () => ((await statusOf("/livez")) === 200 ? true : undefined), { timeoutMs: 40_000 })).toBe(
    true,
  );
  const asks = { headers: { "X-Mandate-Subject": "service:tester", "Content-Type": "application/json" } };
  expect(await statusOf("/readyz")).toBe(503);
  expect(await statusOf("/v1/workloads", { ...asks, method: "POST", body: "{}" })).toBe(503);
  expect(await statusOf("/v1/workloads", asks)).toBe(503);
  expect(await statusOf("/v1/events", asks)).toBe(503);
  await nats.start();
  await node.waitReady(40_000);
  expect(await statusOf("/v1/workloads?tenantId=t&applicationId=a", asks)).toBe(200);
  await node.stop();
  expect((await node.exited)?.code).toBe(0);
  expect(await logOf()).toContain("no NATS server can be reached; trying again");
  expect(await logOf()).toContain("an empty one has been made");
  const lines = (await logOf()).split("\n").filter((line) => line.startsWith("{"));
  expect(lines.length).toBeGreaterThan(3);
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ node: "a1", mode: "open" });
});

test("a node builds its view anew when it is told to, and is ready again", async () => {
  await nats.start();
  const { program, arguments: args } = authorityProgram();
  const env = { ...process.env, MANDATE_NATS_SERVERS: nats.url.replace("nats://", ""), MANDATE_REPLICAS: "1" };
  const child = spawn(program, [...args, "serve", "--port", "0", "--sync", "any"], { env });
  try {
    let output = "";
    child.stdout.on("data", (data: Buffer) => (output += data.toString()));
    const times = (words: string): number => output.split(words).length - 1;
    const heard = (words: string, count: number): Promise<true | undefined> =>
      poll(async () => (times(words) >= count ? true : undefined), { timeoutMs: 40_000 });
    expect(await heard("the node is ready", 1)).toBe(true);
    child.kill("SIGUSR2");
    expect(await heard("the view is built anew", 1)).toBe(true);
    expect(await heard("the node is ready", 2)).toBe(true);
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  } finally {
    child.kill("SIGKILL");
  }
});

test("a node whose store has gone away ends in time when it is told to", async () => {
  await nats.start();
  await node.start();
  await node.waitReady(40_000);
  await nats.kill();
  await poll(async () => ((await statusOf("/readyz")) === 503 ? true : undefined), { timeoutMs: 40_000 });
  const from = performance.now();
  await node.stop();
  expect((await node.exited)?.code).toBe(0);
  expect(performance.now() - from).toBeLessThan(8_000);
});

test("a node that waits for its store ends at once when it is told to", async () => {
  await node.start();
  await poll(async () => ((await statusOf("/livez")) === 200 ? true : undefined), { timeoutMs: 40_000 });
  const from = performance.now();
  await node.stop();
  expect((await node.exited)?.code).toBe(0);
  expect(performance.now() - from).toBeLessThan(5_000);
});

test("a node that waits for its store says so ever more rarely", async () => {
  await node.start();
  const told = async (): Promise<number[] | undefined> => {
    const lines = (await logOf()).split("\n").filter((line) => line.includes("no NATS server can be reached"));
    return lines.length < 4
      ? undefined
      : lines.map((line) => Date.parse((JSON.parse(line) as { readonly time: string }).time));
  };
  const [first = 0, second = 0, third = 0, fourth = 0] = (await poll(told, { timeoutMs: 30_000 })) ?? [];
  expect(second - first).toBeGreaterThan(900);
  expect(third - second).toBeGreaterThan(1_900);
  expect(fourth - third).toBeGreaterThan(3_900);
});

test("a state directory that is a file ends in one line that names it", async () => {
  const place = join(directory, "file");
  await writeFile(place, "");
  const { code, output } = await run("serve", "--state-dir", place, "--port", "0");
  expect(code).toBe(1);
  const lines = output
    .trim()
    .split("\n")
    .filter((line) => line.includes("can't start"));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`the state directory ${place} can't be used (EEXIST)`);
  expect(output).not.toContain("    at ");
});

test("a node makes no empty store in the place of one that it has seen and that is gone", async () => {
  await nats.start();
  await node.start();
  await node.waitReady();
  await node.stop();
  const connection = await connect({ servers: nats.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.delete("KV_mandate_main_0");
  await node.start();
  expect((await node.exited)?.code).toBe(1);
  expect(await logOf()).toContain("it makes no empty one in its place");
  expect(await manager.streams.names().next()).toEqual([]);
  await connection.close();
});

test("a node refuses servers that may lose what they acknowledged, unless that is allowed by name", async () => {
  const lazy = new NatsServer({
    name: "n1",
    directory: join(directory, "lazy"),
    clientPort: Number(new URL(nats.url).port),
    monitorPort: Number(new URL(nats.monitorUrl).port),
  });
  try {
    await lazy.start();
    await lazy.waitReady();
    await node.start();
    expect((await node.exited)?.code).toBe(1);
    expect(await logOf()).toContain("start with --allow sync");
    const settings = ["--nats", nats.url, "--nats-monitor", nats.monitorUrl, "--replicas", "1"];
    const refused = await run("doctor", ...settings);
    expect(refused.code).toBe(1);
    expect(refused.output).toMatch(/^FAILURE {2}sync/m);
    const allowed = await run("doctor", "--json", "--allow", "sync", ...settings);
    expect(allowed.code).toBe(0);
    expect(JSON.parse(allowed.output)).toMatchObject({ healthy: true });
  } finally {
    await lazy.kill();
  }
});

test("a command line or a setting that makes no sense ends with 2 and names what is wrong", async () => {
  const bad = await run("serve", "--shards", "0", "--host", "0.0.0.0");
  expect(bad.code).toBe(2);
  expect(bad.output).toMatch(/--shards="0" must be/);
  expect(bad.output).toMatch(/--host=0\.0\.0\.0 must be 127\.0\.0\.1/);
  expect((await run("serve", "--no-such-flag")).code).toBe(2);
  expect((await run("dance")).code).toBe(2);
  expect((await run("--version")).output.trim()).toMatch(/^\d+\.\d+\.\d+/);
});
