import type { StreamConfig } from "@nats-io/jetstream";
import { DiscardPolicy, RetentionPolicy, StorageType, StoreCompression } from "@nats-io/jetstream";
import { StoreRefusal } from "./store-refusal.ts";

/**
 * A shard is one KV bucket, which is one stream (contract 5.2). The name holds the deployment's epoch: a stream that is
 * deleted and made anew starts its revisions over, and a stale writer's guard could match by accident.
 */
export interface BucketOptions {
  readonly epoch: string;
  readonly shards: number;
  readonly replicas: number;
  readonly storage: "file" | "memory";
  /** Revisions kept of each key; 1 unless a test wants to see all (-1). */
  readonly history?: number | undefined;
}

/** Four MiB of payload (contract 5.2), and room for its headers and its envelope. */
export const MESSAGE_BYTES_MAX = 4_718_592;

const DUPLICATE_WINDOW_MS = 120_000;
const NANOSECONDS_PER_MS = 1_000_000;

export const bucketName = (epoch: string, shard: number): string => `mandate_${epoch}_${shard}`;
export const streamName = (epoch: string, shard: number): string => `KV_${bucketName(epoch, shard)}`;
/** What stands before a key in a message's subject. */
export const subjectPrefix = (epoch: string, shard: number): string => `$KV.${bucketName(epoch, shard)}.`;

/** @throws StoreRefusal when the options can't be those of any store. */
export function checkBucketOptions({ epoch, shards, replicas, history }: BucketOptions): void {
  const refuse = (option: string, rule: string, value: unknown): never => {
    throw new StoreRefusal("options-invalid", `${option} ${rule}`, { option, value });
  };
  if (!/^[A-Za-z0-9-]{1,32}$/.test(epoch)) refuse("epoch", "must be 1 to 32 of A-Za-z0-9-", epoch);
  if (!Number.isInteger(shards) || shards < 1 || shards > 256) refuse("shards", "must be 1 to 256", shards);
  if (![1, 3, 5].includes(replicas)) refuse("replicas", "must be 1, 3 or 5", replicas);
  if (history !== undefined && history !== -1 && !(Number.isInteger(history) && history >= 1))
    refuse("history", "must be -1 or positive", history);
}

/**
 * The settings that the commit protocol rests on. `discard: new` and no limits: nothing committed is ever dropped to make
 * room. No roll-ups: a writer of one key could wipe the bucket with them. Direct gets serve whole snapshots alone.
 */
export function streamSettings(options: BucketOptions, shard: number): Partial<StreamConfig> & { name: string } {
  return {
    name: streamName(options.epoch, shard),
    subjects: [`${subjectPrefix(options.epoch, shard)}>`],
    retention: RetentionPolicy.Limits,
    storage: options.storage === "file" ? StorageType.File : StorageType.Memory,
    num_replicas: options.replicas,
    max_msgs_per_subject: options.history ?? 1,
    max_msgs: -1,
    max_bytes: -1,
    max_age: 0,
    max_msg_size: MESSAGE_BYTES_MAX,
    discard: DiscardPolicy.New,
    duplicate_window: DUPLICATE_WINDOW_MS * NANOSECONDS_PER_MS,
    compression: StoreCompression.None,
    allow_atomic: true,
    allow_msg_ttl: true,
    allow_direct: true,
    allow_rollup_hdrs: false,
    deny_delete: true,
  };
}

/** Where more than what is asked for does no harm. */
const atLeast: ReadonlySet<string> = new Set(["max_msg_size", "duplicate_window"]);
/** What an operator may limit; running into it is an outage, never a wrong answer. */
const free: ReadonlySet<string> = new Set(["max_bytes", "name"]);

/**
 * Compares a stream with what this program would have made.
 *
 * @throws StoreRefusal that names the first setting that differs.
 */
export function checkStreamSettings(found: StreamConfig, options: BucketOptions, shard: number): void {
  const differs = (setting: string, wanted: unknown, is: unknown): never => {
    throw new StoreRefusal("setting-differs", `stream ${found.name} has another ${setting}`, {
      stream: found.name,
      setting,
      wanted,
      found: is ?? null,
    });
  };
  const settings = new Map<string, unknown>(Object.entries(found));
  for (const [setting, wanted] of Object.entries(streamSettings(options, shard))) {
    if (free.has(setting)) continue;
    if (setting === "max_msgs_per_subject" && options.history === undefined) continue;
    const is = settings.get(setting);
    if (atLeast.has(setting)) {
      if (typeof wanted === "number" && typeof is === "number" && (is === -1 || is >= wanted)) continue;
      differs(setting, wanted, is);
    }
    const same = wanted === false ? is !== true : JSON.stringify(is) === JSON.stringify(wanted);
    if (!same) differs(setting, wanted, is);
  }
  for (const setting of ["mirror", "sources", "subject_transform", "sealed", "no_ack"]) {
    const is = settings.get(setting);
    if (is !== undefined && is !== false && is !== null) differs(setting, "none", is);
  }
  const marker = settings.get("subject_delete_marker_ttl");
  if (typeof marker === "number" && marker > 0) differs("subject_delete_marker_ttl", 0, marker);
}
