import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { MsgHdrs, NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { decodeEntry } from "./decode-entry.ts";
import type { EntryLine } from "./history.ts";
import type { Inspection } from "./leftovers.ts";
import { pause } from "../src/sdk/backoff.ts";
import type { NatsRing } from "./system/nats-ring.ts";
import { EPOCH, streamOf } from "./system/setting.ts";

const HEADER_PREFIX = "Mandate-";
const OPERATIONS_HEADER = "Mandate-Operations";
/** A consumer of a node that was killed vanishes by itself after half a minute. */
const CONSUMERS_GONE_MS = 45_000;

const dial = (ring: NatsRing): Promise<NatsConnection> =>
  connect({ servers: ring.servers.map(({ server }) => server.url), timeout: 5_000 });

/** Header values are escaped: `%XX` for an ASCII character, `%uXXXX` for any other UTF-16 code unit. */
const unescapeText = (text: string): string =>
  text.replaceAll(/%(?:u([0-9A-F]{4})|([0-9A-F]{2}))/g, (_, wide: string | undefined, narrow: string | undefined) =>
    String.fromCharCode(Number.parseInt(wide ?? narrow ?? "", 16)),
  );

function readHeaders(headers: MsgHdrs | undefined): Pick<EntryLine, "operations" | "provenance"> {
  const provenance: { [name: string]: string } = {};
  const ring = headers?.get(OPERATIONS_HEADER) ?? "";
  for (const name of headers?.keys() ?? [])
    if (name.startsWith(HEADER_PREFIX) && name !== OPERATIONS_HEADER)
      provenance[unescapeText(name.slice(HEADER_PREFIX.length))] = unescapeText(headers?.get(name) ?? "");
  return { operations: ring === "" ? [] : ring.split(","), provenance };
}

/**
 * Reads everything that a shard ever committed and still keeps, oldest first, with a consumer of no special kind. What
 * vanishes by itself (heartbeats, requests for work) is there for as long as it lives.
 */
async function dumpShard(nats: NatsConnection, shard: number, take: (entry: EntryLine) => void): Promise<void> {
  const stream = streamOf(shard);
  const manager = await jetstreamManager(nats, { checkAPI: false, timeout: 10_000 });
  const name = "chaos-dump";
  const prefix = `$KV.mandate_${EPOCH}_${shard}.`;
  await manager.consumers.add(stream, {
    name,
    ack_policy: AckPolicy.None,
    deliver_policy: DeliverPolicy.All,
    inactive_threshold: 30_000_000_000,
    mem_storage: true,
  });
  try {
    const consumer = await jetstream(nats).consumers.get(stream, name);
    const { num_pending: expected } = await consumer.info();
    if (expected === 0) return;
    const messages = await consumer.consume({ max_messages: 500 });
    for await (const message of messages) {
      const key = message.subject.slice(prefix.length);
      take({
        line: "entry",
        shard,
        revision: message.seq,
        key,
        at: Math.floor(message.info.timestampNanos / 1_000_000),
        ...readHeaders(message.headers),
        ...decodeEntry(key, message.data),
      });
      if (message.info.pending === 0) break;
    }
    await messages.close();
  } finally {
    await manager.consumers.delete(stream, name).catch(() => undefined);
  }
}

/** Every entry of every shard. */
export async function dumpStore(ring: NatsRing, shards: number, take: (entry: EntryLine) => void): Promise<void> {
  const nats = await dial(ring);
  try {
    for (let shard = 0; shard < shards; shard++) await dumpShard(nats, shard, take);
  } finally {
    await nats.close();
  }
}

/** Consumers that are still there when every node has stopped and had its time; all that were ever seen are counted. */
export async function findConsumers(ring: NatsRing, shards: number): Promise<Inspection> {
  const nats = await dial(ring);
  try {
    const manager = await jetstreamManager(nats, { checkAPI: false, timeout: 5_000 });
    const deadline = performance.now() + CONSUMERS_GONE_MS;
    const streams = Array.from({ length: shards }, (_, shard) => streamOf(shard));
    const seen = new Set<string>(streams);
    for (;;) {
      const names: string[] = [];
      for (const stream of streams)
        for await (const { name } of manager.consumers.list(stream)) names.push(`${stream} ${name}`);
      for (const name of names) seen.add(name);
      if (names.length === 0 || performance.now() > deadline) {
        const found = names.map((name) => ({ line: "leftover", kind: "consumer", name }) as const);
        return { inspected: seen.size, found };
      }
      await pause(1_000);
    }
  } finally {
    await nats.close();
  }
}
