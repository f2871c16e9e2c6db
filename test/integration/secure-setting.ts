import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeyAuthenticator, type NatsConnection } from "@nats-io/nats-core";
import { connect, type NodeConnectionOptions } from "@nats-io/transport-node";
import { startNatsCluster, type NatsCluster } from "../../cluster/nats-cluster.ts";
import { poll } from "../../cluster/poll.ts";
import { assert } from "../../src/base/assert.ts";
import { silentLog, type Log } from "../../src/base/log.ts";
import { readConfig } from "../../src/config.ts";
import { natsConnectionOf } from "../../src/node/nats-login.ts";
import { Node } from "../../src/node/node.ts";
import { makeProfile, type Profile } from "../../src/secure/profile.ts";
import { workerInboxPrefix, type WorkerScope } from "../../src/wire/nats-rights.ts";

export const acme = { tenantId: "acme", applicationId: "shop" } as const;
export const globex = { tenantId: "globex", applicationId: "shop" } as const;
/** The users of workers that the profile knows, in order. */
const workers: readonly WorkerScope[] = [acme, globex, { ...acme, name: "named" }];

interface NewNode {
  readonly seedFile?: string;
  readonly log?: Log;
  /** Further settings. */
  readonly environment?: { readonly [variable: string]: string };
}

/** Three nats-servers in the secure profile, one node, and connections with whatever key a test likes. */
export class SecureSetting {
  readonly nats: NatsCluster;
  readonly profile: Profile;
  readonly directory: string;
  readonly #closers: (() => Promise<unknown>)[] = [];
  node: Node | undefined;

  private constructor(parts: { nats: NatsCluster; profile: Profile; directory: string }) {
    this.nats = parts.nats;
    this.profile = parts.profile;
    this.directory = parts.directory;
  }

  static async start(): Promise<SecureSetting> {
    const directory = await mkdtemp(join(tmpdir(), "mandate-secure-"));
    const profile = await makeProfile({
      directory: join(directory, "keys"),
      now: Date.now(),
      ...{ epoch: "main", shards: 2 },
      // What is reached by an address is checked as localhost by the client library.
      servers: [{ name: "local", hosts: ["127.0.0.1", "localhost"] }],
      nodes: ["node-1"],
      httpHosts: ["127.0.0.1"],
      workers,
    });
    const tls = profile.tls.get("local");
    assert(tls !== undefined, "the profile has the server's certificate");
    const nats = await startNatsCluster({
      servers: 3,
      directory: join(directory, "nats"),
      security: { accounts: profile.accounts, tls },
    });
    return new SecureSetting({ nats, profile, directory });
  }

  /** A node that is ready, or not, as its key allows. */
  async startNode(options: NewNode = {}): Promise<Node> {
    const seedFile = options.seedFile ?? this.profile.nodeSeedFiles[0];
    const config = readConfig({
      MANDATE_NATS_SERVERS: this.nats.urls.join(","),
      MANDATE_NATS_NKEY_SEED_FILE: seedFile,
      MANDATE_NATS_TLS_CA: this.profile.caFile,
      MANDATE_HTTP_PORT: "0",
      MANDATE_NODE_ID: "node-1",
      MANDATE_SHARDS: "2",
      MANDATE_STORAGE: "memory",
      MANDATE_SHUTDOWN_GRACE_MS: "1000",
      ...options.environment,
    });
    const node = await Node.listen({ config, log: options.log ?? silentLog, version: "0.0.0" });
    this.onClose(() => node.stop());
    return node;
  }

  /** How the node of the profile connects. */
  nodeConnection(): NodeConnectionOptions {
    const [seedFile] = this.profile.nodeSeedFiles;
    return natsConnectionOf({
      natsTlsCa: this.profile.caFile,
      ...(seedFile === undefined ? {} : { natsNkeySeedFile: seedFile }),
    });
  }

  async startReadyNode(options: NewNode = {}): Promise<Node> {
    const node = await this.startNode(options);
    await node.run();
    const ready = await poll(async () => ((await fetch(`${node.url}/readyz`)).ok ? true : undefined), {
      timeoutMs: 60_000,
      intervalMs: 100,
    });
    assert(ready === true, "the node became ready");
    this.node = node;
    return node;
  }

  /** The seed of a worker of the profile. */
  async seedOf(scope: WorkerScope): Promise<string> {
    return readFile(this.profile.workerSeedFiles[workers.indexOf(scope)] ?? "", "utf8");
  }

  get namedWorker(): WorkerScope {
    return workers[2] ?? acme;
  }

  /** A connection of a worker that means no good: it has its own key, and does by hand what it likes. */
  async connectAs(scope: WorkerScope, options: NodeConnectionOptions = {}): Promise<NatsConnection> {
    const seed = new TextEncoder().encode((await this.seedOf(scope)).trim());
    return this.connect({
      authenticator: nkeyAuthenticator(seed),
      inboxPrefix: workerInboxPrefix(scope),
      ...options,
    });
  }

  /** A connection with the node's own key. */
  connectAsNode(): Promise<NatsConnection> {
    return this.connect(this.nodeConnection());
  }

  async connect(options: NodeConnectionOptions): Promise<NatsConnection> {
    const connection = await connect({
      servers: this.nats.urls,
      tls: { caFile: this.profile.caFile },
      reconnect: false,
      timeout: 10_000,
      ...options,
    });
    this.onClose(() => connection.close());
    return connection;
  }

  onClose(closer: () => Promise<unknown>): void {
    this.#closers.push(closer);
  }

  async close(): Promise<void> {
    for (const closer of this.#closers.toReversed()) await closer();
    await this.nats.killAll();
    await rm(this.directory, { recursive: true, force: true });
  }
}
