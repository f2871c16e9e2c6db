import { MandateError, refuse } from "../core/errors.ts";
import type { PoolSeen } from "../core/worker/eligibility.ts";
import type { PoolRecord, WorkerRecord } from "../core/worker/record.ts";
import type { WorkerSeen } from "../core/worker/slots.ts";
import { poolKey, shardOf, workerKey, type Scope } from "../store/keys.ts";
import type { Projection } from "../store/projection/projection.ts";
import { queueOf } from "../store/projection/ready-queues.ts";
import type { Held } from "../store/projection/registry.ts";
import type { Shard, Store } from "../store/store.ts";
import type { Slots } from "./slots.ts";

/** A worker as a call names it. */
export interface WorkerAsked extends Scope {
  readonly workerId: string;
  /** Absent: not checked. */
  readonly incarnation?: string | undefined;
}

/** Whether an id is one that the registry gives out; no other name is one of its workers. */
export const isRegisteredId = (workerId: string): boolean => /^worker_[0-9a-f]{24}$/.test(workerId);

export const workerNotFound = (workerId: string): MandateError =>
  MandateError.of(refuse("WORKER_NOT_FOUND", "no such worker", { workerId }));

/** Reads workers and pools for decisions: from the view, or from the store when it must be sure. */
export class WorkerRecords {
  readonly #store: Store;
  readonly #projection: Projection;
  readonly #slots: Slots;

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
  viewed(asked: WorkerAsked): Held<WorkerRecord> | undefined {
    return this.#projection.registry.workers.get(workerKey(asked, asked.workerId));
  }

  /** A pool that a workload of this scope may name, with its slots, as the view has it. */
  viewedPool(scope: Scope, poolId: string): PoolSeen | undefined {
    const { pools } = this.#projection.registry;
    const own = pools.get(poolKey(scope, poolId))?.value;
    const record = own ?? pools.get(poolKey({ tenantId: scope.tenantId }, poolId))?.value;
    return record === undefined ? undefined : { record, slots: this.#slots.of(scope, poolId) };
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

  /** All workers of an application, as the view has them. */
  workersOf(scope: Scope): readonly WorkerRecord[] {
    return [...this.#projection.registry.workersOf(queueOf(scope))].map(({ value }) => value);
  }

  /** See {@link Slots.refresh}. */
  refresh(shard: Shard, keys: readonly string[]): Promise<void> {
    return this.#slots.refresh(shard, keys);
  }
}
