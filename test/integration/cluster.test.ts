/**
 * Goal: the local cluster keeps its promises about processes, ports and data: what is started becomes ready, survives
 * kill -9 with its data, gives way to taken ports, and is gone afterwards, even when its owner is killed.
 * Method: real nats-servers, each test in a directory of its own; processes are looked for by id in the system; a
 * stream is made and read through a connection to the real server.
 */
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assert } from "../../src/base/assert.ts";
import { freePorts } from "../../cluster/free-ports.ts";
import type { NatsCluster, NatsClusterOptions } from "../../cluster/nats-cluster.ts";
import { startNatsCluster } from "../../cluster/nats-cluster.ts";
import { poll } from "../../cluster/poll.ts";
import { identify, isAlive } from "../../cluster/process-identity.ts";

let directory: string;
const clusters: NatsCluster[] = [];

const start = async (options: Omit<NatsClusterOptions, "directory">): Promise<NatsCluster> => {
  const cluster = await startNatsCluster({ directory, ...options });
  clusters.push(cluster);
  return cluster;
};

const runs = (pid: number): boolean => identify(pid) !== undefined;
const pidsOf = (cluster: NatsCluster): number[] =>
  cluster.servers.flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
const gone = (pid: number): Promise<true | undefined> =>
  poll(() => (runs(pid) ? undefined : true), { timeoutMs: 10_000 });

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-cluster-"));
});
afterEach(async () => {
  await Promise.all(clusters.splice(0).map((cluster) => cluster.killAll()));
  await rm(directory, { recursive: true, force: true });
});

describe("three servers", () => {
  test("take writes at once, keep them over kill -9 of the stream's leader and of all, and leave no process", async () => {
    const cluster = await start({ servers: 3, sync: "always" });
    const connection = await connect({ servers: cluster.urls, reconnectTimeWait: 100, maxReconnectAttempts: -1 });
    try {
      const streams = await jetstreamManager(connection);
      await streams.streams.add({ name: "S", subjects: ["s.>"], num_replicas: 3 });
      await jetstream(connection).publish("s.1", "one");

      const leader = await cluster.waitLeader("S");
      const oldPid = leader.pid;
      await leader.kill();
      expect(leader.running).toBe(false);
      const next = await cluster.waitLeader("S");
      expect(next).not.toBe(leader);
      await cluster.restart(leader);
      expect(leader.pid).not.toBe(oldPid);

      await cluster.killAll();
      await Promise.all(cluster.servers.map((server) => server.start()));
      await cluster.waitReady();
      await cluster.waitLeader("S");
      const stored = await poll(() => streams.streams.getMessage("S", { seq: 1 }).catch(() => undefined), {
        timeoutMs: 20_000,
      });
      expect(stored?.string()).toBe("one");
    } finally {
      await connection.close();
    }
    const pids = pidsOf(cluster);
    expect(pids).toHaveLength(3);
    await cluster.stop();
    expect(pids.filter(runs)).toEqual([]);
  });

  test("find their data again when they are started anew in the same directory on other ports", async () => {
    const first = await start({ servers: 3 });
    const before = await connect({ servers: first.urls });
    await (await jetstreamManager(before)).streams.add({ name: "S", subjects: ["s.>"], num_replicas: 3 });
    await jetstream(before).publish("s.1", "one");
    await before.close();
    await first.stop();

    const second = await start({ servers: 3 });
    expect(second.urls).not.toEqual(first.urls);
    await second.waitLeader("S");
    const after = await connect({ servers: second.urls });
    const streams = await jetstreamManager(after);
    const info = await poll(() => streams.streams.info("S").catch(() => undefined), { timeoutMs: 20_000 });
    expect(info?.state.messages).toBe(1);
    await after.close();
  });
});

