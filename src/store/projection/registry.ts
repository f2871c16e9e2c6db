import { addTo } from "../../base/set-map.ts";
import type { PoolRecord, Slot, WorkerRecord } from "../../core/worker/record.ts";
import { decodePool, decodeSlot, decodeWorker, type Stored } from "../../wire/worker-codec.ts";
import type { Entry } from "../store.ts";
import { queueOf } from "./ready-queues.ts";

/** A committed worker, slot or pool as the view holds it: what to decide on, and to build the next commit on. */
export interface Held<Value> extends Stored<Value> {
  readonly key: string;
  readonly shard: number;
  readonly revision: number;
  readonly operations: readonly string[];
}

/** Takes newer versions in and never goes back. */
class HeldMap<Value> {
  readonly #byKey = new Map<string, Held<Value>>();
  #changes = 0;

  /** Grows with every change: what was derived from all of them is to be derived anew. */
  get changes(): number {
    return this.#changes;
  }

  get(key: string): Held<Value> | undefined {
    return this.#byKey.get(key);
  }

  values(): IterableIterator<Held<Value>> {
    return this.#byKey.values();
  }

  /** `false`: what is known is as new. */
  apply(held: Held<Value>): boolean {
    const known = this.#byKey.get(held.key);
    if (known !== undefined && known.shard === held.shard && known.revision >= held.revision) return false;
    this.#byKey.set(held.key, held);
    this.#changes++;
    return true;
  }

  /** Forgets a version that is no longer in the store. */
  forget(key: string, revision: number): void {
    if (this.#byKey.get(key)?.revision !== revision) return;
    this.#byKey.delete(key);
    this.#changes++;
  }

  forgetShard(shard: number): void {
    for (const [key, held] of this.#byKey) if (held.shard === shard) this.#byKey.delete(key);
    this.#changes++;
  }
}

/** What became of an entry. */
export type Applied = "new" | "known" | "unreadable";

/** The key of a slot without its index. */
const prefixOf = (key: string): string => key.slice(0, key.lastIndexOf("."));

/**
 * Current workers, pools and slots of the view (contract 5.4), found by key, by application and by owner. Derived from
 * records alone; entries apply by revision, never backwards.
 */
export class Registry {
  readonly workers = new HeldMap<WorkerRecord>();
  readonly pools = new HeldMap<PoolRecord>();
  readonly slots = new HeldMap<Slot>();
  readonly #workersOf = new Map<string, Set<string>>();
  readonly #slotsOf = new Map<string, Set<string>>();
  /** What {@link slotValuesOf} last answered: a pick asks for it once for every lane of a queue. */
  readonly #slotValues = new Map<string, readonly Slot[]>();

  /** Takes an entry of the families `k`, `p` and `s` in. */
  apply(shard: number, entry: Entry): Applied {
    const { key, revision, operations } = entry;
    const place = { key, shard, revision, operations };
    switch (key.charAt(0)) {
      case "k": {
        const stored = decodeWorker(entry.value);
        if (stored === undefined) return "unreadable";
        if (!this.workers.apply({ ...stored, ...place })) return "known";
        if (stored.value !== undefined) addTo(this.#workersOf, queueOf(stored.value), key);
        return "new";
      }
      case "p": {
        const stored = decodePool(entry.value);
        if (stored === undefined) return "unreadable";
        return this.pools.apply({ ...stored, ...place }) ? "new" : "known";
      }
      default: {
        const stored = decodeSlot(entry.value);
        if (stored === undefined) return "unreadable";
        if (!this.slots.apply({ ...stored, ...place })) return "known";
        addTo(this.#slotsOf, prefixOf(key), key);
        this.#slotValues.delete(prefixOf(key));
        return "new";
      }
    }
  }

  /** Workers of an application that have not been removed. */
  *workersOf(queue: string): Generator<Held<WorkerRecord> & { readonly value: WorkerRecord }, undefined> {
    for (const key of this.#workersOf.get(queue) ?? []) {
      const held = this.workers.get(key);
      if (held?.value !== undefined) yield { ...held, value: held.value };
    }
    return undefined;
  }

  /** Slots of an owner that were ever taken, by the key of one of them without its index. */
  *slotsOf(prefix: string): Generator<Held<Slot>, undefined> {
    for (const key of this.#slotsOf.get(prefix) ?? []) {
      const held = this.slots.get(key);
      if (held !== undefined) yield held;
    }
    return undefined;
  }

  /** What {@link slotsOf} hold: the same array until one of them changes. */
  slotValuesOf(prefix: string): readonly Slot[] {
    const known = this.#slotValues.get(prefix);
    if (known !== undefined) return known;
    const values = [...this.slotsOf(prefix)].flatMap(({ value }) => value ?? []);
    if (values.length > 0) this.#slotValues.set(prefix, values);
    return values;
  }

  /** The revision of what is known of a key; 0 when nothing is. */
  revisionOf(key: string): number {
    return (this.workers.get(key) ?? this.pools.get(key) ?? this.slots.get(key))?.revision ?? 0;
  }

  /** What was known of a key at that revision has vanished from the store: followers are not told. */
  forget(key: string, revision: number): void {
    for (const held of [this.workers, this.pools, this.slots]) held.forget(key, revision);
    this.#slotValues.delete(prefixOf(key));
  }

  /** Forgets a shard: it is about to be told anew. */
  forgetShard(shard: number): void {
    this.workers.forgetShard(shard);
    this.pools.forgetShard(shard);
    this.slots.forgetShard(shard);
    this.#slotValues.clear();
  }
}
