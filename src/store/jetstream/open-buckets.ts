import { JetStreamApiError } from "@nats-io/jetstream";
import type { StreamConfig } from "@nats-io/jetstream";
import { systemClock } from "../../base/clock.ts";
import { META_KEY } from "../keys.ts";
import { StoreUnavailable } from "../store.ts";
import { acknowledgedRevision, parseAcknowledgement } from "./acknowledgement.ts";
import { checkBucketOptions, checkStreamSettings, streamName, streamSettings, subjectPrefix } from "./bucket.ts";
import type { BucketOptions } from "./bucket.ts";
import { forbiddenBy, type StoreConnection } from "./connection.ts";
import { entryOfStored } from "./entry.ts";
import type { StoredMessage } from "./entry.ts";
import { RenderedHeaders, headerLine } from "./headers.ts";
import { checkMeta, decodeMeta, encodeMeta } from "./meta.ts";
import type { StoreMeta } from "./meta.ts";
import { pause } from "./pause.ts";
import { serverCode } from "./server-codes.ts";
import type { ServerError } from "./server-codes.ts";
import { StoreRefusal } from "./store-refusal.ts";

export interface OpenBucketsOptions extends BucketOptions {
  /** Make the store when no shard of it is there. */
  readonly create: boolean;
}

const CALL_TIMEOUT_MS = 2000;
/** Another node may be making the store at this moment: what looks like a loss is looked at again after this. */
const SECOND_LOOK_MS = 500;

interface FoundStream {
  readonly config: StreamConfig;
  readonly messages: number;
}

/**
 * Makes sure that every shard is there and is what the options say, or that nothing was changed (contract 5.2, 5.6).
 *
 * A store is made in two steps: all streams, then a format record in each. So a shard that is missing beside one that
 * has a record was lost, and is never silently replaced by an empty one; without any record, a creation was cut short
 * and is completed. Nodes that create at the same time meet on the same result.
 *
 * @throws StoreRefusal when an operator must act.
 * @throws StoreUnavailable when the servers gave no answer; the same call may succeed later.
 */
export async function openBuckets(connection: StoreConnection, options: OpenBucketsOptions): Promise<StoreMeta> {
  checkBucketOptions(options);
  const present = await findStreams(connection, options);
  const metas = await readMetas(connection, options, present);
  const told = metas.find((meta) => meta !== undefined);
  if (told !== undefined) checkMeta(told, options);
  const missing = shardsWithout(present);
  if (missing.length > 0) await refuseLoss(connection, options, { missing, told });
  const streams = await Promise.all(
    present.map(async (found, shard) => found ?? createStream(connection, options, shard)),
  );
  for (const [shard, { config }] of streams.entries()) checkStreamSettings(config, options, shard);
  return completeMetas(connection, options, { streams, metas });
}

const shardsWithout = (found: readonly unknown[]): number[] =>
  found.flatMap((each, shard) => (each === undefined ? [shard] : []));

/** Decides whether missing streams may be made. */
async function refuseLoss(
  connection: StoreConnection,
  options: OpenBucketsOptions,
  state: { readonly missing: readonly number[]; readonly told: StoreMeta | undefined },
): Promise<void> {
  const { missing, told } = state;
  const streams = missing.map((shard) => streamName(options.epoch, shard));
  if (told === undefined) {
    if (options.create) return;
    throw new StoreRefusal("absent", `there is no store of epoch ${options.epoch}`, { missing: streams });
  }
  // The record may have been written between the look at the streams and the look at the records.
  await pause(SECOND_LOOK_MS);
  const again = shardsWithout(await findStreams(connection, options));
  if (again.length === 0) throw new StoreUnavailable("the store is being made");
  throw new StoreRefusal("shards-missing", `shards are missing: ${streams.join(", ")}`, { missing: streams });
}

/** What a call without an answer means: that NATS forbids it, where it said so; else that it may be tried again. */
function unanswered(connection: StoreConnection, thrown: unknown): unknown {
  if (thrown instanceof StoreRefusal || thrown instanceof StoreUnavailable) return thrown;
  const forbidden = forbiddenBy(thrown) ?? connection.forbidden;
  return forbidden === undefined
    ? new StoreUnavailable("no answer", { cause: thrown })
    : new StoreRefusal("forbidden", forbidden);
}

const findStreams = (
  connection: StoreConnection,
  options: BucketOptions,
): Promise<readonly (FoundStream | undefined)[]> =>
  Promise.all(
    Array.from({ length: options.shards }, (_, shard) => findStream(connection, streamName(options.epoch, shard))),
  );

