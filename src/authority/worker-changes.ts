import { MandateError, refuse, type Refusal } from "../core/errors.ts";
import type { Instant } from "../core/workload/fence.ts";
import type { WorkerDecision } from "../core/worker/decision.ts";
import { withoutMember } from "../core/worker/pool.ts";
import type { PoolRecord, Slot, WorkerRecord } from "../core/worker/record.ts";
import type { WorkerSeen } from "../core/worker/slots.ts";
import { poolKey, slotKey, slotsPrefix, workerKey, type Scope } from "../store/keys.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { Held } from "../store/projection/registry.ts";
import type { Put, Shard } from "../store/store.ts";
import { encodePool, encodeRemoved, encodeSlot, encodeWorker, REMOVED_TTL_MS } from "../wire/worker-codec.ts";
import type { Answered, CallContext } from "./api.ts";
import { failureOf } from "./failures.ts";
import { whoOf } from "./provenance.ts";
import { findReference, type OperationIds } from "./operation-ids.ts";
import type { Slots } from "./slots.ts";
import type { WorkerAsked, WorkerRecords } from "./worker-records.ts";

/** How long a commit waits for the view to show it, ms. */
const CATCH_UP_MS = 2000;
/** How often a decision is taken anew after losing a race. */
const ROUNDS_MAX = 24;

/** Most slots that go with their owner: one commit has a bound, and few owners have more. */
const SLOTS_REMOVED_MAX = 500;

/** What a commit about a worker or a pool writes. */
export interface RegistryWrite {
  readonly action: string;
  readonly scope: { readonly tenantId: string; readonly applicationId?: string | undefined };
  readonly shard: Shard;
  readonly puts: readonly Put[];
  readonly context: CallContext;
  readonly workerId?: string | undefined;
  /** From the requestId; see {@link OperationIds}. */
  readonly mark?: string | undefined;
}

export interface WorkerChangesOptions {
  readonly nodeId: string;
  readonly records: WorkerRecords;
  readonly projection: Projection;
  readonly slots: Slots;
  readonly operationIds: OperationIds;
  readonly instant: () => Instant;
  readonly commitDeadlineMs: number;
}

/** One command on one worker. */
export interface WorkerWork<Answer> {
  readonly action: string;
  readonly asked: WorkerAsked;
  readonly context: CallContext;
  /** The answer without a change may be built on the view alone: for passes. */
  readonly trustsView?: boolean;
  decide(seen: WorkerSeen | undefined, instant: Instant): WorkerDecision<Answer> | Promise<WorkerDecision<Answer>>;
  /** Slots that go free in the same commit. */
  freed?(answer: Answer): readonly Slot[];
  /** From the requestId; see {@link OperationIds}. */
  readonly mark?: string | undefined;
  /** The answer to the repeat of a request whose first try was committed. Absent: it is decided anew. */
  repeat?(record: WorkerRecord): Answer;
}

/**
 * Read → decide → guarded commit → resolve for workers and pools, as the executor does it for workloads: a lost race is
 * decided anew, and a refusal is confirmed on a read that is newer than the call.
 */
export class WorkerChanges {
  readonly #options: WorkerChangesOptions;

  constructor(options: WorkerChangesOptions) {
    this.#options = options;
  }

