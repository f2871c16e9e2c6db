import { join } from "node:path";
import { AuthorityProcess } from "../../cluster/authority-process.ts";
import { authorityProgram } from "../../cluster/authority-program.ts";
import { freePorts } from "../../cluster/free-ports.ts";
import { Front } from "../../cluster/front.ts";
import { GuardedProcess } from "../../cluster/guarded-process.ts";
import { startNatsCluster, type NatsCluster } from "../../cluster/nats-cluster.ts";
import type { Log } from "../base/log.ts";
import { Supervisor } from "./supervisor.ts";

export interface LocalClusterOptions {
  /** Data and logs; starting again in the same folder goes on with them. */
  readonly directory: string;
  /** The address in front of the nodes; the next free port when it is taken. */
  readonly port: number;
  readonly nodes: number;
  readonly log: Log;
  /** What is being waited for. */
  readonly onStep: (text: string) => void;
  /** Something that a person at the terminal wants to know. */
  readonly onNews: (text: string) => void;
}

const NATS_PORT_BASE = 7_720;
const NODE_PORT_BASE = 7_750;
const PORTS_TRIED = 100;
const EPOCH = "local";
const STOP_GRACE_MS = 4_000;

/**
 * Keys, certificates and credentials that the person's environment holds are of another deployment: this one is open, and
 * has to do with none of them.
 */
const withoutCredentials: { readonly [variable: string]: undefined } = {
  MANDATE_KEYS: undefined,
  MANDATE_TOKEN: undefined,
  MANDATE_TOKEN_FILE: undefined,
  MANDATE_HTTP_TLS_CERT: undefined,
  MANDATE_HTTP_TLS_KEY: undefined,
  MANDATE_NATS_USER: undefined,
  MANDATE_NATS_PASSWORD: undefined,
  MANDATE_NATS_TOKEN: undefined,
  MANDATE_NATS_NKEY_SEED_FILE: undefined,
  MANDATE_NATS_CREDS_FILE: undefined,
  MANDATE_NATS_TLS_CA: undefined,
  MANDATE_NATS_TLS_CERT: undefined,
  MANDATE_NATS_TLS_KEY: undefined,
  MANDATE_NATS_INBOX_PREFIX: undefined,
};

/** The first port from `port` on that nobody listens on. */
async function nextFreePort(port: number): Promise<number> {
  for (let candidate = port; candidate < Math.min(port + PORTS_TRIED, 65_536); candidate++) {
    const [free] = await freePorts([candidate]);
    if (free === candidate) return candidate;
  }
  const [any] = await freePorts([undefined]);
  return any ?? port;
}

/**
 * A whole deployment on this machine: three nats-servers, authority nodes, one address in front of them and, if wanted, a
 * demo worker. Processes that end are started again; all end with this one.
 */
export class LocalCluster {
  readonly #options: LocalClusterOptions;
  readonly #supervisor: Supervisor;
  readonly #nats: NatsCluster;
  readonly #nodes: readonly AuthorityProcess[];
  readonly #front: Front;
  #worker: GuardedProcess | undefined;

  private constructor(
    options: LocalClusterOptions,
    parts: { supervisor: Supervisor; nats: NatsCluster; nodes: readonly AuthorityProcess[]; front: Front },
  ) {
    this.#options = options;
    this.#supervisor = parts.supervisor;
    this.#nats = parts.nats;
    this.#nodes = parts.nodes;
    this.#front = parts.front;
  }

  /**
   * Starts everything and waits until the front answers. Whatever fails, nothing is left running.
   *
   * @throws ClusterError
   */
  static async start(options: LocalClusterOptions): Promise<LocalCluster> {
    const { directory, log, onStep, onNews } = options;
    onStep("starting three nats-servers");
    const nats = await startNatsCluster({
      servers: 3,
      directory: join(directory, "nats"),
      portBase: NATS_PORT_BASE,
      sync: "always",
      log,
    });
    const supervisor = new Supervisor({ log, onNews });
    const begun: AuthorityProcess[] = [];
    try {
      for (const { wanted, used } of nats.movedPorts) onNews(`port ${wanted} is taken; NATS uses ${used}`);
      onStep(`starting ${options.nodes} authority node${options.nodes === 1 ? "" : "s"}`);
      begun.push(...(await makeNodes(options, nats)));
      await Promise.all(begun.map((node) => node.start()));
      const port = await nextFreePort(options.port);
      if (port !== options.port) onNews(`port ${options.port} is taken; the front uses ${port}`);
      const front = await Front.start({ backends: begun.map(({ url }) => url), port, log });
      const cluster = new LocalCluster(options, { supervisor, nats, nodes: begun, front });
      onStep("waiting for a node to be ready");
      await Promise.any(begun.map((node) => node.waitReady()));
      await front.waitHealthy(1);
      cluster.#watch();
      return cluster;
    } catch (thrown) {
      supervisor.stop();
      await Promise.all(begun.map((node) => node.kill()));
      await nats.killAll();
      // Of several nodes that could not start the first one's reason is as good as any.
      throw thrown instanceof AggregateError ? thrown.errors[0] : thrown;
    }
  }

