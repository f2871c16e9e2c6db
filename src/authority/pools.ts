import { MandateError, refuse } from "../core/errors.ts";
import { poolIdOf } from "../core/worker/identity.ts";
import { decideCreatePool, decideDeletePool, decidePoolMembers, type KnownWorkers } from "../core/worker/pool.ts";
import type { PoolDecision } from "../core/worker/decision.ts";
import type { PoolRecord } from "../core/worker/record.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { Put } from "../store/store.ts";
import { changePoolRequest, createPoolRequest, listPoolsRequest, poolRequest } from "../wire/worker-requests.ts";
import type { Answered, CallContext } from "./api.ts";
import { parseArguments } from "./arguments.ts";
import { conflict, isRepeat, type WorkerChanges } from "./worker-changes.ts";
import { markOf } from "./operation-ids.ts";
import type { WorkerRecords } from "./worker-records.ts";

const ROUNDS_MAX = 24;

interface PoolAsked {
  readonly tenantId: string;
  readonly applicationId?: string | undefined;
  readonly poolId: string;
}

const poolNotFound = (poolId: string): MandateError =>
  MandateError.of(refuse("WORKER_POOL_NOT_FOUND", "no such pool", { poolId }));

export interface PoolsOptions {
  readonly workerRecords: WorkerRecords;
  readonly changes: WorkerChanges;
  readonly projection: Projection;
  readonly now: () => number;
  /** Waits until the view is newer than the call; throws when it can't be had. */
  readonly viewIsNew: () => Promise<void>;
}

/** The calls about pools (contract 2.2). */
export class Pools {
  readonly #options: PoolsOptions;

  constructor(options: PoolsOptions) {
    this.#options = options;
  }

  async create(value: unknown, context: CallContext): Promise<Answered<PoolRecord>> {
    const { requestId, ...request } = parseArguments(createPoolRequest, value, "WORKER_INVALID");
    const { viewIsNew, now } = this.#options;
    await viewIsNew();
    return this.#change(
      { ...request, poolId: poolIdOf(request) },
      {
        action: "createPool",
        context,
        mark: markOf(context.caller ?? "", "createPool", requestId),
        decide: (existing) => decideCreatePool(existing, request, { workers: this.#known(), now: now() }),
      },
    );
  }

  async change(value: unknown, context: CallContext): Promise<Answered<PoolRecord>> {
    const { requestId, ...request } = parseArguments(changePoolRequest, value, "WORKER_INVALID");
    await this.#options.viewIsNew();
    return this.#change(request, {
      action: "changePool",
      context,
      mark: markOf(context.caller ?? "", "changePool", requestId),
      decide: (existing) => {
        if (existing === undefined) throw poolNotFound(request.poolId);
        return decidePoolMembers(existing, request, this.#known());
      },
    });
  }

  async remove(value: unknown, context: CallContext): Promise<Answered<PoolRecord>> {
    const request = parseArguments(poolRequest, value, "WORKER_INVALID");
    return this.#change(request, {
      action: "deletePool",
      context,
      removes: true,
      decide: (existing) => {
        if (existing === undefined) throw poolNotFound(request.poolId);
        return decideDeletePool(existing);
      },
    });
  }

  async get(value: unknown): Promise<Answered<PoolRecord>> {
    const request = parseArguments(poolRequest, value, "WORKER_INVALID");
    const held = await this.#options.workerRecords.freshPool(request, request.poolId);
    if (held?.value === undefined) throw poolNotFound(request.poolId);
    return { answer: held.value, position: { shard: held.shard, revision: held.revision } };
  }

  /** The pools of a tenant, or of one application and those that it shares. */
  async list(value: unknown): Promise<Answered<{ readonly pools: readonly PoolRecord[] }>> {
    const { tenantId, applicationId } = parseArguments(listPoolsRequest, value, "WORKER_INVALID");
    await this.#options.viewIsNew();
    const pools: PoolRecord[] = [];
    for (const { value: pool } of this.#options.projection.registry.pools.values())
      if (
        pool?.tenantId === tenantId &&
        (applicationId === undefined || pool.applicationId === undefined || pool.applicationId === applicationId)
      )
        pools.push(pool);
    return { answer: { pools: pools.sort((left, right) => (left.poolId < right.poolId ? -1 : 1)) } };
  }

  async #change(
    asked: PoolAsked,
    how: {
      readonly action: string;
      readonly context: CallContext;
      readonly removes?: boolean;
      /** From the requestId: what bears it is what an earlier try of the same request has made. */
      readonly mark?: string | undefined;
      readonly decide: (existing: PoolRecord | undefined) => PoolDecision<PoolRecord>;
    },
  ): Promise<Answered<PoolRecord>> {
    const { workerRecords, changes } = this.#options;
    const shard = workerRecords.shardOfPool(asked);
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const held = await workerRecords.freshPool(asked, asked.poolId);
      if (held?.value !== undefined && isRepeat(held, how.mark))
        return { answer: held.value, position: { shard: shard.index, revision: held.revision } };
      const decision = how.decide(held?.value);
      if (!decision.ok) throw MandateError.of(decision.error);
      let puts: readonly Put[] = [];
      if (how.removes === true) puts = changes.removedPoolPuts(decision.answer);
      else if (decision.record !== undefined) puts = [changes.poolPut(decision.record)];
      if (puts.length === 0) return { answer: decision.answer };
      const { action, context, mark } = how;
      const revisions = await changes.write({ action, scope: asked, shard, puts, context, mark });
      if (revisions !== undefined)
        return { answer: decision.answer, position: { shard: shard.index, revision: revisions[0] ?? 0 } };
    }
    throw conflict();
  }

  #known(): KnownWorkers {
    const known = new Map<string, { readonly tenantId: string; readonly applicationId: string }>();
    for (const { value } of this.#options.projection.registry.workers.values())
      if (value !== undefined) known.set(value.workerId, value);
    return known;
  }
}
