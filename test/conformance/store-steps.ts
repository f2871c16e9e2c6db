import { expect } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { OPERATION_RING } from "../../src/store/store.ts";
import type { Base, Commit, CommitOutcome, Entry, Put, Shard, Store } from "../../src/store/store.ts";

/** What a suite is given to test. */
export interface OpenedStore {
  readonly store: Store;
  /** Another client of the same store. */
  another(): Promise<Store>;
  close(): Promise<void>;
  /** Lets time pass at once, ms, where the store allows it; otherwise the suite waits. */
  elapse?(ms: number): void;
}

/** The store under test, while it is open: one shard of it as two clients see it. */
export interface World {
  readonly opened: OpenedStore;
  readonly shard: Shard;
  readonly other: Shard;
}

let counter = 0;
export const unique = (name: string): string => `${name}${(counter += 1)}`;
export const freshKey = (family = "w"): string => `${family}.t.a.${unique("key")}`;
const operation = (): string => unique("operation:");
export const text = (entry: Entry | undefined): string | undefined =>
  entry === undefined ? undefined : new TextDecoder().decode(entry.value);

export const put = (key: string, value: string, base: Base = "absent"): Put => ({ key, value: utf8(value), base });
export const commitOf = (...puts: Put[]): Commit => ({ operationId: operation(), puts });

export const fresh = { fresh: true };

export async function readOne(shard: Shard, key: string): Promise<Entry | undefined> {
  return (await shard.read([key], fresh)).get(key);
}

export function revisionsOf(outcome: CommitOutcome): readonly number[] {
  expect(outcome).toMatchObject({ kind: "committed" });
  return outcome.kind === "committed" ? outcome.revisions : [];
}

export async function create(shard: Shard, key: string, value: string): Promise<Entry> {
  const [revision] = revisionsOf(await shard.commit(commitOf(put(key, value))));
  const entry = await readOne(shard, key);
  if (entry === undefined || entry.revision !== revision) throw new TypeError(`${key} is not what was created`);
  return entry;
}

/** Writes over an entry so many times, and answers the last one. */
export async function overwrite(shard: Shard, entry: Entry, times: number): Promise<Entry> {
  let last = entry;
  for (let time = 0; time < times; time += 1) {
    const operationId = operation();
    const [revision = 0] = revisionsOf(
      await shard.commit({ operationId, puts: [put(entry.key, `over ${time}`, last)] }),
    );
    last = { ...last, revision, operations: [...last.operations, operationId].slice(-OPERATION_RING) };
  }
  return last;
}

/** What must be there by now. */
export function present<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new TypeError("the store is not open");
  return value;
}

export const firstShard = (store: Store): Shard => present(store.shards[0]);
