import type { Log } from "../base/log.ts";
import { MandateError, refuse } from "../core/errors.ts";
import type { Change, Decision } from "../core/workload/decision.ts";
import type { Instant } from "../core/workload/fence.ts";
import type { WorkloadRecord } from "../core/workload/record.ts";
import { isRegistryKey, payloadKey, resultKey } from "../store/keys.ts";
import type { Projected } from "../store/projection/projected.ts";
import type { Projection } from "../store/projection/projection.ts";
import { OPERATION_RING, type Assertion, type Base, type CommitOutcome, type Put, type Shard } from "../store/store.ts";
import { encodePayload, encodeResultReservation, encodeWorkload } from "../wire/codec.ts";
import type { Answered, CallContext, Position } from "./api.ts";
import { failureOf } from "./failures.ts";
import { findReference, type OperationIds } from "./operation-ids.ts";
import { provenanceOf } from "./provenance.ts";
import type { Records, Seen } from "./records.ts";
import type { Slots } from "./slots.ts";

/** How often a decision is taken anew after losing a race, before WORKLOAD_CONFLICT. */
const ROUNDS_MAX = 24;
/** Largest record that an admission or a checkpoint may leave, bytes. */
const RECORD_GROWTH_BYTES_MAX = 1024 * 1024;
/** Largest record at all: what lies between is kept for claims and endings, which attempts bound (contract 5.2). */
const RECORD_BYTES_MAX = 4 * 1024 * 1024;

/** One command on one workload. */
export interface Work<Answer> {
  readonly workloadId: string;
  readonly context: CallContext;
  /** From the requestId; see {@link OperationIds}. */
  readonly mark?: string | undefined;
  /** A caller's result id whose reservation the decision must know before it may refuse. */
  readonly resultId?: string | undefined;
  /** The answer without a change may be built on the view alone: for passes, whose negative answer says nothing to anybody. */
  readonly trustsView?: boolean;
  decide(seen: Seen, instant: Instant): Decision<Answer>;
  /** What else the commit of a decision holds: the slots that a claim takes, and what it must find as it was seen. */
  attach?(): { readonly slots: readonly Put[]; readonly asserts: readonly Assertion[] };
  /** Makes whatever else the last decision was built on as new as a fresh read of the workload. */
  refresh?(): Promise<void>;
  /** Whether the last decision, a refusal, rests on what {@link refresh} has not made sure of since the request came. */
  isDoubtful?(): boolean;
  /** It is over, whatever came of it. */
  end?(): void;
  /** The answer of an earlier try of the same request, from what it did; `undefined`: decide as usual. May throw a refusal. */
  repeat?(record: WorkloadRecord, reference: number): Answer | undefined;
}

/** What `Executor.commit` needs beside the change. */
export interface CommitRequest {
  readonly change: Change;
  readonly key: string;
  readonly shard: Shard;
  readonly base: Base;
  readonly mark: string | undefined;
  readonly context: CallContext;
  readonly asserts: readonly Assertion[];
  /** The record that the change was decided on, when there was one: a claim that ends with it frees its slots. */
  readonly before?: WorkloadRecord | undefined;
  /** Further guarded writes of the same commit: the slots that a claim takes. */
  readonly slots?: readonly Put[];
}

export interface ExecutorOptions {
  readonly nodeId: string;
  readonly records: Records;
  readonly projection: Projection;
  readonly slots: Slots;
  readonly operationIds: OperationIds;
  readonly instant: () => Instant;
  readonly random: () => number;
  readonly log: Log;
  /** Waits between rounds, ms. */
  readonly pause: (ms: number) => Promise<void>;
  readonly commitDeadlineMs: number;
  readonly onCommit: (action: string, outcome: CommitOutcome["kind"]) => void;
}

const positionOf = ({ shard, revision }: Projected): Position => ({ shard, revision });

/**
 * Read → decide → guarded commit → resolve (contract 5.3). A decision is valid only if its guarded commit succeeded; a
 * lost race is decided anew on what was committed; a refusal is confirmed on a read that is newer than the call.
 */
