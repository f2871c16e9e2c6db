import type { PoolRecord, Slot, WorkerRecord } from "../core/worker/record.ts";
import { workerLifecycles } from "../core/worker/record.ts";
import { packValue, unpackValue } from "./codec.ts";
import { FORMAT_VERSION } from "./version.ts";

/**
 * Workers, slots and pools as they are stored (contract 5.2). A store without deletion says of what was removed that it
 * was: the mark vanishes by itself, long after everybody has seen it.
 */

/** How long the mark of a removed worker or pool stays, ms. */
export const REMOVED_TTL_MS = 86_400_000;

/** A stored value of a registry. */
export interface Stored<Value> {
  /** Absent: it was removed. */
  readonly value?: Value;
  /** `false`: written in a format that this node does not know; it must not write it (contract 5.2). */
  readonly writable: boolean;
}

/** What stands in the place of something that was removed. */
export const encodeRemoved = (): Uint8Array => packValue({ v: FORMAT_VERSION, removed: true });

export const encodeWorker = (record: WorkerRecord): Uint8Array => packValue({ ...record, v: FORMAT_VERSION });

export const encodeSlot = (slot: Slot): Uint8Array => packValue({ ...slot, v: FORMAT_VERSION });

export const encodePool = (pool: PoolRecord): Uint8Array => packValue({ ...pool, v: FORMAT_VERSION });

type Fields = Record<string, unknown>;

function decode<Value>(bytes: Uint8Array, isKnown: (fields: Fields) => boolean): Stored<Value> | undefined {
  let fields: Fields;
  try {
    fields = unpackValue(bytes) as Fields;
  } catch {
    return undefined;
  }
  if (typeof fields !== "object" || fields === null) return undefined;
  const { v, removed, ...value } = fields;
  const writable = v === FORMAT_VERSION;
  if (removed === true) return { writable };
  return isKnown(value) ? { value: value as Value, writable } : undefined;
}

/** Undoes {@link encodeWorker}; `undefined` when the bytes hold none. */
export function decodeWorker(bytes: Uint8Array): Stored<WorkerRecord> | undefined {
  const stored = decode<WorkerRecord>(bytes, ({ workerId }) => typeof workerId === "string");
  if (stored?.value === undefined) return stored;
  const { contractVersion, lifecycle } = stored.value;
  return { ...stored, writable: stored.writable && contractVersion === 1 && workerLifecycles.includes(lifecycle) };
}

/** Undoes {@link encodeSlot}; `undefined` when the bytes hold none. */
export const decodeSlot = (bytes: Uint8Array): Stored<Slot> | undefined =>
  decode<Slot>(bytes, ({ ownerId, index }) => typeof ownerId === "string" && typeof index === "number");

/** Undoes {@link encodePool}; `undefined` when the bytes hold none. */
export const decodePool = (bytes: Uint8Array): Stored<PoolRecord> | undefined =>
  decode<PoolRecord>(bytes, ({ poolId }) => typeof poolId === "string");
