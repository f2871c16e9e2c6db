import { join } from "node:path";
import { freePorts } from "../../cluster/free-ports.ts";
import { NatsServer } from "../../cluster/nats-server.ts";
import { poll } from "../../cluster/poll.ts";
import type { Draw } from "../draw.ts";
import { Link } from "../network/link.ts";
import type { NatsTap } from "../network/nats-tap.ts";
import type { Recorder } from "../recorder.ts";
import { Kept } from "./kept.ts";

/** Where the ports of a run begin: clients at +0, routes at +100, monitoring at +200, nodes at +300. */
export const PORT_BASE = 26_000;
const CLUSTER_NAME = "chaos";
/** A pool of several connections a peer is the servers' own default, and heals in pieces. */
const POOL_SIZE = 3;

interface Ports {
  readonly client: number;
  readonly route: number;
  readonly monitor: number;
  /** Nobody listens here: what the others are told, so that every route goes through its link. */
  readonly nowhere: number;
}

async function choosePorts(count: number): Promise<readonly Ports[]> {
  const rows = [0, 100, 200, 900];
  const wanted = rows.flatMap((row) => Array.from({ length: count }, (_, index) => PORT_BASE + row + index));
  const ports = await freePorts(wanted);
  const at = (row: number, index: number): number => ports[row * count + index] ?? 0;
  return Array.from({ length: count }, (_, index) => ({
    client: at(0, index),
    route: at(1, index),
    monitor: at(2, index),
    nowhere: at(3, index),
  }));
}

/** A server of the ring, kept running, with what leads to it. */
export interface RingServer {
  readonly name: string;
  readonly server: NatsServer;
  readonly kept: Kept;
  readonly clientPort: number;
}

/**
 * Three nats-servers each of whose routes to another goes through a link of its own, so that any part of the network
 * between them can be cut, in either direction, with no more rights than any program has.
 */
export class NatsRing {
  readonly servers: readonly RingServer[];
  /** By `n1>n2`: the link that n1 dials n2 through. Either of two servers may have dialled, so a cut shapes both. */
  readonly routes: ReadonlyMap<string, Link>;
  readonly #draw: Draw;

  private constructor(servers: readonly RingServer[], routes: ReadonlyMap<string, Link>, draw: Draw) {
    this.servers = servers;
    this.routes = routes;
    this.#draw = draw;
  }

  /** Starts the servers and waits until they take writes. */
  static async start(options: {
    readonly directory: string;
    readonly draw: Draw;
    readonly recorder: Recorder;
  }): Promise<NatsRing> {
    const { directory, recorder } = options;
    const draw = options.draw.child("routes");
    const names = ["n1", "n2", "n3"];
    const ports = await choosePorts(names.length);
    const routes = new Map<string, Link>();
    for (const [from, fromName] of names.entries())
      for (const [to, toName] of names.entries()) {
        if (from === to) continue;
        const name = `${fromName}>${toName}`;
        const random = draw.child(name);
        routes.set(name, await Link.start({ name, target: ports[to]?.route ?? 0, random: () => random.share() }));
      }
    const servers = names.map((name, index): RingServer => {
      const own = ports[index] ?? { client: 0, route: 0, monitor: 0, nowhere: 0 };
      const links = names.flatMap((other) => routes.get(`${name}>${other}`)?.port ?? []);
      const server = new NatsServer({
        name,
        directory: join(directory, name),
        clientPort: own.client,
        monitorPort: own.monitor,
        cluster: {
          name: CLUSTER_NAME,
          routePort: own.route,
          routePorts: links,
          poolSize: POOL_SIZE,
          advertisedPort: own.nowhere,
        },
        sync: "always",
      });
      return { name, server, kept: new Kept(server, recorder), clientPort: own.client };
    });
    const ring = new NatsRing(servers, routes, draw);
    await Promise.all(servers.map(({ kept }) => kept.up()));
    await ring.waitReady();
    return ring;
  }

  /** Waits until all servers are healthy and connected. */
  async waitReady(timeoutMs = 60_000): Promise<void> {
    await Promise.all(
      this.servers.map(({ server }) =>
        server.waitReady({
          peers: this.servers.filter(({ name }) => name !== server.name).map(({ name }) => name),
          timeoutMs,
        }),
      ),
    );
  }

  /** The server that a majority holds to be the leader of a stream; `undefined` while there is none. */
  async leader(stream: string): Promise<RingServer | undefined> {
    const views = await Promise.all(
      this.servers.map(async ({ server }) => (await server.streamLeaders())?.get(stream)),
    );
    return this.servers.find(({ name }) => views.filter((view) => view === name).length >= 2);
  }

  /** Waits for a leader; the first server when there is none in time. */
  async someLeader(stream: string, timeoutMs = 2_000): Promise<RingServer> {
    const found = await poll(() => this.leader(stream), { timeoutMs, intervalMs: 100 });
    const [first] = this.servers;
    if (found !== undefined) return found;
    if (first === undefined) throw new RangeError("a ring has servers");
    return first;
  }

  /** Links from one client to each server, in the order of the servers. */
  async linksFor(client: string, tap: NatsTap): Promise<readonly Link[]> {
    return Promise.all(
      this.servers.map(({ name, clientPort }) => {
        const random = this.#draw.child(`${client}>${name}`);
        return Link.start({ name: `${client}>${name}`, target: clientPort, random: () => random.share(), tap });
      }),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map(({ kept }) => kept.down("SIGTERM")));
    await Promise.all([...this.routes.values()].map((link) => link.close()));
  }

  async kill(): Promise<void> {
    await Promise.all(this.servers.map(({ kept }) => kept.down("SIGKILL")));
    await Promise.all([...this.routes.values()].map((link) => link.close()));
  }
}
