import { addTo, removeFrom } from "../../base/set-map.ts";
import { shareText } from "../../base/shared-text.ts";
import type { DependencyStates } from "../../core/workload/claim.ts";
import { nextDeadline } from "../../core/workload/deadlines.ts";
import type { WorkloadRecord } from "../../core/workload/record.ts";
import { heldStates, type WorkloadState } from "../../core/workload/states.ts";
import { HeldWorkload } from "./held-workload.ts";
import { outlineOf, type Outline } from "./outline.ts";
import { compareDue, compareRank, type Due, type Projected, type Rank } from "./projected.ts";
import { queueOf, ReadyQueues, type ReadyOptions } from "./ready-queues.ts";
import { SortedSet } from "./sorted-set.ts";

/** What was filed for a record, so that it can be taken out again. */
interface Filed {
  readonly queue: string;
  readonly outline: Outline;
  /** Workloads that it waits for. */
  readonly dependencies: readonly string[];
  readonly lease: Due | undefined;
  readonly deadline: Due | undefined;
  readonly worker: string | undefined;
}

/** The worker of a claim within its application. */
const workerOf = (record: WorkloadRecord): string | undefined =>
  record.currentClaim === undefined
    ? undefined
    : JSON.stringify([record.tenantId, record.applicationId, record.currentClaim.workerId]);

const noDependencies: readonly string[] = [];

const dependenciesOf = ({ dependencies }: WorkloadRecord): readonly string[] =>
  dependencies.length === 0 ? noDependencies : dependencies.map(({ workloadId }) => shareText(workloadId));

/**
 * Current workloads with their indexes (contract 5.4): by application and state, the ready queues, due leases and
 * deadlines, claims by worker, dependants, counts. All derived from records alone.
 */
export class WorkloadIndex {
  readonly #workloads = new Map<string, Projected>();
  readonly #filed = new Map<string, Filed>();
  readonly #byState = new Map<string, Map<WorkloadState, SortedSet<Rank>>>();
  readonly #leases = new SortedSet<Due>(compareDue);
  readonly #deadlines = new SortedSet<Due>(compareDue);
  readonly #byWorker = new Map<string, Set<string>>();
  readonly #dependants = new Map<string, Set<string>>();
  readonly #counts = new Map<WorkloadState, number>();
  readonly #ready: ReadyQueues;
  readonly #now: () => number;

  constructor(options: { readonly now: () => number } & ReadyOptions) {
    this.#now = options.now;
    this.#ready = new ReadyQueues(options);
  }

  get size(): number {
    return this.#workloads.size;
  }

  get ready(): ReadyQueues {
    return this.#ready;
  }

  get(workloadId: string): Projected | undefined {
    return this.#workloads.get(workloadId);
  }

  all(): IterableIterator<Projected> {
    return this.#workloads.values();
  }

  /** All of them, each with its outline. */
  *outlined(): Generator<{ readonly workload: Projected; readonly outline: Outline }, undefined> {
    for (const [workloadId, workload] of this.#workloads) {
      const outline = this.outline(workloadId);
      if (outline !== undefined) yield { workload, outline };
    }
    return undefined;
  }

  /** What is asked of a workload without its record. */
  outline(workloadId: string): Outline | undefined {
    return this.#filed.get(workloadId)?.outline;
  }

