/** What one nats-server of a local cluster is told. Everything listens on 127.0.0.1. */
export interface NatsServerSettings {
  /** Unique in the cluster and the same at every start: the server's place in the Raft groups hangs on it. */
  readonly name: string;
  readonly clientPort: number;
  readonly monitorPort: number;
  readonly storeDirectory: string;
  /** Absent for a single server. `routePorts` are those of all servers, this one's own among them. */
  readonly cluster?: {
    readonly name: string;
    readonly routePort: number;
    readonly routePorts: readonly number[];
    /** Connections a peer; -1 (the default here) for one. */
    readonly poolSize?: number;
    /** What the other servers are told of as this one's route port, in the place of the real one: routes then go only where `routePorts` says. */
    readonly advertisedPort?: number;
  };
  /** `always`: what is acknowledged is on disk on a majority, power failure or not. Default: every two minutes. */
  readonly sync?: "always";
  readonly storage?: StorageLimits;
  /** Absent: everybody who can connect may do everything, for tests and for `npm start`. */
  readonly security?: NatsSecurity;
}

/** Who may connect, and what encrypts it. */
export interface NatsSecurity {
  /** Nobody else is let in. */
  readonly accounts: readonly NatsAccount[];
  readonly tls: NatsTls;
}

/** Files in PEM form. Servers show each other the same certificate: whoever has one of this CA can be a server. */
export interface NatsTls {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

/** An account: subjects of its own, which no other account sees. */
export interface NatsAccount {
  readonly name: string;
  /** Whether it may keep streams. */
  readonly jetstream?: boolean;
  readonly users: readonly NatsUser[];
  /** What it answers for the accounts that are named. */
  readonly exports?: readonly { readonly service: string; readonly accounts: readonly string[] }[];
  readonly imports?:
    | undefined
    | readonly { readonly service: { readonly account: string; readonly subject: string } }[];
}

export interface NatsUser {
  /** The public key. */
  readonly nkey: string;
  readonly permissions: {
    readonly publish: { readonly allow: readonly string[] };
    readonly subscribe: { readonly allow: readonly string[] };
  };
}

/** How much JetStream may keep, in bytes; the server's own defaults (all the disk, three quarters of memory) if absent. */
export interface StorageLimits {
  readonly fileBytesMax?: number;
  readonly memoryBytesMax?: number;
}

const HOST = "127.0.0.1";

/** The accounts as a part of a configuration file, which takes JSON. */
export function renderAccounts(accounts: readonly NatsAccount[]): string {
  const rendered = accounts.map(({ name, jetstream, ...account }) => [
    name,
    { ...(jetstream === true ? { jetstream: "enabled" } : {}), ...account },
  ]);
  return `accounts: ${JSON.stringify(Object.fromEntries(rendered), null, 2)}`;
}

const renderTls = ({ certFile, keyFile, caFile }: NatsTls, further: readonly string[] = []): string[] => [
  "tls {",
  `  cert_file: ${JSON.stringify(certFile)}`,
  `  key_file: ${JSON.stringify(keyFile)}`,
  `  ca_file: ${JSON.stringify(caFile)}`,
  ...further,
  "}",
];

/**
 * The configuration file. Where it departs from the server's defaults: many nodes that commit at once need more open
 * batches than 50, and an abandoned one must not hold its place for long; a dead client is noticed in seconds; one
 * connection a peer (`pool_size: -1`) heals as a whole after a partition, with far fewer false refusals from a former
 * leader.
 */
export function renderNatsConfig(settings: NatsServerSettings): string {
  const { cluster, security, storage } = settings;
  const lines = [
    `server_name: ${JSON.stringify(settings.name)}`,
    `listen: "${HOST}:${settings.clientPort}"`,
    `http: "${HOST}:${settings.monitorPort}"`,
    "max_payload: 8MB",
    'ping_interval: "5s"',
    "ping_max: 2",
    'write_deadline: "10s"',
    "jetstream {",
    `  store_dir: ${JSON.stringify(settings.storeDirectory)}`,
    ...(settings.sync === undefined ? [] : [`  sync_interval: ${settings.sync}`]),
    ...(storage?.fileBytesMax === undefined ? [] : [`  max_file_store: ${storage.fileBytesMax}`]),
    ...(storage?.memoryBytesMax === undefined ? [] : [`  max_memory_store: ${storage.memoryBytesMax}`]),
    "  limits {",
    '    duplicate_window: "5m"',
    '    batch { max_inflight_per_stream: 500, max_inflight_total: 2000, timeout: "3s" }',
    "  }",
    "}",
  ];
  if (cluster !== undefined) {
    const routes = cluster.routePorts.map((port) => `"nats-route://${HOST}:${port}"`).join(", ");
    lines.push(
      "cluster {",
      `  name: ${JSON.stringify(cluster.name)}`,
      `  listen: "${HOST}:${cluster.routePort}"`,
      `  pool_size: ${cluster.poolSize ?? -1}`,
      `  routes: [${routes}]`,
      ...(cluster.advertisedPort === undefined ? [] : [`  cluster_advertise: "${HOST}:${cluster.advertisedPort}"`]),
      // Under TLS clients keep to the names that they were given: what servers tell of each other are addresses, and
      // certificates don't name those.
      ...(cluster.advertisedPort === undefined && security === undefined ? [] : ["  no_advertise: true"]),
      // Who reached the route port unasked would be a server, and past every right of every user.
      ...(security === undefined ? [] : renderTls(security.tls, ["  verify: true"]).map((line) => `  ${line}`)),
      "}",
    );
  }
  if (security !== undefined) lines.push(...renderTls(security.tls), renderAccounts(security.accounts));
  return `${lines.join("\n")}\n`;
}
