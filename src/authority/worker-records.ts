import { MandateError, refuse } from "../core/errors.ts";
import type { PoolSeen } from "../core/worker/eligibility.ts";
import type { PoolRecord, Slot, WorkerRecord } from "../core/worker/record.ts";
import type { WorkerSeen } from "../core/worker/slots.ts";
import { standingOf } from "../core/worker/standing.ts";
import { poolKey, shardOf, slotsPrefix, workerKey, type Scope } from "../store/keys.ts";
import type { Projection } from "../store/projection/projection.ts";
import { queueOf } from "../store/projection/ready-queues.ts";
import type { Held } from "../store/projection/registry.ts";
import type { Shard, Store } from "../store/store.ts";
import type { HeldValue, Slots } from "./slots.ts";

/** How long a worker waits for the view to have its claims, ms. */
const CATCH_UP_MS = 2000;

/** A worker by its name. */
export interface WorkerName extends Scope {
  readonly workerId: string;
}

/** A worker as a call names it. */
export interface WorkerAsked extends WorkerName {
  /** Absent: not checked. */
  readonly incarnation?: string | undefined;
}

/** Whether an id is one that the registry gives out; no other name is one of its workers. */
export const isRegisteredId = (workerId: string): boolean => /^worker_[0-9a-f]{24}$/.test(workerId);

export const workerNotFound = (workerId: string): MandateError =>
  MandateError.of(refuse("WORKER_NOT_FOUND", "no such worker", { workerId }));

/** The refusal where only the claims of a worker could tell, and the view does not come up to them. */
export const viewIsBehind = refuse("AUTHORITY_NOT_READY", "this node's view does not have the worker's claims yet");

const isPresent = <Value>(held: Held<Value> | undefined): held is HeldValue<Value> => held?.value !== undefined;

/** Reads workers and pools for decisions: from the view, or from the store when it must be sure. */
export class WorkerRecords {
  readonly #store: Store;
  readonly #projection: Projection;
  readonly #slots: Slots;
  /** What {@link standing} last answered: it is asked for every worker that waits, whenever there is work. */
  readonly #standing = new WeakMap<WorkerRecord, { readonly record: WorkerRecord; readonly changes: number }>();

  constructor(parts: { readonly store: Store; readonly projection: Projection; readonly slots: Slots }) {
    this.#store = parts.store;
    this.#projection = parts.projection;
    this.#slots = parts.slots;
  }

  /** The shard of a tenant's application. */
  shardOf(scope: Scope): Shard {
    const shard = this.#store.shards[shardOf(scope, this.#store.shards.length)];
    if (shard === undefined) throw new RangeError("every scope has a shard");
    return shard;
  }

  /** The shard of a pool; one of no application has that of an application without a name. */
  shardOfPool(pool: { readonly tenantId: string; readonly applicationId?: string | undefined }): Shard {
    return this.shardOf({ tenantId: pool.tenantId, applicationId: pool.applicationId ?? "" });
  }

  /** The worker as the view has it. */
  viewed(asked: WorkerName): Held<WorkerRecord> | undefined {
    return this.#projection.registry.workers.get(workerKey(asked, asked.workerId));
  }

  /** The worker as the view has it, unless it was removed. */
  present(asked: WorkerAsked): HeldValue<WorkerRecord> | undefined {
    return this.presentAt(workerKey(asked, asked.workerId));
  }

  /** {@link present}, by the worker's key. */
  presentAt(key: string): HeldValue<WorkerRecord> | undefined {
    const held = this.#projection.registry.workers.get(key);
    return isPresent(held) ? held : undefined;
  }

  /** A pool that a workload of this scope may name, as the view has it. */
  presentPool(scope: Scope, poolId: string): HeldValue<PoolRecord> | undefined {
    const { pools } = this.#projection.registry;
    for (const owner of [scope, { tenantId: scope.tenantId }]) {
      const held = pools.get(poolKey(owner, poolId));
      if (held?.value !== undefined) return { ...held, value: held.value };
    }
    return undefined;
  }