describe("one server", () => {
  test("uses the usual ports, and a free one in place of each that is taken, and says which", async () => {
    const [base] = await freePorts([21_400]);
    assert(base !== undefined, "freePorts answers one port for each");
    const occupant = createServer().listen(base, "127.0.0.1");
    await once(occupant, "listening");
    try {
      const cluster = await start({ servers: 1, portBase: base });
      expect(cluster.movedPorts.map(({ wanted }) => wanted)).toContain(base);
      expect(cluster.urls[0]).not.toBe(`nats://127.0.0.1:${base}`);
      const connection = await connect({ servers: cluster.urls });
      await connection.close();
    } finally {
      occupant.close();
    }
  });

  test("does nothing while paused, and goes on when resumed", async () => {
    const cluster = await start({ servers: 1 });
    const [server] = cluster.servers;
    assert(server !== undefined, "a cluster of one has a server");
    await server.pause();
    expect(await server.monitor("/varz", 300)).toBeUndefined();
    server.resume();
    await server.waitReady();
    await server.pause();
    await server.stop();
    expect(server.running).toBe(false);
  });

  test("is refused in a directory that serves a living process", async () => {
    await start({ servers: 1 });
    await expect(start({ servers: 1 })).rejects.toMatchObject({ code: "DIRECTORY_IN_USE" });
  });

  test("names its log when it can't start", async () => {
    await writeFile(join(directory, "n1"), "a file where the server's folder should be");
    await expect(start({ servers: 1 })).rejects.toThrow();
    await rm(join(directory, "n1"));
    const cluster = await start({ servers: 1 });
    const [server] = cluster.servers;
    assert(server !== undefined, "a cluster of one has a server");
    await server.stop();
    await rm(join(directory, "n1", "data"), { recursive: true });
    await writeFile(join(directory, "n1", "data"), "a file where the data should be");
    await server.start();
    await expect(server.waitReady()).rejects.toMatchObject({
      code: "PROCESS_EXITED",
      details: { logPath: server.logPath },
    });
  });
});

describe("an owner that is killed with SIGKILL", () => {
  const ownerProgram = (guarded: boolean): string => `
    import { writeFile } from "node:fs/promises";
    import { startNatsCluster } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../cluster/nats-cluster.ts")).href)};
    import { releaseProcess } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../cluster/process-guard.ts")).href)};
    void (async () => {
      const cluster = await startNatsCluster({ servers: 1, directory: ${JSON.stringify("DIRECTORY")} });
      const pid = cluster.servers[0].pid;
      ${guarded ? "" : "releaseProcess({ pid, startedAt: '', boot: '' });"}
      await writeFile(${JSON.stringify("DIRECTORY")} + "/pid", String(pid));
      setInterval(() => undefined, 1000);
    })();
  `;

  /** Starts a cluster from another process, kills that process, and answers the id of the server it had started. */
  const startAndKillOwner = async (guarded: boolean): Promise<number> => {
    const script = join(directory, "owner.mts");
    await writeFile(script, ownerProgram(guarded).replaceAll("DIRECTORY", directory));
    const owner = spawn(process.execPath, ["--import", "tsx", script], {
      cwd: join(import.meta.dirname, "../.."),
      stdio: "inherit",
    });
    const exited = once(owner, "exit");
    const pid = await poll(
      async () => {
        const text = await readFile(join(directory, "pid"), "utf8").catch(() => "");
        return text === "" ? undefined : Number(text);
      },
      { timeoutMs: 30_000 },
    );
    assert(pid !== undefined, "the owner started its server");
    expect(runs(pid)).toBe(true);
    owner.kill("SIGKILL");
    await exited;
    return pid;
  };

  test("leaves no server behind", async () => {
    expect(await gone(await startAndKillOwner(true))).toBe(true);
  });

  test("and whose guard failed too, has its server ended by the next start in that directory", async () => {
    const stale = await startAndKillOwner(false);
    expect(runs(stale)).toBe(true);
    const cluster = await start({ servers: 1 });
    expect(runs(stale)).toBe(false);
    expect(pidsOf(cluster)).not.toContain(stale);
  });

  test("does not let a later bearer of a recorded id be killed", async () => {
    const bystander = spawn("sleep", ["60"], { stdio: "ignore" });
    assert(bystander.pid !== undefined, "sleep runs");
    const identity = identify(bystander.pid);
    assert(identity !== undefined, "sleep runs");
    const earlier = { ...identity, startedAt: "1" };
    const cluster = await start({ servers: 1 });
    await cluster.stop();
    await writeFile(join(directory, "n1", "process.json"), JSON.stringify({ owner: earlier, child: earlier }));
    await start({ servers: 1 });
    expect(isAlive(identity)).toBe(true);
    bystander.kill();
  });
});