  async run<Answer>(work: WorkerWork<Answer>): Promise<Answered<Answer>> {
    const { records, instant } = this.#options;
    const { asked } = work;
    const shard = records.shardOf(asked);
    /** What has been read from the store since the request came. */
    const isSure = { record: false, claims: false };
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const held = await this.#decidable(asked);
      if (held?.writable === false) throw notWritable();
      // One that drains is OFFLINE once its last claim has ended: a refusal must know of that end.
      const isFresh = isSure.record && (isSure.claims || held?.value?.lifecycle !== "DRAINING");
      const slots = records.heldSlotsOf(asked);
      const seen = held?.value === undefined ? undefined : records.seen(held.value);
      if (held?.value !== undefined && work.repeat !== undefined && isRepeat(held, work.mark)) {
        if (isFresh)
          return { answer: work.repeat(held.value), position: { shard: shard.index, revision: held.revision } };
        await this.#readAgain(asked, isSure);
        continue;
      }
      const decision = await work.decide(seen, instant());
      if (decision.record === undefined) {
        if (isFresh || (decision.ok && work.trustsView === true)) return conclude(decision, shard, held?.revision);
        await this.#readAgain(asked, isSure);
        continue;
      }
      const freed = decision.ok ? (work.freed?.(decision.answer) ?? []) : [];
      const revisions = await this.write({
        action: work.action,
        scope: asked,
        shard,
        context: work.context,
        workerId: asked.workerId,
        mark: work.mark,
        // On the versions that were decided on, not on those that the view has meanwhile come to.
        puts: [putOf(decision.record, held ?? "absent"), ...freed.map((slot) => slotPutOf(asked, slot, slots))],
      });
      if (revisions !== undefined) return conclude(decision, shard, revisions[0]);
      isSure.record = true;
    }
    throw conflict();
  }

  /** Makes sure of the worker, and of the claims of one that drains. */
  async #readAgain(asked: WorkerAsked, isSure: { record: boolean; claims: boolean }): Promise<void> {
    const { records } = this.#options;
    const record = await records.fresh(asked);
    isSure.record = true;
    if (record?.lifecycle !== "DRAINING") return;
    await records.refreshClaims(asked);
    isSure.claims = true;
  }

  /** What the view has; of one that drains with every claim that it has left, since it is OFFLINE once there is none. */
  async #decidable(asked: WorkerAsked): Promise<Held<WorkerRecord> | undefined> {
    const { records } = this.#options;
    const held = records.viewed(asked);
    return held?.value?.lifecycle === "DRAINING" ? records.withClaims(asked) : held;
  }

  /** Commits; the revisions, or nothing when a guard refused it: then the view is up to date. Throws when it can't be done, or when nobody can tell. */
  async write({
    action,
    scope,
    shard,
    puts,
    context,
    workerId,
    mark,
  }: RegistryWrite): Promise<readonly number[] | undefined> {
    const { operationIds, nodeId, commitDeadlineMs, slots, projection } = this.#options;
    const operationId = operationIds.next(mark, 0);
    const provenance: Record<string, string> = { action, node: nodeId, tenant: scope.tenantId, ...whoOf(context) };
    if (scope.applicationId !== undefined) provenance["application"] = scope.applicationId;
    if (workerId !== undefined) provenance["worker"] = workerId;
    const outcome = await shard.commit({ operationId, puts, provenance }, { deadlineMs: commitDeadlineMs });
    if (outcome.kind === "refused") {
      await slots.refresh(
        shard,
        puts.map(({ key }) => key),
      );
      return undefined;
    }
    if (outcome.kind !== "committed") throw failureOf(outcome);
    // Delivered, it comes with every claim that was committed before it; only a view that stands still is told of it alone.
    await projection.waitFor(shard.index, Math.max(...outcome.revisions), CATCH_UP_MS);
    slots.adopt(shard.index, puts, { revisions: outcome.revisions, operationId });
    return outcome.revisions;
  }

  /** Commits a worker's next version on the one that the view has; nothing when a guard refused it. */
  replace(record: WorkerRecord, action: string, context: CallContext): Promise<readonly number[] | undefined> {
    const shard = this.#options.records.shardOf(record);
    const { workerId } = record;
    return this.write({
      action,
      scope: record,
      shard,
      puts: [putOf(record, this.#baseOf(keyOf(record)))],
      context,
      workerId,
    });
  }

  /** Takes a worker out of the registry, and out of its pools; `false`: decide anew. */
  async remove(record: WorkerRecord, pools: readonly PoolRecord[], context: CallContext): Promise<boolean> {
    const { records } = this.#options;
    const shard = records.shardOf(record);
    const near = pools.filter((pool) => records.shardOfPool(pool) === shard);
    const { workerId } = record;
    const mark = this.#removedPut(workerKey(record, workerId));
    const puts = [mark, ...near.map((pool) => this.poolPut(pool)), ...this.#removedSlotPuts(record, workerId)];
    if ((await this.write({ action: "removeWorker", scope: record, shard, puts, context, workerId })) === undefined)
      return false;
    // Pools of the whole tenant may live in another shard, which one commit can't reach.
    for (const pool of pools.filter((other) => !near.includes(other))) await this.#leave(pool, workerId, context);
    return true;
  }

  /** Takes a worker that is gone out of a pool of another shard, whatever else becomes of the pool meanwhile. */
  async #leave(pool: PoolRecord, workerId: string, context: CallContext): Promise<void> {
    const { records } = this.#options;
    const shard = records.shardOfPool(pool);
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const known = (await records.freshPool(pool, pool.poolId))?.value;
      const left = known === undefined ? undefined : withoutMember(known, workerId);
      if (left === undefined) return;
      const puts = [this.poolPut(left)];
      if ((await this.write({ action: "changePool", scope: left, shard, puts, context })) !== undefined) return;
    }
    throw conflict();
  }

  /** The guarded write of a pool. */
  poolPut(pool: PoolRecord): Put {
    const key = poolKey(pool, pool.poolId);
    return { key, value: encodePool(pool), base: this.#baseOf(key) };
  }

  /** The guarded writes that take a pool out, with its free slots: claims in the others run on. */
  removedPoolPuts(pool: PoolRecord): readonly Put[] {
    const { applicationId, poolId, tenantId } = pool;
    const slots = applicationId === undefined ? [] : this.#removedSlotPuts({ tenantId, applicationId }, poolId);
    return [this.#removedPut(poolKey(pool, poolId)), ...slots];
  }

  /** Free slots of an owner that goes: they would stay in the store, and in every view, for good. */
  #removedSlotPuts(scope: Scope, ownerId: string): readonly Put[] {
    return [...this.#options.projection.registry.slotsOf(slotsPrefix(scope, ownerId))]
      .filter(({ value }) => value !== undefined && value.held === undefined)
      .slice(0, SLOTS_REMOVED_MAX)
      .map(({ key }) => this.#removedPut(key));
  }

  #removedPut(key: string): Put {
    return { key, value: encodeRemoved(), base: this.#baseOf(key), ttlMs: REMOVED_TTL_MS };
  }

  #baseOf(key: string): Put["base"] {
    const { workers, pools, slots } = this.#options.projection.registry;
    return workers.get(key) ?? pools.get(key) ?? slots.get(key) ?? "absent";
  }
}

/** Whether an earlier try of the same request has made this version, or one that it was built on. */
export const isRepeat = ({ operations }: Held<unknown>, mark: string | undefined): boolean =>
  mark !== undefined && findReference(operations, mark) !== undefined;

const keyOf = (record: WorkerRecord): string => workerKey(record, record.workerId);

const putOf = (record: WorkerRecord, base: Put["base"]): Put => ({
  key: keyOf(record),
  value: encodeWorker(record),
  base,
});

function slotPutOf(scope: Scope, slot: Slot, held: ReadonlyMap<string, Held<Slot>>): Put {
  const key = slotKey(scope, slot.ownerId, slot.index);
  return { key, value: encodeSlot(slot), base: held.get(key) ?? "absent" };
}

function conclude<Answer>(
  decision: { readonly ok: true; readonly answer: Answer } | { readonly ok: false; readonly error: Refusal },
  shard: Shard,
  revision: number | undefined,
): Answered<Answer> {
  if (!decision.ok) throw MandateError.of(decision.error);
  return {
    answer: decision.answer,
    ...(revision === undefined ? {} : { position: { shard: shard.index, revision } }),
  };
}

/** Other writers kept winning. */
export const conflict = (): MandateError =>
  MandateError.of(refuse("WORKLOAD_CONFLICT", "other writers kept winning; try again"));

const notWritable = (): MandateError =>
  MandateError.of(refuse("WORKLOAD_MIGRATION_CONFLICT", "the record is of a format that this node must not write"));
