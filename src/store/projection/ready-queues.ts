import { lacksApproval, pendingDependencies, type DependencyStates } from "../../core/workload/claim.ts";
import type { WorkloadRecord } from "../../core/workload/record.ts";
import { instantOf } from "../../core/workload/transition.ts";
import { laneOf, needsOf, type Ability, type Needs } from "./ability.ts";
import { mergedRanks } from "./merged-ranks.ts";
import { compareDue, rankOf, readyOrder, type Due, type Rank, type RankOrder } from "./projected.ts";
import { SortedSet } from "./sorted-set.ts";

/** What a worker may be given now, all with the same needs. */
interface Lane {
  readonly needs: Needs;
  readonly ranks: SortedSet<Rank>;
}

/** Where a READY workload stands. */
type Place =
  | { readonly kind: "lane"; readonly queue: string; readonly lane: string; readonly rank: Rank }
  | { readonly kind: "later"; readonly due: Due }
  | { readonly kind: "blocked" };

/** Names the queue of one application. */
export const queueOf = (scope: { readonly tenantId: string; readonly applicationId: string }): string =>
  JSON.stringify([scope.tenantId, scope.applicationId]);

export interface ReadyHooks {
  /** Told the queue in which something became claimable. */
  readonly onReady: (queue: string) => void;
  /** Told the instant at which something early will be claimable. */
  readonly onLater: (at: number) => void;
}

export interface ReadyOptions extends ReadyHooks {
  /** How long work waits for each step of priority that it gains, ms; absent: priority alone decides. */
  readonly agingMs?: number | undefined;
}

/**
 * READY workloads by application, what is claimable now apart from what is early or waits for a dependency. Within an
 * application one lane for each set of needs, so that a worker never walks past work it can't take.
 * Derived from records alone; a hint for whom to try, never a decision.
 */
export class ReadyQueues {
  readonly #places = new Map<string, Place>();
  readonly #queues = new Map<string, Map<string, Lane>>();
  readonly #later = new SortedSet<Due>(compareDue);
  readonly #hooks: ReadyHooks;
  readonly #order: RankOrder;

  constructor(options: ReadyOptions) {
    this.#hooks = options;
    this.#order = readyOrder(options.agingMs);
  }

  /** Files a record anew; call it when the record, or a dependency of it, has changed. */
  file(record: WorkloadRecord, seen: { readonly now: number; readonly dependencies: DependencyStates }): void {
    this.remove(record.workloadId);
    if (record.state !== "READY" || lacksApproval(record)) return;
    if (record.nextAttemptAt !== undefined && record.nextAttemptAt > instantOf(record, seen.now)) {
      const due = { at: record.nextAttemptAt, workloadId: record.workloadId };
      this.#later.add(due);
      this.#places.set(record.workloadId, { kind: "later", due });
      this.#hooks.onLater(due.at);
      return;
    }
    if (record.dependencies.length > 0 && pendingDependencies(record, seen.dependencies).length > 0) {
      this.#places.set(record.workloadId, { kind: "blocked" });
      return;
    }
    this.#enter(record);
  }

  /** Takes a workload out, wherever it stands. */
  remove(workloadId: string): void {
    const place = this.#places.get(workloadId);
    if (place === undefined) return;
    this.#places.delete(workloadId);
    if (place.kind === "later") this.#later.delete(place.due);
    if (place.kind !== "lane") return;
    const lanes = this.#queues.get(place.queue);
    const lane = lanes?.get(place.lane);
    lane?.ranks.delete(place.rank);
    if (lane?.ranks.size === 0) lanes?.delete(place.lane);
    if (lanes?.size === 0) this.#queues.delete(place.queue);
  }

  /** Ids of workloads whose time has come: file them again. */
  *dueAt(now: number): Generator<string, undefined> {
    for (const due of this.#later.items()) {
      if (due.at > now) return undefined;
      yield due.workloadId;
    }
    return undefined;
  }

  /** When the next early workload's time comes. */
  nextDueAt(): number | undefined {
    return this.#later.first()?.at;
  }

  /** How many workloads of a queue could be claimed now by somebody. */
  size(queue: string): number {
    let size = 0;
    for (const lane of this.#queues.get(queue)?.values() ?? []) size += lane.ranks.size;
    return size;
  }

  /** Candidates for a worker, in the order in which they are to be given out. Nothing may be filed while this is walked. */
  *candidates(queue: string, ability: Ability): Generator<Rank, undefined> {
    const walks: Iterator<Rank>[] = [];
    for (const lane of this.#queues.get(queue)?.values() ?? [])
      if (ability.accepts(lane.needs)) walks.push(lane.ranks.items());
    yield* mergedRanks(walks, this.#order);
    return undefined;
  }

  #enter(record: WorkloadRecord): void {
    const queue = queueOf(record);
    const needs = needsOf(record);
    const laneName = laneOf(needs);
    let lanes = this.#queues.get(queue);
    if (lanes === undefined) this.#queues.set(queue, (lanes = new Map()));
    let lane = lanes.get(laneName);
    if (lane === undefined) lanes.set(laneName, (lane = { needs, ranks: new SortedSet(this.#order) }));
    const rank = rankOf(record);
    lane.ranks.add(rank);
    this.#places.set(record.workloadId, { kind: "lane", queue, lane: laneName, rank });
    this.#hooks.onReady(queue);
  }
}