  /** Ids of a few workloads, drawn evenly: a walk from a random place. */
  sample(size: number, random: () => number): readonly string[] {
    const from = Math.floor(random() * Math.max(this.#workloads.size - size + 1, 1));
    const drawn: string[] = [];
    let index = 0;
    for (const workloadId of this.#workloads.keys()) {
      if (index++ < from) continue;
      if (drawn.length >= size) break;
      drawn.push(workloadId);
    }
    return drawn;
  }

  /** Takes a newer version of a workload in; `false` when what is known is as new. */
  apply(next: Projected): boolean {
    const { record } = next;
    const outline = next instanceof HeldWorkload ? next.outline : outlineOf(record);
    const { workloadId } = outline;
    const known = this.#workloads.get(workloadId);
    const stateBefore = this.#filed.get(workloadId)?.outline.state;
    if (known !== undefined && known.shard === next.shard && known.revision >= next.revision) return false;
    this.#unfile(workloadId);
    this.#workloads.set(workloadId, next);
    const dependencies = dependenciesOf(record);
    if (known === undefined) for (const dependency of dependencies) addTo(this.#dependants, dependency, workloadId);
    this.#file(next, outline, dependencies);
    this.#ready.remove(workloadId);
    this.refile(workloadId);
    if (stateBefore !== outline.state) this.#refileDependants(workloadId);
    return true;
  }

  /** Forgets all workloads of a shard: it is about to be told anew. */
  forgetShard(shard: number): void {
    for (const [workloadId, { shard: home }] of this.#workloads) {
      if (home !== shard) continue;
      const dependencies = this.#filed.get(workloadId)?.dependencies ?? noDependencies;
      this.#unfile(workloadId);
      this.#ready.remove(workloadId);
      for (const dependency of dependencies) removeFrom(this.#dependants, dependency, workloadId);
      this.#workloads.delete(workloadId);
    }
  }

  /** States of a record's dependencies, as far as they exist in its own tenant and application. */
  dependencyStates(record: WorkloadRecord): DependencyStates {
    const states = new Map<string, WorkloadState>();
    for (const { workloadId } of record.dependencies) {
      const found = this.outline(workloadId);
      if (found?.tenantId === record.tenantId && found.applicationId === record.applicationId)
        states.set(workloadId, found.state);
    }
    return states;
  }

  /** Moves early workloads whose time has come into their queues. */
  promoteDue(): void {
    const now = this.#now();
    for (const workloadId of [...this.#ready.dueAt(now)]) this.refile(workloadId);
  }

  /** Files a READY workload where it stands now. */
  refile(workloadId: string): void {
    const workload = this.#workloads.get(workloadId);
    if (workload?.writable !== true) return;
    if (this.outline(workloadId)?.state !== "READY") this.#ready.remove(workloadId);
    else {
      const { record } = workload;
      this.#ready.file(record, { now: this.#now(), dependencies: this.dependencyStates(record) });
    }
  }

  /** Workloads whose lease has run out at an instant, longest ago first. */
  leasesDue(now: number): readonly string[] {
    return this.#dueIn(this.#leases, now);
  }

  /** Workloads of which a deadline has passed at an instant, longest ago first. */
  deadlinesDue(now: number): readonly string[] {
    return this.#dueIn(this.#deadlines, now);
  }

  /** Ids of the workloads that a worker holds. */
  claimsOf(scope: { readonly tenantId: string; readonly applicationId: string }, workerId: string): readonly string[] {
    return [...(this.#byWorker.get(JSON.stringify([scope.tenantId, scope.applicationId, workerId])) ?? [])];
  }

  /** Sorted sets of an application's workloads in the given states, or of every application's. */
  *ranksOf(states: readonly WorkloadState[], queue?: string): Generator<SortedSet<Rank>, undefined> {
    const queues = queue === undefined ? this.#byState.values() : [this.#byState.get(queue)];
    for (const byState of queues)
      for (const state of states) {
        const ranks = byState?.get(state);
        if (ranks !== undefined) yield ranks;
      }
    return undefined;
  }

  /** How many workloads are in each state. */
  counts(): ReadonlyMap<WorkloadState, number> {
    return this.#counts;
  }

  #dueIn(set: SortedSet<Due>, now: number): readonly string[] {
    const due: string[] = [];
    for (const { at, workloadId } of set.items()) {
      if (at > now) break;
      due.push(workloadId);
    }
    return due;
  }

  #refileDependants(workloadId: string): void {
    for (const dependant of this.#dependants.get(workloadId) ?? [])
      if (this.outline(dependant)?.state === "READY") this.refile(dependant);
  }

  /** What this node must not write is counted and listed, and never due. */
  #file({ record, writable }: Projected, outline: Outline, dependencies: readonly string[]): void {
    const { currentClaim } = record;
    const { workloadId, state } = outline;
    // A record's own history holds its time forward (contract 1.4): what it has outlived is due at any reading of the clock.
    const own = record.history.at(-1)?.at ?? 0;
    const dueAt = (at: number): Due => ({ at: at <= own ? 0 : at, workloadId });
    const next = writable ? nextDeadline(record) : undefined;
    const leased = writable && currentClaim !== undefined && heldStates.includes(state);
    const filed: Filed = {
      queue: shareText(queueOf(record)),
      outline,
      dependencies,
      lease: leased ? dueAt(currentClaim.expiresAt) : undefined,
      deadline: next === undefined ? undefined : dueAt(next.deadlineAt),
      worker: workerOf(record),
    };
    this.#filed.set(workloadId, filed);
    let byState = this.#byState.get(filed.queue);
    if (byState === undefined) this.#byState.set(filed.queue, (byState = new Map()));
    let ranks = byState.get(state);
    if (ranks === undefined) byState.set(state, (ranks = new SortedSet(compareRank)));
    ranks.add(outline);
    if (filed.lease !== undefined) this.#leases.add(filed.lease);
    if (filed.deadline !== undefined) this.#deadlines.add(filed.deadline);
    if (filed.worker !== undefined) addTo(this.#byWorker, filed.worker, workloadId);
    this.#counts.set(state, (this.#counts.get(state) ?? 0) + 1);
  }

  #unfile(workloadId: string): void {
    const filed = this.#filed.get(workloadId);
    if (filed === undefined) return;
    this.#filed.delete(workloadId);
    const { state } = filed.outline;
    this.#byState.get(filed.queue)?.get(state)?.delete(filed.outline);
    if (filed.lease !== undefined) this.#leases.delete(filed.lease);
    if (filed.deadline !== undefined) this.#deadlines.delete(filed.deadline);
    if (filed.worker !== undefined) removeFrom(this.#byWorker, filed.worker, workloadId);
    this.#counts.set(state, (this.#counts.get(state) ?? 1) - 1);
  }
}
