import { failure, ok, skipped, warning, type Check } from "./check.ts";
import { isSilent, type MonitorView, type ServerView, type Silent } from "./servers.ts";

/** The oldest server that is taken: asserts within atomic batches are broken shortly before it. */
const VERSION_MIN = "2.15.1";
/** A payload of 4 MiB with its envelope must fit into a message (contract 5.6). */
const MAX_PAYLOAD_MIN = 5 * 1024 * 1024;
const FREE_SHARE_MIN = 0.02;
const FREE_SHARE_GOOD = 0.15;

export interface ServerExpectations {
  readonly sync: "always" | "any";
  readonly storage: "file" | "memory";
  readonly clockSkewMaxMs: number;
  /** Addresses of all servers: each of them should be seen. */
  readonly servers?: readonly string[];
}

function isOlder(version: string, least: string): boolean {
  const parts = (text: string): number[] => text.split(/[.-]/).slice(0, 3).map(Number);
  const differing = parts(version)
    .map((part, index) => part - (parts(least)[index] ?? 0))
    .find((difference) => difference !== 0);
  return (differing ?? 0) < 0 || !/^\d+\.\d+\.\d+/.test(version);
}

const list = (names: readonly string[]): string => names.join(", ");

/** What the servers themselves say; nothing else can be judged when none answers. */
export function checkServers(views: readonly (ServerView | Silent)[]): readonly Check[] {
  const silent = views.filter(isSilent);
  const servers = views.filter((view): view is ServerView => !isSilent(view));
  const away = silent.map(({ address, problem }) => `${address} (${problem})`);
  if (servers.length === 0) return [failure("servers", `no NATS server can be reached: ${list(away)}`)];
  const old = servers.filter(({ version }) => isOlder(version, VERSION_MIN));
  const bare = servers.filter(({ jetstream }) => !jetstream);
  const narrow = servers.filter(({ maxPayloadBytes }) => maxPayloadBytes < MAX_PAYLOAD_MIN);
  return [
    away.length > 0
      ? warning("servers", `${servers.length} of ${views.length} NATS servers answer; not: ${list(away)}`)
      : ok("servers", `all ${servers.length} NATS servers answer`),
    old.length > 0
      ? failure(
          "server-version",
          `${list(old.map(({ name, version }) => `${name} is ${version}`))}; at least ${VERSION_MIN} is needed`,
        )
      : ok("server-version", `NATS ${list([...new Set(servers.map(({ version }) => version))])}`),
    bare.length > 0
      ? failure("jetstream", `JetStream is off on ${list(bare.map(({ name }) => name))}`)
      : ok("jetstream", "JetStream is on"),
    narrow.length > 0
      ? failure(
          "max-payload",
          `${list(narrow.map(({ name, maxPayloadBytes }) => `${name} takes ${maxPayloadBytes} bytes`))} a message; set max_payload to ${MAX_PAYLOAD_MIN} or more (8MB is good)`,
        )
      : ok(
          "max-payload",
          `messages of ${Math.min(...servers.map(({ maxPayloadBytes }) => maxPayloadBytes))} bytes are taken`,
        ),
  ];
}

function checkSync(monitors: readonly MonitorView[], expected: ServerExpectations): Check {
  if (expected.storage === "memory") return skipped("sync", "the data are in memory");
  const lazy = monitors.filter(({ syncAlways }) => syncAlways === false).map(({ name }) => name);
  if (lazy.length === 0) return ok("sync", "whatever is acknowledged is on disk");
  const told = `${list(lazy)} write to disk every two minutes: a power failure of a majority loses acknowledged work; set jetstream { sync_interval: always }`;
  return expected.sync === "always" ? failure("sync", told) : warning("sync", told);
}

function checkRoutes(monitors: readonly MonitorView[]): Check {
  const clustered = monitors.flatMap(({ name, cluster }) => (cluster === undefined ? [] : [{ name, ...cluster }]));
  if (clustered.length === 0) return ok("routes", "a single server has no routes");
  const cut = clustered.filter(({ connected, peers }) => connected < peers);
  return cut.length > 0
    ? warning(
        "routes",
        list(cut.map(({ name, connected, peers }) => `${name} is connected to ${connected} of ${peers} others`)),
      )
    : ok("routes", "all servers are connected to each other");
}

function checkClock(monitors: readonly MonitorView[], { clockSkewMaxMs }: ServerExpectations): Check {
  const surely = ({ clockOffsetMs, clockUncertaintyMs }: MonitorView): number =>
    Math.max(0, Math.abs(clockOffsetMs) - clockUncertaintyMs);
  const off = monitors.filter((view) => surely(view) > clockSkewMaxMs);
  const worst = Math.round(Math.max(...monitors.map(surely)));
  return off.length > 0
    ? failure(
        "clock",
        `the clock of ${list(off.map(({ name, clockOffsetMs }) => `${name} differs by ${Math.round(clockOffsetMs)} ms`))}; ${clockSkewMaxMs} ms are allowed`,
      )
    : ok("clock", `the servers' clocks agree with this machine's to ${worst} ms`);
}

function checkSpace(monitors: readonly MonitorView[], expected: ServerExpectations): Check {
  if (expected.storage === "memory") return skipped("free-space", "the data are in memory");
  const shares = monitors.flatMap(({ name, storageBytesMax, storageBytesUsed }) =>
    storageBytesMax === undefined || storageBytesMax <= 0 || storageBytesUsed === undefined
      ? []
      : [{ name, free: 1 - storageBytesUsed / storageBytesMax }],
  );
  const least = shares.toSorted((left, right) => left.free - right.free)[0];
  if (least === undefined) return skipped("free-space", "no server says how much it may store");
  const told = `${least.name} has ${Math.round(least.free * 100)} % of its storage left`;
  if (least.free < FREE_SHARE_MIN) return failure("free-space", told);
  return least.free < FREE_SHARE_GOOD ? warning("free-space", told) : ok("free-space", told);
}

/** What only the monitoring addresses can tell; a warning for each thing that could not be seen. */
export function checkMonitors(
  views: readonly (MonitorView | Silent)[],
  expected: ServerExpectations,
): readonly Check[] {
  const monitors = views.filter((view): view is MonitorView => !isSilent(view));
  const unseen = (name: "routes" | "sync" | "clock" | "free-space"): Check =>
    warning(
      name,
      views.length === 0
        ? "not looked at: no monitoring address is given (MANDATE_NATS_MONITOR_URLS)"
        : "not looked at: no monitoring address answers",
    );
  if (monitors.length === 0) return [unseen("routes"), unseen("sync"), unseen("clock"), unseen("free-space")];
  const all = Math.max(views.length, expected.servers?.length ?? 0);
  const checks = [
    checkRoutes(monitors),
    checkSync(monitors, expected),
    checkClock(monitors, expected),
    checkSpace(monitors, expected),
  ];
  // What holds for those that were seen says nothing about the others.
  return checks.map((check) =>
    check.verdict === "ok" && monitors.length < all
      ? warning(check.name, `${check.explanation}, as far as was seen: ${monitors.length} of ${all} servers`)
      : check,
  );
}