  /** {@link presentPool} with its slots. */
  viewedPool(scope: Scope, poolId: string): PoolSeen | undefined {
    const record = this.presentPool(scope, poolId)?.value;
    return record === undefined ? undefined : { record, slots: this.#slots.of(scope, poolId) };
  }

  /**
   * The worker as the view has it, with all claims that were committed before it. A worker that takes no more work has no
   * others: whether it has drained, or may be removed, can be told by them.
   *
   * @throws MandateError `AUTHORITY_NOT_READY` when the view does not get there in time.
   */
  async withClaims(asked: WorkerAsked): Promise<Held<WorkerRecord> | undefined> {
    const held = this.viewed(asked);
    if (held === undefined || this.#slots.areKnown(held)) return held;
    await this.#projection.waitFor(held.shard, held.revision, CATCH_UP_MS);
    const later = this.viewed(asked);
    if (later === undefined || this.#slots.areKnown(later)) return later;
    throw MandateError.of(viewIsBehind);
  }

  /** Makes sure of what a worker holds, and of what is held in a pool. See {@link Slots.refreshAll}. */
  async refreshClaims(asked: WorkerAsked, poolId?: string): Promise<void> {
    const shard = this.shardOf(asked);
    const worker = this.present(asked)?.value;
    if (worker !== undefined)
      await this.#slots.refreshAll(shard, { scope: asked, ownerId: worker.workerId, limit: worker.concurrency });
    const limit = poolId === undefined ? undefined : this.presentPool(asked, poolId)?.value.maxConcurrency;
    if (poolId !== undefined && limit !== undefined)
      await this.#slots.refreshAll(shard, { scope: asked, ownerId: poolId, limit });
  }

  /**
   * Whether the view shows a worker's slots, and those of a pool, as all of them were at one moment: what commits of this
   * node, or reads, have told is ahead of what the follower has delivered. A count of slots is sure only then.
   */
  showsOneMoment(asked: WorkerName, poolId?: string): boolean {
    const { shard, revision } = this.#newestOf(asked, poolId);
    return (this.#projection.position()[shard] ?? 0) >= revision;
  }

  /** Waits for {@link showsOneMoment}; `false` when the view does not get there in time. */
  untilOneMoment(asked: WorkerName, poolId?: string): Promise<boolean> {
    const { shard, revision } = this.#newestOf(asked, poolId);
    return this.#projection.waitFor(shard, revision, CATCH_UP_MS);
  }

  /** The newest version of a worker, a pool and all their slots that the view has. */
  #newestOf(asked: WorkerName, poolId?: string): { readonly shard: number; readonly revision: number } {
    const { registry } = this.#projection;
    const { index: shard } = this.shardOf(asked);
    const pool = poolId === undefined ? undefined : this.presentPool(asked, poolId);
    const owners = [asked.workerId, ...(poolId === undefined ? [] : [poolId])];
    const held: readonly (Held<unknown> | undefined)[] = [
      this.viewed(asked),
      // A pool of the whole tenant may be in another shard; then it has no slots.
      pool?.shard === shard ? pool : undefined,
      ...owners.flatMap((ownerId) => [...registry.slotsOf(slotsPrefix(asked, ownerId))]),
    ];
    return { shard, revision: held.reduce((newest, entry) => Math.max(newest, entry?.revision ?? 0), 0) };
  }

  /** Makes sure of a pool that a workload of this scope may name, in whatever shard it is. */
  async refreshPool(scope: Scope, poolId: string): Promise<void> {
    const owners = [scope, { tenantId: scope.tenantId }];
    await Promise.all(owners.map((owner) => this.freshPool(owner, poolId)));
  }

  /** Grows with every change of a pool that the view sees. */
  poolChanges(): number {
    return this.#projection.registry.pools.changes;
  }

  /** Ids of the pools that a worker is a member of, as the view has them. */
  viewedPoolIdsOf(workerId: string): readonly string[] {
    const poolIds: string[] = [];
    for (const { value } of this.#projection.registry.pools.values())
      if (value?.workerIds.includes(workerId) === true) poolIds.push(value.poolId);
    return poolIds.sort();
  }

  /** The worker as it is committed now; the view holds it, and everything committed before it, afterwards. */
  async fresh(asked: WorkerAsked): Promise<WorkerRecord | undefined> {
    await this.refresh(this.shardOf(asked), [workerKey(asked, asked.workerId)]);
    return this.viewed(asked)?.value;
  }

  /** A pool as it is committed now. */
  async freshPool(
    pool: { readonly tenantId: string; readonly applicationId?: string | undefined },
    poolId: string,
  ): Promise<Held<PoolRecord> | undefined> {
    const key = poolKey(pool, poolId);
    await this.refresh(this.shardOfPool(pool), [key]);
    return this.#projection.registry.pools.get(key);
  }

  /** The worker with its slots, as the view has them. */
  seen(record: WorkerRecord): WorkerSeen {
    return { record, slots: this.#slots.of(record, record.workerId) };
  }

  /** See {@link standingOf}: by the revocations that the view has. What it answers is to be decided on, never committed. */
  standing(record: WorkerRecord): WorkerRecord {
    const { revocations } = this.#projection;
    const known = this.#standing.get(record);
    if (known?.changes === revocations.changes) return known.record;
    const standing = standingOf(record, revocations);
    this.#standing.set(record, { record: standing, changes: revocations.changes });
    return standing;
  }

  /** The workers of an application, as they are to be placed now. */
  candidatesOf(scope: Scope): readonly WorkerSeen[] {
    return this.workersOf(scope).map((record) => this.seen(this.standing(record)));
  }

  /** The slots of a worker that were ever taken, as the view has them: to build a commit on. */
  heldSlotsOf(asked: WorkerAsked): ReadonlyMap<string, Held<Slot>> {
    const { registry } = this.#projection;
    return new Map([...registry.slotsOf(slotsPrefix(asked, asked.workerId))].map((held) => [held.key, held]));
  }

  /** All workers of an application, as the view has them. */
  workersOf(scope: Scope): readonly WorkerRecord[] {
    return [...this.#projection.registry.workersOf(queueOf(scope))].map(({ value }) => value);
  }

  /** See {@link Slots.refresh}. */
  refresh(shard: Shard, keys: readonly string[]): Promise<void> {
    return this.#slots.refresh(shard, keys);
  }
}
