import { refuse, MandateError } from "../core/errors.ts";
import type { WorkloadRecord } from "../core/workload/record.ts";
import type { WorkloadState } from "../core/workload/states.ts";
import { resultKey, workloadKey, workloadPattern, type Scope } from "../store/keys.ts";
import { projectedOf, type Projected } from "../store/projection/projected.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { Entry, Shard, Store } from "../store/store.ts";
import { decodeResultReservation, decodeWorkload } from "../wire/codec.ts";

/** What a decision is built on. */
export interface Seen {
  readonly workload: Projected;
  /** Dependencies of the workload that exist in its own application. */
  readonly dependencies: ReadonlyMap<string, Projected>;
  /** The workload that the result id in question is reserved for, if that was asked for. */
  readonly reservedFor?: string;
  /** Read from the store after the call arrived: a refusal may be built on it (contract 5.4). */
  readonly fresh: boolean;
}

/** States of the dependencies, as the rules want them. */
export const dependencyStatesOf = (seen: Seen): ReadonlyMap<string, WorkloadState> =>
  new Map([...seen.dependencies].map(([workloadId, { record }]) => [workloadId, record.state]));

const readWorkload = (shard: Shard, entry: Entry | undefined): Projected | undefined => {
  if (entry === undefined) return undefined;
  const stored = decodeWorkload(entry.value);
  if (stored === undefined)
    throw new MandateError("WORKLOAD_MIGRATION_CONFLICT", "the stored record can't be read by this version", {
      details: { key: entry.key },
    });
  return projectedOf(shard.index, entry, stored);
};

const inScope = (record: Scope, scope: Scope | undefined): boolean =>
  scope === undefined || (scope.tenantId === record.tenantId && scope.applicationId === record.applicationId);

/** Reads workloads for decisions: from the view when it knows them, from the store when it must be sure. */
export class Records {
  readonly #store: Store;
  readonly #projection: Projection;

  constructor(store: Store, projection: Projection) {
    this.#store = store;
    this.#projection = projection;
  }

  shard(index: number): Shard {
    const shard = this.#store.shards[index];
    if (shard === undefined) throw new RangeError(`no shard ${index}`);
    return shard;
  }

  /** Whether the view knows the workload. */
  isKnown(workloadId: string): boolean {
    return this.#projection.index.get(workloadId) !== undefined;
  }

  /**
   * The workload as the view has it, or as the store has it when the view does not know it.
   *
   * @throws MandateError WORKLOAD_NOT_FOUND, on a fresh read, also for a workload outside the scope.
   */
  async current(workloadId: string, scope: Scope | undefined): Promise<Seen> {
    const known = this.#projection.index.get(workloadId);
    if (known === undefined) return this.fresh(workloadId, { scope });
    if (!inScope(known.record, scope)) throw this.#notFound(workloadId);
    return { workload: known, dependencies: this.#viewedDependencies(known.record), fresh: false };
  }

  /** The workload, its dependencies and a reservation in one snapshot that is newer than the call. What was read is adopted by the view. */
  async fresh(
    workloadId: string,
    ask: { readonly scope: Scope | undefined; readonly resultId?: string | undefined },
  ): Promise<Seen> {
    const found = await this.#find(workloadId);
    if (found === undefined || !inScope(found.record, ask.scope)) throw this.#notFound(workloadId);
    const { record } = found;
    const wanted = record.dependencies.map((dependency) => workloadKey(record, dependency.workloadId));
    const reservation = ask.resultId === undefined ? undefined : resultKey(record, ask.resultId);
    if (wanted.length === 0 && reservation === undefined)
      return { workload: found, dependencies: new Map(), fresh: true };
    const shard = this.shard(found.shard);
    const keys = [found.key, ...wanted, ...(reservation === undefined ? [] : [reservation])];
    const entries = await shard.read(keys, { fresh: true });
    const dependencies = new Map<string, Projected>();
    for (const key of wanted) {
      const dependency = this.#adopt(readWorkload(shard, entries.get(key)));
      if (dependency !== undefined) dependencies.set(dependency.record.workloadId, dependency);
    }
    const reserved = reservation === undefined ? undefined : entries.get(reservation);
    const reservedFor = reserved === undefined ? undefined : decodeResultReservation(reserved.value);
    return {
      workload: this.#adopt(readWorkload(shard, entries.get(found.key))) ?? found,
      dependencies,
      ...(reservedFor === undefined ? {} : { reservedFor }),
      fresh: true,
    };
  }

  /** The workload by a leader read: the newest there is, but beside a deposed leader. Falls back to a fresh read to say that there is none. */
  async newest(workloadId: string, scope: Scope | undefined): Promise<Projected> {
    const known = this.#projection.index.get(workloadId);
    if (known !== undefined && inScope(known.record, scope)) {
      const shard = this.shard(known.shard);
      const read = this.#adopt(readWorkload(shard, (await shard.read([known.key])).get(known.key)));
      if (read !== undefined) return read.revision >= known.revision ? read : known;
    }
    return (await this.fresh(workloadId, { scope })).workload;
  }

  #viewedDependencies(record: WorkloadRecord): ReadonlyMap<string, Projected> {
    const found = new Map<string, Projected>();
    for (const { workloadId } of record.dependencies) {
      const dependency = this.#projection.index.get(workloadId);
      if (dependency !== undefined && inScope(dependency.record, record)) found.set(workloadId, dependency);
    }
    return found;
  }

  async #find(workloadId: string): Promise<Projected | undefined> {
    const known = this.#projection.index.get(workloadId);
    const key = known?.key ?? workloadPattern(workloadId);
    const shards = known === undefined ? this.#store.shards : [this.shard(known.shard)];
    const found = await Promise.all(
      shards.map(async (shard) =>
        this.#adopt(readWorkload(shard, (await shard.read([key], { fresh: true })).get(key))),
      ),
    );
    return found.find((workload) => workload !== undefined);
  }

  #adopt(workload: Projected | undefined): Projected | undefined {
    if (workload !== undefined) this.#projection.adopt(workload);
    return workload;
  }

  #notFound(workloadId: string): MandateError {
    return MandateError.of(refuse("WORKLOAD_NOT_FOUND", "no such workload", { workloadId }));
  }
}
