import { addTo, removeFrom } from "../base/set-map.ts";
import { spreadHash } from "../base/hash.ts";
import type { Claim, WorkloadRecord } from "../core/workload/record.ts";
import { slotsOfClaim, type ClaimSlots, type SlotPlace } from "../core/worker/claim-slots.ts";
import type { PoolRecord, Slot, SlotHold, WorkerRecord } from "../core/worker/record.ts";
import { countOpenSlots, freeSlot, holdSlot, openSlots } from "../core/worker/slots.ts";
import { slotKey, slotsPrefix, type Scope } from "../store/keys.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { Held } from "../store/projection/registry.ts";
import { OPERATION_RING, type Assertion, type Put, type Shard } from "../store/store.ts";
import { encodeSlot } from "../wire/worker-codec.ts";

/** How long a read that is newer than the view waits for the view, ms. */
const CATCH_UP_MS = 2000;

/** So many slots of one owner are read at once, at most. */
const REFRESHED_MAX = 256;

/** Something of the registry that has not been removed. */
export type HeldValue<Value> = Held<Value> & { readonly value: Value };

/** Slots that one claim is about to take; other claims of this node leave them alone until {@link SlotGrab.end}. */
export interface SlotGrab {
  readonly slots: ClaimSlots;
  /** The records that they were chosen by: the commit must find them as they were seen. */
  readonly asserts: readonly Assertion[];
  /** The guarded writes that give them to a claim, on the slots as they were seen. */
  putsFor(claim: Claim): readonly Put[];
  /** The try is over, whatever came of it. */
  end(): void;
}

const operationsAfter = (put: Put, operationId: string): readonly string[] =>
  put.base === "absent" ? [operationId] : [...put.base.operations.slice(1 - OPERATION_RING), operationId];

/** What stands for a claim that is about to take a slot. */
const tried: SlotHold = { claimId: "", workloadId: "", workerId: "", incarnation: 0 };

/**
 * The slots of workers and pools (contract 2.3). They are taken in the commit of the claim and freed in the commit that
 * ends it; the guard on each makes the capacity right whatever nodes do at the same time. What the view says of them is a
 * hint: a slot that another node took first refuses the commit.
 */
export class Slots {
  readonly #projection: Projection;
  /** Where this node begins to look among free slots: nodes that claim for one worker, or one pool, at once rarely meet. */
  readonly #spread: number;
  /** Slots that claims of this node are about to take, by the key of their owner's without the index. */
  readonly #trying = new Map<string, Set<number>>();

  constructor(projection: Projection, nodeId: string) {
    this.#projection = projection;
    this.#spread = spreadHash(nodeId);
  }

  /** Slots of a worker or a pool that were ever taken, as the view has them: the same array until one of them changes. */
  of(scope: Scope, ownerId: string): readonly Slot[] {
    return this.#projection.registry.slotValuesOf(slotsPrefix(scope, ownerId));
  }