async function findStream(connection: StoreConnection, name: string): Promise<FoundStream | undefined> {
  try {
    const { config, state } = await connection.management.streams.info(name);
    return { config, messages: state.messages };
  } catch (thrown) {
    if (thrown instanceof JetStreamApiError && thrown.code === serverCode.streamNotFound) return undefined;
    throw unanswered(connection, thrown);
  }
}

async function createStream(connection: StoreConnection, options: BucketOptions, shard: number): Promise<FoundStream> {
  const settings = streamSettings(options, shard);
  try {
    const { config, state } = await connection.management.streams.add(settings);
    return { config, messages: state.messages };
  } catch (thrown) {
    if (thrown instanceof JetStreamApiError) {
      if (thrown.code === serverCode.apiLevelMissing)
        throw new StoreRefusal("server-unsupported", "the server is too old for the store", { cause: thrown.message });
      if (thrown.code === serverCode.streamNameInUse) {
        const found = await findStream(connection, settings.name);
        if (found !== undefined) return found;
      }
    }
    throw unanswered(connection, thrown);
  }
}

async function readMetas(
  connection: StoreConnection,
  options: BucketOptions,
  present: readonly (FoundStream | undefined)[],
): Promise<readonly (StoreMeta | undefined)[]> {
  return Promise.all(
    present.map(async (found, shard) => (found === undefined ? undefined : readMeta(connection, options, shard))),
  );
}

async function readMeta(
  connection: StoreConnection,
  options: BucketOptions,
  shard: number,
): Promise<StoreMeta | undefined> {
  const prefix = subjectPrefix(options.epoch, shard);
  const answer = await connection.requests
    .one(
      `$JS.API.STREAM.MSG.GET.${streamName(options.epoch, shard)}`,
      JSON.stringify({ last_by_subj: prefix + META_KEY }),
      { timeoutMs: CALL_TIMEOUT_MS },
    )
    .catch((thrown: unknown) => {
      throw unanswered(connection, thrown);
    });
  const { message, error } = answer.json<{ message?: StoredMessage; error?: ServerError }>();
  if (error !== undefined) {
    if (error.err_code === serverCode.messageNotFound) return undefined;
    throw new StoreUnavailable(error.description);
  }
  const entry = message === undefined ? undefined : entryOfStored(message, prefix.length);
  return entry === undefined ? undefined : decodeMeta(entry);
}

/** Writes the records that are not there yet, and checks those that are. */
async function completeMetas(
  connection: StoreConnection,
  options: OpenBucketsOptions,
  state: { readonly streams: readonly FoundStream[]; readonly metas: readonly (StoreMeta | undefined)[] },
): Promise<StoreMeta> {
  const createdAt = systemClock.now();
  let first: StoreMeta | undefined;
  for (const [shard, stream] of state.streams.entries()) {
    const name = streamName(options.epoch, shard);
    let meta = state.metas[shard];
    if (meta === undefined) {
      if (!options.create) throw new StoreRefusal("absent", `${name} was never completed`, { stream: name });
      if (stream.messages > 0) meta = await readMeta(connection, options, shard);
      if (stream.messages > 0 && meta === undefined)
        throw new StoreRefusal("layout-differs", `${name} holds what is not ours`, { stream: name });
      if (meta === undefined) await writeMeta(connection, options, { shard, createdAt });
      meta = await readMeta(connection, options, shard);
    }
    if (meta === undefined) throw new StoreUnavailable(`the format record of ${name} can't be read yet`);
    checkMeta(meta, options);
    first ??= meta;
  }
  if (first === undefined) throw new StoreUnavailable("the store has no shards");
  return first;
}

async function writeMeta(
  connection: StoreConnection,
  options: BucketOptions,
  what: { readonly shard: number; readonly createdAt: number },
): Promise<void> {
  const { epoch, shards } = options;
  const answer = await connection.requests
    .one(subjectPrefix(epoch, what.shard) + META_KEY, encodeMeta({ epoch, shards, createdAt: what.createdAt }), {
      headers: new RenderedHeaders(headerLine("Nats-Expected-Last-Subject-Sequence", 0)),
      timeoutMs: CALL_TIMEOUT_MS,
    })
    .catch((thrown: unknown) => {
      throw unanswered(connection, thrown);
    });
  // Another node was first: what it wrote is read and checked.
  if (parseAcknowledgement(answer)?.error?.err_code === serverCode.wrongLastSequence) return;
  acknowledgedRevision(answer);
}
