import { jetstreamManager } from "@nats-io/jetstream";
import type { StreamInfo } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { checkStreamSettings, streamName, streamSettings, type BucketOptions } from "../store/jetstream/bucket.ts";
import { openJetstreamStore } from "../store/jetstream/jetstream-store.ts";
import { StoreRefusal } from "../store/jetstream/store-refusal.ts";
import { checkAccess } from "./access-check.ts";
import { failure, ok, skipped, warning, type Check, type CheckName } from "./check.ts";
import type { StoreAddress } from "./store-address.ts";

/** Consumers of one stream: a node has one or two; beyond this many somebody leaves them behind. */
const CONSUMERS_GOOD = 64;
/** The servers' own default limit is 1,000. */
const CONSUMERS_MAX = 900;
const TIMEOUT_MS = 3_000;

const storeCheckNames: readonly CheckName[] = [
  "format",
  "replicas",
  "atomic-batches",
  "direct-gets",
  "rollup",
  "access",
  "duplicate-window",
  "stream-settings",
  "consumers",
];

const problemText = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** Whether the store is one that this program reads and writes; `undefined` when there is none yet. */
async function checkFormat(address: StoreAddress): Promise<Check | undefined> {
  const { connection, epoch, replicas, servers, shards, storage } = address;
  try {
    const store = await openJetstreamStore({
      ...{ epoch, replicas, servers, shards, storage },
      ...(connection === undefined ? {} : { connection }),
      create: false,
      clientId: "doctor",
      openTimeoutMs: TIMEOUT_MS,
    });
    await store.close();
    return ok("format", `the store of epoch ${address.epoch} has format ${store.meta.formatVersion}`);
  } catch (thrown) {
    if (!(thrown instanceof StoreRefusal)) return failure("format", `the store can't be read: ${problemText(thrown)}`);
    if (thrown.reason === "absent") return undefined;
    // A setting that differs is told by its own check.
    if (thrown.reason === "setting-differs") return warning("format", "not read: a stream's settings are not ours");
    return failure("format", thrown.message);
  }
}

const names = (streams: readonly StreamInfo[]): string => streams.map(({ config }) => config.name).join(", ");

/** Compares one setting of all streams with what the commit protocol needs. */
function checkSetting(
  streams: readonly StreamInfo[],
  check: {
    readonly name: CheckName;
    readonly holds: (config: StreamInfo["config"]) => boolean;
    readonly good: string;
    readonly bad: string;
  },
): Check {
  const wrong = streams.filter(({ config }) => !check.holds(config));
  return wrong.length === 0 ? ok(check.name, check.good) : failure(check.name, `${names(wrong)}: ${check.bad}`);
}

function checkReplicas(streams: readonly StreamInfo[], wanted: number): Check {
  const wrong = streams.filter(({ config }) => config.num_replicas !== wanted);
  if (wrong.length > 0)
    return failure("replicas", `${names(wrong)} has ${wrong[0]?.config.num_replicas} copies; ${wanted} are configured`);
  const behind = streams.flatMap(({ cluster }) =>
    (cluster?.replicas ?? []).filter(({ current, offline }) => offline || !current),
  );
  if (behind.length > 0)
    return warning(
      "replicas",
      `not every copy is up to date: ${[...new Set(behind.map(({ name }) => name))].join(", ")}`,
    );
  return ok("replicas", wanted === 1 ? "one copy: for tests alone" : `${wanted} copies, all up to date`);
}

function checkRemaining(streams: readonly StreamInfo[], options: BucketOptions): Check {
  for (const [shard, { config }] of streams.entries()) {
    try {
      checkStreamSettings(config, options, shard);
    } catch (thrown) {
      if (!(thrown instanceof StoreRefusal)) throw thrown;
      return failure("stream-settings", `${thrown.message}: ${JSON.stringify(thrown.details)}`);
    }
  }
  return ok("stream-settings", "everything else is as the commit protocol needs it");
}

function checkConsumers(streams: readonly StreamInfo[]): Check {
  const most = Math.max(...streams.map(({ state }) => state.consumer_count));
  const told = `a stream has ${most} consumers`;
  if (most > CONSUMERS_MAX)
    return failure("consumers", `${told}: they are left behind by somebody, and soon nobody can follow`);
  return most > CONSUMERS_GOOD ? warning("consumers", `${told}; a node needs one or two`) : ok("consumers", told);
}

function checkStreams(streams: readonly StreamInfo[], options: BucketOptions): readonly Check[] {
  const wanted = streamSettings(options, 0);
  return [
    checkReplicas(streams, options.replicas),
    checkSetting(streams, {
      name: "atomic-batches",
      holds: ({ allow_atomic }) => allow_atomic === true,
      good: "several keys can be written in one step",
      bad: "allow_atomic is off",
    }),
    checkSetting(streams, {
      name: "direct-gets",
      holds: ({ allow_direct }) => allow_direct,
      good: "whole snapshots can be read",
      bad: "allow_direct is off",
    }),
    checkSetting(streams, {
      name: "rollup",
      holds: ({ allow_rollup_hdrs }) => !allow_rollup_hdrs,
      good: "no writer of one key can wipe others",
      bad: "allow_rollup_hdrs is on",
    }),
    checkSetting(streams, {
      name: "duplicate-window",
      holds: ({ duplicate_window }) => duplicate_window >= (wanted.duplicate_window ?? 0),
      good: "repeated writes are recognised for two minutes or longer",
      bad: "duplicate_window is shorter than two minutes",
    }),
    checkRemaining(streams, options),
    checkConsumers(streams),
  ];
}

/** Looks at the store itself. Nothing is changed, and nothing is made. */
export async function checkStore(address: StoreAddress): Promise<readonly Check[]> {
  const format = await checkFormat(address);
  if (format === undefined)
    return storeCheckNames.map((name) => skipped(name, `there is no store of epoch ${address.epoch} yet`));
  const nats = await connect({
    ...address.connection,
    servers: [...address.servers],
    name: "mandate doctor",
    timeout: TIMEOUT_MS,
  });
  try {
    const manager = await jetstreamManager(nats, { checkAPI: false, timeout: TIMEOUT_MS });
    const streams = await Promise.all(
      Array.from({ length: address.shards }, (_, shard) => manager.streams.info(streamName(address.epoch, shard))),
    );
    return [format, ...checkStreams(streams, address), await checkAccess(address)];
  } catch (thrown) {
    return [
      format,
      ...storeCheckNames
        .slice(1)
        .map((name) => skipped(name, `the streams can't be looked at: ${problemText(thrown)}`)),
    ];
  } finally {
    await nats.close();
  }
}