  /** How many more claims the view would let a worker, or a pool, have. */
  free(scope: Scope, ownerId: string, limit: number): number {
    return countOpenSlots(limit, this.#withTried({ scope, ownerId, limit }));
  }

  /** Whether the view holds every claim that was committed before this version of a worker or a pool. */
  areKnown({ shard, revision }: Pick<Held<unknown>, "shard" | "revision">): boolean {
    return (this.#projection.position()[shard] ?? 0) >= revision;
  }

  /**
   * Grabs a free slot of the worker, and of the pool where it has a limit; `undefined` when there is none, or when the
   * view may not have all claims that were committed before their records: a lowered concurrency counts those too.
   */
  grab(holder: HeldValue<WorkerRecord>, pool: HeldValue<PoolRecord> | undefined): SlotGrab | undefined {
    const worker = holder.value;
    // A pool of the whole tenant may be in another shard, which one commit can't reach.
    const seen = pool === undefined || pool.shard !== holder.shard ? [holder] : [holder, pool];
    if (!seen.every((held) => this.areKnown(held))) return undefined;
    const owners: Owner[] = [{ scope: worker, ownerId: worker.workerId, limit: worker.concurrency }];
    if (pool?.value.maxConcurrency !== undefined)
      owners.push({ scope: worker, ownerId: pool.value.poolId, limit: pool.value.maxConcurrency });
    const places = owners.flatMap((owner): readonly SlotPlace[] => {
      const index = this.#choose(owner);
      return index === undefined ? [] : [{ ownerId: owner.ownerId, index }];
    });
    const [own, pooled] = places;
    if (own === undefined || places.length < owners.length) return undefined;
    for (const { ownerId, index } of places) addTo(this.#trying, slotsPrefix(worker, ownerId), index);
    const bases = places.map(({ ownerId, index }) => this.#held(slotKey(worker, ownerId, index)) ?? "absent");
    return {
      asserts: seen.map(({ key, revision }) => ({ key, revision })),
      slots: { worker: own, pool: pooled },
      putsFor: ({ claimId, workloadId, workerId }) =>
        places.map(({ ownerId, index }, place) => ({
          key: slotKey(worker, ownerId, index),
          value: encodeSlot(
            holdSlot(ownerId, index, { claimId, workloadId, workerId, incarnation: worker.incarnation.number }),
          ),
          base: bases[place] ?? "absent",
        })),
      end: () => {
        for (const { ownerId, index } of places) removeFrom(this.#trying, slotsPrefix(worker, ownerId), index);
      },
    };
  }

  /**
   * The guarded writes that free the slots of a claim which a commit ends: those that it still holds (contract 2.3).
   *
   * @throws StoreUnavailable when the view does not know them and the store gives no answer.
   */
  async releases(before: WorkloadRecord, after: WorkloadRecord, shard: Shard): Promise<readonly Put[]> {
    const claim = before.currentClaim;
    if (claim === undefined || claim.claimId === after.currentClaim?.claimId) return [];
    const places = slotsOfClaim(before);
    if (places.length === 0) return [];
    const freed = ({ ownerId, index }: SlotPlace): Slot | undefined => {
      const slot = this.#held(slotKey(before, ownerId, index))?.value;
      return slot === undefined ? undefined : freeSlot(slot, claim.claimId);
    };
    const doubtful = places.filter((place) => freed(place) === undefined);
    const keys = doubtful.map(({ ownerId, index }) => slotKey(before, ownerId, index));
    await this.refresh(shard, keys);
    return places.flatMap((place) => {
      const slot = freed(place);
      return slot === undefined ? [] : [this.#putOf(before, slot)];
    });
  }

  /** Takes slots in as they were committed. */
  adopt(
    shard: number,
    puts: readonly Put[],
    committed: { readonly revisions: readonly number[]; readonly operationId: string },
  ): void {
    for (const [index, put] of puts.entries()) {
      const revision = committed.revisions[index];
      if (revision === undefined) continue;
      this.#projection.adoptEntry(shard, {
        key: put.key,
        value: put.value,
        revision,
        operations: operationsAfter(put, committed.operationId),
        at: 0,
        provenance: {},
      });
    }
  }

  /**
   * Brings the view up to the newest versions of some keys of the registry. Everything that was committed before them
   * comes with them where the follower delivers: a worker's concurrency must never be newer than its slots.
   *
   * @throws StoreUnavailable when the store gives no answer.
   */
  async refresh(shard: Shard, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    const { registry } = this.#projection;
    const known = keys.map((key) => [key, registry.revisionOf(key)] as const);
    const read = await shard.read(keys, { fresh: true });
    for (const [key, revision] of known) if (!read.has(key)) registry.forget(key, revision);
    const entries = [...read.values()];
    const newest = Math.max(0, ...entries.map(({ revision }) => revision));
    if (await this.#projection.waitFor(shard.index, newest, CATCH_UP_MS)) return;
    for (const entry of entries) this.#projection.adoptEntry(shard.index, entry);
  }

  /**
   * Makes sure of the slots of a worker or a pool: those that the view says are held, and those that may be given out.
   *
   * @throws StoreUnavailable when the store gives no answer.
   */
  async refreshAll(
    shard: Shard,
    owner: { readonly scope: Scope; readonly ownerId: string; readonly limit: number },
  ): Promise<void> {
    const { scope, ownerId, limit } = owner;
    const known = this.of(scope, ownerId).map(({ index }) => index);
    const indices = [...new Set([...known, ...Array.from({ length: limit }, (_, index) => index)])];
    for (let from = 0; from < indices.length; from += REFRESHED_MAX)
      await this.refresh(
        shard,
        indices.slice(from, from + REFRESHED_MAX).map((index) => slotKey(scope, ownerId, index)),
      );
  }

  #held(key: string): Held<Slot> | undefined {
    return this.#projection.registry.slots.get(key);
  }

  /** One of the slots that may be given out; each node begins elsewhere. */
  #choose(owner: Owner): number | undefined {
    const slots = this.#withTried(owner);
    const open = countOpenSlots(owner.limit, slots);
    if (open === 0) return undefined;
    const place = this.#spread % open;
    return openSlots(owner.limit, slots, place + 1)[place];
  }

  /** The slots, those that claims of this node are about to take among those that are held. */
  #withTried({ scope, ownerId }: Owner): readonly Slot[] {
    const trying = this.#trying.get(slotsPrefix(scope, ownerId));
    const slots = this.of(scope, ownerId);
    return trying === undefined ? slots : [...slots, ...[...trying].map((index) => holdSlot(ownerId, index, tried))];
  }

  #putOf(scope: Scope, slot: Slot): Put {
    const key = slotKey(scope, slot.ownerId, slot.index);
    return { key, value: encodeSlot(slot), base: this.#held(key) ?? "absent" };
  }
}

/** Whose slots, and how many there are. */
interface Owner {
  readonly scope: Scope;
  readonly ownerId: string;
  readonly limit: number;
}
