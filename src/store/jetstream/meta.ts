import { Packr } from "msgpackr";
import type { Entry } from "../store.ts";
import { StoreRefusal } from "./store-refusal.ts";

/** The format of stored records that this program writes. */
export const FORMAT_VERSION = 1;

/** What a store says of itself, in each shard under `m.meta` (contract 5.2). It is written before anything else. */
export interface StoreMeta {
  /** Shape of this record. */
  readonly v: 1;
  readonly formatVersion: number;
  /** The oldest format version whose programs may read, and write, here. */
  readonly minReader: number;
  readonly minWriter: number;
  readonly shards: number;
  readonly epoch: string;
  /** Epoch ms, by the clock of the node that made it. */
  readonly createdAt: number;
}

const codec = new Packr({ useRecords: false });

/** The record of a store that is being made. */
export const encodeMeta = (layout: Pick<StoreMeta, "shards" | "epoch" | "createdAt">): Uint8Array =>
  Uint8Array.from(
    codec.pack({
      v: 1,
      formatVersion: FORMAT_VERSION,
      minReader: FORMAT_VERSION,
      minWriter: FORMAT_VERSION,
      ...layout,
    }),
  );

const unreadable = (details: Readonly<Record<string, unknown>>): StoreRefusal =>
  new StoreRefusal("format-unsupported", "the store's format record is not one that this program can read", details);

/** @throws StoreRefusal when the record is not understood in full. */
export function decodeMeta(entry: Entry): StoreMeta {
  let record: unknown;
  try {
    record = codec.unpack(entry.value);
  } catch (thrown) {
    throw unreadable({ cause: String(thrown) });
  }
  if (typeof record !== "object" || record === null) throw unreadable({ found: typeof record });
  const field = (name: string): number => {
    const value: unknown = Reflect.get(record, name);
    if (typeof value !== "number" || !Number.isSafeInteger(value)) throw unreadable({ field: name });
    return value;
  };
  const epoch: unknown = Reflect.get(record, "epoch");
  if (field("v") !== 1) throw unreadable({ field: "v", found: field("v") });
  if (typeof epoch !== "string") throw unreadable({ field: "epoch" });
  return {
    v: 1,
    formatVersion: field("formatVersion"),
    minReader: field("minReader"),
    minWriter: field("minWriter"),
    shards: field("shards"),
    epoch,
    createdAt: field("createdAt"),
  };
}

/**
 * Compares what the store says of itself with what was asked for.
 *
 * @throws StoreRefusal when this program must not use it, or not like this.
 */
export function checkMeta(meta: StoreMeta, wanted: Pick<StoreMeta, "shards" | "epoch">): void {
  for (const name of ["minReader", "minWriter"] as const)
    if (meta[name] > FORMAT_VERSION)
      throw new StoreRefusal("format-unsupported", `the store needs a program of format ${meta[name]} or newer`, {
        [name]: meta[name],
        supported: FORMAT_VERSION,
      });
  for (const name of ["shards", "epoch"] as const)
    if (meta[name] !== wanted[name])
      throw new StoreRefusal("layout-differs", `the store was made with ${name} ${meta[name]}, not ${wanted[name]}`, {
        setting: name,
        wanted: wanted[name],
        found: meta[name],
      });
}