  get url(): string {
    return this.#front.url;
  }

  get natsUrls(): readonly string[] {
    return this.#nats.urls;
  }

  /** What `mandate doctor` has to be told to look at this cluster's store. */
  get storeFlags(): string {
    const servers = this.#nats.urls.map((url) => url.replace("nats://", "")).join(",");
    const monitors = this.#nats.servers.map(({ monitorUrl }) => monitorUrl).join(",");
    return `--epoch ${EPOCH} --nats ${servers} --nats-monitor ${monitors}`;
  }

  get nodes(): readonly { readonly name: string; readonly pid: number | undefined; readonly url: string }[] {
    return this.#nodes.map(({ name, pid, url }) => ({ name, pid, url }));
  }

  get natsPids(): readonly (number | undefined)[] {
    return this.#nats.servers.map(({ pid }) => pid);
  }

  get workerPid(): number | undefined {
    return this.#worker?.running === true ? this.#worker.pid : undefined;
  }

  /** Starts the demo worker, as a process of its own. */
  async startWorker(): Promise<void> {
    const program = authorityProgram();
    const start = async (): Promise<GuardedProcess> => {
      this.#worker = await GuardedProcess.start({
        name: "worker",
        program: program.program,
        arguments: [...program.arguments, "worker", "--nats", this.#nats.urls.join(",")],
        directory: join(this.#options.directory, "worker"),
        env: withoutCredentials,
      });
      return this.#worker;
    };
    await start();
    this.#supervisor.watch({
      name: "the demo worker",
      exited: () => this.#worker?.exited,
      start: async () => {
        const { pid } = await start();
        return `pid ${pid}`;
      },
    });
  }

  /** Waits until every node is ready; `false` when that takes too long. */
  async waitAllReady(timeoutMs: number): Promise<boolean> {
    return this.#front.waitHealthy(this.#nodes.length, timeoutMs);
  }

  /** Ends everything in good order: the worker gives its work back, nodes finish what they do, then NATS. */
  async stop(): Promise<void> {
    this.#supervisor.stop();
    await this.#worker?.stop(STOP_GRACE_MS);
    await this.#front.stop();
    await Promise.all(this.#nodes.map((node) => node.stop(STOP_GRACE_MS)));
    await this.#nats.stop();
  }

  /** Ends everything at once. */
  async kill(): Promise<void> {
    this.#supervisor.stop();
    await Promise.all([this.#worker?.kill(), ...this.#nodes.map((node) => node.kill())]);
    await this.#nats.killAll();
  }

  #watch(): void {
    for (const node of this.#nodes)
      this.#supervisor.watch({
        name: `node ${node.name}`,
        exited: () => node.exited,
        start: async () => {
          await node.start();
          await node.waitReady();
          return `pid ${node.pid}, ready`;
        },
      });
    for (const server of this.#nats.servers)
      this.#supervisor.watch({
        name: `nats-server ${server.name}`,
        exited: () => server.exited,
        start: async () => {
          await server.start();
          return `pid ${server.pid}`;
        },
      });
  }
}

async function makeNodes(options: LocalClusterOptions, nats: NatsCluster): Promise<readonly AuthorityProcess[]> {
  const names = Array.from({ length: options.nodes }, (_, index) => `a${index + 1}`);
  const ports = await freePorts(names.map((_, index) => NODE_PORT_BASE + index));
  return names.map((name, index) => {
    const port = ports[index] ?? 0;
    const directory = join(options.directory, "nodes", name);
    return new AuthorityProcess({
      name,
      directory,
      url: `http://127.0.0.1:${port}`,
      env: {
        MANDATE_NATS_SERVERS: nats.urls.map((url) => url.replace("nats://", "")).join(","),
        MANDATE_NATS_MONITOR_URLS: nats.servers.map(({ monitorUrl }) => monitorUrl).join(","),
        ...withoutCredentials,
        MANDATE_HTTP_HOST: "127.0.0.1",
        MANDATE_HTTP_PORT: String(port),
        MANDATE_NODE_ID: name,
        MANDATE_EPOCH: EPOCH,
        MANDATE_SHARDS: "1",
        MANDATE_REPLICAS: "3",
        MANDATE_STORAGE: "file",
        MANDATE_SYNC: "always",
        MANDATE_STATE_DIR: directory,
        MANDATE_ALLOW: undefined,
        MANDATE_SHUTDOWN_GRACE_MS: "2000",
      },
    });
  });
}