export class Executor {
  readonly #options: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  async run<Answer>(work: Work<Answer>): Promise<Answered<Answer>> {
    try {
      return await this.#run(work);
    } finally {
      work.end?.();
    }
  }

  async #run<Answer>(work: Work<Answer>): Promise<Answered<Answer>> {
    const { records } = this.#options;
    let seen = await records.current(work.workloadId, work.context.scope);
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const reference = work.mark === undefined ? undefined : findReference(seen.workload.operations, work.mark);
      if (reference !== undefined && work.repeat !== undefined) {
        if (!seen.fresh) {
          seen = await this.#readAgain(work);
          continue;
        }
        const answer = work.repeat(seen.workload.record, reference);
        if (answer !== undefined) return { answer, position: positionOf(seen.workload) };
      }
      const decision = work.decide(seen, this.#options.instant());
      if (decision.change === undefined) {
        // The workload may be known afresh while the rest of what is decided on is not.
        const isFresh = seen.fresh && work.isDoubtful?.() !== true;
        if (isFresh || (decision.ok && work.trustsView === true)) return this.#conclude(decision, seen.workload);
        seen = await this.#readAgain(work);
        continue;
      }
      if (!seen.workload.writable)
        throw MandateError.of(
          refuse("WORKLOAD_MIGRATION_CONFLICT", "the record is of a format that this node must not write"),
        );
      // What is committed only to be followed by a refusal is not what the request asked for: it bears no mark of it.
      const mark = decision.ok ? work.mark : undefined;
      const done = await this.#tryCommit(work, { seen, change: decision.change, mark });
      if (done !== undefined) return this.#conclude(decision, done);
      seen = await this.#readAgain(work);
      if (round > 1) await this.#options.pause(this.#options.random() * Math.min(2 ** round, 100));
    }
    throw MandateError.of(
      refuse("WORKLOAD_CONFLICT", "other writers kept winning; try again", { workloadId: work.workloadId }),
    );
  }

  /** Commits one change; the committed workload, or nothing when a guard refused it. Throws when it can't be done, or when nobody can tell. */
  async commit(request: CommitRequest): Promise<Projected | undefined> {
    const { change, shard, before } = request;
    const operationId = this.#options.operationIds.next(request.mark, change.reference);
    const own = this.putsOf(change, request.key, request.base);
    const { slots } = this.#options;
    const freed = before === undefined ? [] : await slots.releases(before, change.record, shard);
    const taken = [...freed, ...(request.slots ?? [])];
    const puts = [...own, ...taken];
    this.expect(change, request.key, operationId);
    const outcome = await shard.commit(
      {
        operationId,
        puts,
        asserts: request.asserts,
        provenance: provenanceOf(change, { operationId, context: request.context, nodeId: this.#options.nodeId }),
      },
      { deadlineMs: this.#options.commitDeadlineMs },
    );
    if (outcome.kind === "committed")
      slots.adopt(shard.index, taken, { revisions: outcome.revisions.slice(own.length), operationId });
    const committed = this.settle(outcome, { ...request, operationId });
    // Whichever guard was broken: the next try must not be built on the same again.
    if (committed === undefined)
      await slots.refresh(shard, [...taken, ...request.asserts].map(({ key }) => key).filter(isRegistryKey));
    return committed;
  }

  /** Tells the view of a commit that is about to be sent. {@link settle} ends it. */
  expect(change: Change, key: string, operationId: string): void {
    const { nodeId, projection } = this.#options;
    projection.expect(key, { operationId, record: change.record, node: nodeId, action: change.action });
  }

  /** Takes the outcome of a commit in: adopts what was committed, throws what can't be told as a refusal. */
  settle(
    outcome: CommitOutcome,
    request: CommitRequest & { readonly operationId: string; readonly revision?: number },
  ): Projected | undefined {
    const { change } = request;
    this.#options.projection.forget(request.key, request.operationId);
    this.#options.onCommit(change.action, outcome.kind);
    const { workloadId, state } = change.record;
    this.#options.log.debug(
      { action: change.action, workloadId, state, outcome: outcome.kind, operationId: request.operationId },
      "commit",
    );
    if (outcome.kind === "refused") return undefined;
    if (outcome.kind !== "committed") throw failureOf(outcome);
    const past = request.base === "absent" ? [] : request.base.operations;
    const committed: Projected = {
      record: change.record,
      writable: true,
      key: request.key,
      shard: request.shard.index,
      revision: request.revision ?? outcome.revisions[0] ?? 0,
      operations: [...past.slice(1 - OPERATION_RING), request.operationId],
      node: this.#options.nodeId,
      action: change.action,
    };
    this.#options.projection.adopt(committed);
    return committed;
  }

  /** The guarded writes of a change: the record first. */
  putsOf(change: Change, key: string, base: Base): readonly Put[] {
    const { record } = change;
    const value = encodeWorkload(record);
    const bytesMax = change.reserve ? RECORD_BYTES_MAX : RECORD_GROWTH_BYTES_MAX;
    if (value.length > bytesMax)
      throw MandateError.of(
        refuse("WORKLOAD_TOO_LARGE", `the record would have ${value.length} bytes; ${bytesMax} are allowed`, {
          bytes: value.length,
          bytesMax,
        }),
      );
    const puts: Put[] = [{ key, value, base }];
    for (const { slot, json } of change.payloads)
      puts.push({ key: payloadKey(record, record.workloadId, slot), value: encodePayload(json), base: "absent" });
    if (change.reservedResultId !== undefined)
      puts.push({
        key: resultKey(record, change.reservedResultId),
        value: encodeResultReservation(record.workloadId),
        base: "absent",
      });
    return puts;
  }

  async #tryCommit<Answer>(
    work: Work<Answer>,
    done: { readonly seen: Seen; readonly change: Change; readonly mark: string | undefined },
  ): Promise<Projected | undefined> {
    const { seen, change } = done;
    const { slots = [], asserts: further = [] } = done.change.action === "claim" ? (work.attach?.() ?? {}) : {};
    const asserts: Assertion[] = [...further];
    for (const workloadId of change.assertedDependencies) {
      const dependency = seen.dependencies.get(workloadId);
      if (dependency !== undefined) asserts.push({ key: dependency.key, revision: dependency.revision });
    }
    return this.commit({
      change,
      key: seen.workload.key,
      shard: this.#options.records.shard(seen.workload.shard),
      base: seen.workload,
      mark: done.mark,
      context: work.context,
      asserts,
      slots,
      before: seen.workload.record,
    });
  }

  async #readAgain<Answer>(work: Work<Answer>): Promise<Seen> {
    const seen = await this.#options.records.fresh(work.workloadId, {
      scope: work.context.scope,
      resultId: work.resultId,
    });
    // Last, so that nothing of it has moved on when it is decided on.
    await work.refresh?.();
    return seen;
  }

  #conclude<Answer>(decision: Decision<Answer>, workload: Projected): Answered<Answer> {
    if (decision.ok) return { answer: decision.answer, position: positionOf(workload) };
    throw MandateError.of(decision.error);
  }
}
