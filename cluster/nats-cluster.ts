import { join } from "node:path";
import type { Log } from "../src/base/log.ts";
import { silentLog } from "../src/base/log.ts";
import { ClusterError } from "./cluster-error.ts";
import { freePorts } from "./free-ports.ts";
import type { NatsSecurity, StorageLimits } from "./nats-config.ts";
import { findNatsServer } from "./nats-server-binary.ts";
import { NatsServer } from "./nats-server.ts";
import { poll } from "./poll.ts";

/** What {@link startNatsCluster} is asked for. */
export interface NatsClusterOptions {
  /** 1: a single server, for tests and benchmarks. 3: survives the loss of any one. */
  readonly servers: 1 | 3;
  /** Each server has a folder in it; starting again in the same directory finds the data. */
  readonly directory: string;
  /**
   * The usual ports: server i listens at `base + i`, to its peers at `base + 100 + i`, to monitoring at `base + 200 +
   * i`. A taken one is replaced by a free one. Absent: any free ports.
   */
  readonly portBase?: number;
  readonly sync?: "always";
  readonly storage?: StorageLimits;
  /** Who may connect, under TLS; the certificate is for 127.0.0.1. Absent: everybody. */
  readonly security?: NatsSecurity;
  readonly log?: Log;
}

const START_ATTEMPTS = 3;
const CLUSTER_NAME = "mandate";

/** The running servers of {@link startNatsCluster}. */
export class NatsCluster {
  readonly servers: readonly NatsServer[];
  /** The usual ports that were taken, each with the one that was used in its place. */
  readonly movedPorts: readonly { readonly wanted: number; readonly used: number }[];

  constructor(servers: readonly NatsServer[], movedPorts: NatsCluster["movedPorts"]) {
    this.servers = servers;
    this.movedPorts = movedPorts;
  }

  /** Where clients connect, one address a server. */
  get urls(): string[] {
    return this.servers.map(({ url }) => url);
  }

  /**
   * The server of that name.
   *
   * @throws ClusterError `PROGRAM_MISSING` when there is none.
   */
  server(name: string): NatsServer {
    const found = this.servers.find((server) => server.name === name);
    if (found === undefined) throw new ClusterError("PROGRAM_MISSING", `no server ${name} in this cluster`);
    return found;
  }

  /** Waits until every running server is ready and connected to every other running one. */
  async waitReady(timeoutMs?: number): Promise<void> {
    const running = this.servers.filter((server) => server.running && !server.paused);
    await Promise.all(
      running.map((server) => {
        const peers = running.filter((peer) => peer !== server).map(({ name }) => name);
        return server.waitReady({ peers, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
      }),
    );
  }

  /** Starts a server that ended again, with its data, and waits until it is ready among the running ones. */
  async restart(server: NatsServer): Promise<void> {
    await server.start();
    await this.waitReady();
  }

  /**
   * The server that leads a stream now: the one that says so of itself; `undefined` while none does. Asked through the
   * monitoring endpoint. For some seconds around a partition two may say so, and the first is named.
   */
  async leaderOf(stream: string): Promise<NatsServer | undefined> {
    const asked = this.servers.filter((server) => server.running && !server.paused);
    const views = await Promise.all(asked.map(async (server) => ({ server, leaders: await server.streamLeaders() })));
    return views.find(({ server, leaders }) => leaders?.get(stream) === server.name)?.server;
  }

  /**
   * Waits for a stream to have a leader.
   *
   * @throws ClusterError `PROCESS_NOT_READY` when there was none within `timeoutMs` (30 s).
   */
  async waitLeader(stream: string, timeoutMs = 30_000): Promise<NatsServer> {
    const leader = await poll(() => this.leaderOf(stream), { timeoutMs, intervalMs: 50 });
    if (leader === undefined)
      throw new ClusterError("PROCESS_NOT_READY", `stream ${stream} had no leader within ${timeoutMs} ms`, {
        details: { stream },
      });
    return leader;
  }

  /** Ends every server in good order; none is left when this answers. The data stay. */
  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  /** Ends every server at once with SIGKILL. The data stay. */
  async killAll(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill("SIGKILL")));
  }
}

async function layOut(options: NatsClusterOptions, keepUsual: boolean): Promise<NatsCluster> {
  const { servers: count, directory, portBase } = options;
  const indexes = Array.from({ length: count }, (_, index) => index);
  const wanted = [0, 100, 200].flatMap((offset) =>
    indexes.map((index) => (portBase === undefined || !keepUsual ? undefined : portBase + offset + index)),
  );
  const ports = await freePorts(wanted);
  const port = (row: number, index: number): number => ports[row * count + index] ?? 0;
  const routePorts = indexes.map((index) => port(1, index));
  const servers = indexes.map((index) => {
    const name = `n${index + 1}`;
    return new NatsServer({
      name,
      directory: join(directory, name),
      clientPort: port(0, index),
      monitorPort: port(2, index),
      ...(count === 1 ? {} : { cluster: { name: CLUSTER_NAME, routePort: port(1, index), routePorts } }),
      ...(options.sync === undefined ? {} : { sync: options.sync }),
      ...(options.storage === undefined ? {} : { storage: options.storage }),
      ...(options.security === undefined ? {} : { security: options.security }),
    });
  });
  const movedPorts = wanted.flatMap((usual, place) => {
    const used = ports[place];
    return usual === undefined || used === undefined || used === usual ? [] : [{ wanted: usual, used }];
  });
  return new NatsCluster(servers, movedPorts);
}

async function startAll(cluster: NatsCluster, log: Log): Promise<void> {
  const starts = await Promise.allSettled(
    cluster.servers.map(async (server) => {
      const reaped = await server.start();
      if (reaped !== undefined)
        log.warn({ server: server.name, pid: reaped }, "ended a nats-server that an earlier run left behind");
    }),
  );
  for (const start of starts) if (start.status === "rejected") throw start.reason;
  await cluster.waitReady();
}

/**
 * Starts one nats-server or a cluster of three on 127.0.0.1 and waits until it takes writes. A server left running in
 * the directory by a process that was killed is ended first. Whatever fails, nothing is left running.
 *
 * @throws ClusterError `NATS_SERVER_UNAVAILABLE`, `NO_FREE_PORT`, `DIRECTORY_IN_USE` (the directory serves a living
 * process), `PROCESS_EXITED` or `PROCESS_NOT_READY` (with the log's place).
 */
export async function startNatsCluster(options: NatsClusterOptions): Promise<NatsCluster> {
  const log = options.log ?? silentLog;
  await findNatsServer({ log });
  for (let attempt = 1; ; attempt++) {
    // A port can be taken in the instant between the look and its use: then the server ends, and others are tried.
    const cluster = await layOut(options, attempt < START_ATTEMPTS);
    for (const { wanted, used } of cluster.movedPorts)
      log.warn({ wanted, used }, "a usual port is taken; another is used");
    try {
      await startAll(cluster, log);
      return cluster;
    } catch (thrown) {
      await cluster.killAll();
      const again = thrown instanceof ClusterError && thrown.code === "PROCESS_EXITED" && attempt < START_ATTEMPTS;
      if (!again) throw thrown;
      log.warn({ attempt }, "a nats-server ended while the cluster came up; trying again");
    }
  }
}
