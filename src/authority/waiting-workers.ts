import type { Ability } from "../store/projection/ability.ts";
import type { Rank } from "../store/projection/projected.ts";

/** A worker that waits for work in one queue. */
export interface WaitingWorker {
  readonly queue: string;
  readonly workerId: string;
  readonly ability: Ability;
  /** How much he may take; 0 while he may take nothing. */
  readonly max: number;
  /** Handed what to try; called once, then the worker no longer waits. */
  offer(candidates: readonly Rank[]): void;
  /** Whether a later process has taken his name: then he waits in vain. Absent: none ever does. */
  isSuperseded?(): boolean;
  /** Told that there will be nothing; called once, then the worker no longer waits. */
  dismiss(): void;
}

/**
 * Workers in long polls at this node, first come first served. When something becomes claimable, the first worker who
 * may take it is offered it; nothing is held for anybody: the offer is only whom to let try first.
 */
export class WaitingWorkers {
  readonly #queues = new Map<string, Set<WaitingWorker>>();
  readonly #pick: (worker: WaitingWorker) => readonly Rank[];

  /** `pick` answers, and marks as being tried, what a worker may try now. */
  constructor(pick: (worker: WaitingWorker) => readonly Rank[]) {
    this.#pick = pick;
  }

  has(queue: string): boolean {
    return this.#queues.has(queue);
  }

  /** Queues that somebody waits in. */
  queues(): IterableIterator<string> {
    return this.#queues.keys();
  }

  add(worker: WaitingWorker): void {
    const workers = this.#queues.get(worker.queue);
    if (workers === undefined) this.#queues.set(worker.queue, new Set([worker]));
    else workers.add(worker);
  }

  remove(worker: WaitingWorker): void {
    const workers = this.#queues.get(worker.queue);
    workers?.delete(worker);
    if (workers?.size === 0) this.#queues.delete(worker.queue);
  }

  /** Offers what is claimable in a queue to one of those who wait: he may take more than before. `true`: he goes on waiting, with room. */
  dispatchTo(queue: string, workerId: string): boolean {
    for (const worker of this.#queues.get(queue) ?? []) {
      if (worker.workerId !== workerId || worker.max <= 0) continue;
      const candidates = this.#pick(worker);
      if (candidates.length === 0) return true;
      this.remove(worker);
      worker.offer(candidates);
    }
    return false;
  }

  /** Sends away those whose name a later process has taken. */
  dismissSuperseded(queue: string, workerId: string): void {
    for (const worker of [...(this.#queues.get(queue) ?? [])])
      if (worker.workerId === workerId && worker.isSuperseded?.() === true) worker.dismiss();
  }

  /** Sends everybody away. */
  dismiss(): void {
    for (const workers of [...this.#queues.values()]) for (const worker of [...workers]) worker.dismiss();
  }

  /** Offers what is claimable in a queue to those who wait, in their order. */
  dispatch(queue: string): void {
    this.dispatchWith(queue, this.#pick);
  }

  /** {@link dispatch} with another way to pick. */
  dispatchWith(queue: string, pick: (worker: WaitingWorker) => readonly Rank[]): void {
    // Where there is nothing for one, there is nothing for those who can do the same: thousands may wait.
    const without = new Set<string>();
    for (const worker of this.#queues.get(queue) ?? []) {
      const ability = worker.ability.name;
      // Looked at last: how much room a worker has takes longer to find out than of what kind it is.
      if (without.has(ability) || worker.max <= 0) continue;
      const candidates = pick(worker);
      if (candidates.length === 0) {
        without.add(ability);
        continue;
      }
      this.remove(worker);
      worker.offer(candidates);
    }
  }
}
