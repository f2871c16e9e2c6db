import { spreadHash } from "../base/hash.ts";
import type { Rank } from "../store/projection/projected.ts";
import type { ReadyQueues } from "../store/projection/ready-queues.ts";
import { ownerOf } from "./spread.ts";

/** How long another node's share is left to it before this node takes it, ms. */
export const STEAL_AFTER_MS = 15;
/** A node that claimed in a queue within this time takes part in it, ms. */
const ACTIVE_MS = 1000;
/** How far into a queue a pick looks when it shares the queue with other nodes. */
const LOOK_AHEAD = 256;
/** A queue with this much in it is shared with every living node until it is seen who takes part: nobody has claimed yet. */
const DEEP = 64;

/** How many queues are remembered in which other nodes claim. */
const SEEN_MAX = 1024;

export interface Pick {
  readonly queue: string;
  readonly capabilities: readonly string[];
  readonly max: number;
  /** Take another node's share too: it has had its time, or this is the last chance to answer. */
  readonly steal: boolean;
}

export interface QueuePickerOptions {
  readonly nodeId: string;
  readonly ready: ReadyQueues;
  /** Nodes that say they have workers waiting in a queue (by its hash), this one left out. */
  readonly waitingNodes: (queueHash: number) => readonly string[];
  /** All other nodes that are alive. */
  readonly livingNodes: () => readonly string[];
  readonly monotonic: () => number;
  /** `false`: strict order always; several nodes may then meet at the head of a queue. */
  readonly spread: boolean;
}

export const queueHashOf = (queue: string): number => spreadHash(queue);

/**
 * Chooses what a worker tries to claim. In order of rank; but where other nodes drain the same queue, each node takes
 * its own share first within a priority, so that they rarely meet (contract 2.4). What is being tried here is not tried
 * twice. A pick is a hint: only the commit decides.
 */
export class QueuePicker {
  readonly #options: QueuePickerOptions;
  readonly #trying = new Set<string>();
  /** When other nodes were last seen claiming in a queue: queue → node → monotonic ms. */
  readonly #seen = new Map<string, Map<string, number>>();

  constructor(options: QueuePickerOptions) {
    this.#options = options;
  }

  /** Notes that another node claimed in a queue. */
  noteClaim(queue: string, node: string): void {
    if (!this.#options.spread || node === this.#options.nodeId) return;
    const nodes = this.#seen.get(queue) ?? new Map<string, number>();
    nodes.set(node, this.#options.monotonic());
    // Queues that this node never picks from would be remembered for ever. Those that are alive are soon seen again.
    if (this.#seen.size > SEEN_MAX) this.#seen.clear();
    this.#seen.set(queue, nodes);
  }

  /** Candidates, marked as being tried until {@link done}. */
  pick(pick: Pick): readonly Rank[] {
    const others = this.#sharersOf(pick);
    const chosen = others.length === 0 ? this.#first(pick) : this.#shared(pick, others);
    for (const { workloadId } of chosen) this.#trying.add(workloadId);
    return chosen;
  }

  /** Whether other nodes are known to take part in a queue: what is theirs is left to them for a while. */
  isShared(queue: string): boolean {
    return this.#options.spread && this.#othersIn(queue).length > 0;
  }

  /** The try is over, whatever came of it. */
  done(candidates: readonly Rank[]): void {
    for (const { workloadId } of candidates) this.#trying.delete(workloadId);
  }

  /** Whether something is claimable in the queue that nobody here is trying. */
  hasMore(queue: string, capabilities: readonly string[]): boolean {
    for (const { workloadId } of this.#options.ready.candidates(queue, capabilities))
      if (!this.#trying.has(workloadId)) return true;
    return false;
  }

  /** Nodes to share with. When many workers begin at once, none has been seen yet, and all would meet at the head. */
  #sharersOf({ queue, steal }: Pick): readonly string[] {
    if (!this.#options.spread) return [];
    const others = this.#othersIn(queue);
    const assumed = others.length === 0 && steal && this.#options.ready.size(queue) >= DEEP;
    return assumed ? this.#options.livingNodes() : others;
  }

  #othersIn(queue: string): readonly string[] {
    const now = this.#options.monotonic();
    const others = new Set(this.#options.waitingNodes(queueHashOf(queue)));
    const seen = this.#seen.get(queue);
    for (const [node, at] of seen ?? []) {
      if (now - at <= ACTIVE_MS) others.add(node);
      else seen?.delete(node);
    }
    if (seen?.size === 0) this.#seen.delete(queue);
    return [...others];
  }

  #first(pick: Pick): readonly Rank[] {
    const chosen: Rank[] = [];
    for (const rank of this.#options.ready.candidates(pick.queue, pick.capabilities)) {
      if (chosen.length >= pick.max) break;
      if (!this.#trying.has(rank.workloadId)) chosen.push(rank);
    }
    return chosen;
  }

  #shared(pick: Pick, others: readonly string[]): readonly Rank[] {
    const nodes = [this.#options.nodeId, ...others];
    const own: Rank[] = [];
    const foreign: Rank[] = [];
    let priority: number | undefined;
    let looked = 0;
    for (const rank of this.#options.ready.candidates(pick.queue, pick.capabilities)) {
      if (own.length >= pick.max || looked++ >= LOOK_AHEAD) break;
      // A lower priority is not looked at while a higher one has anything that this node may take.
      if (priority !== undefined && rank.priority !== priority && own.length + (pick.steal ? foreign.length : 0) > 0)
        break;
      priority = rank.priority;
      if (this.#trying.has(rank.workloadId)) continue;
      if (ownerOf(rank.workloadId, nodes) === this.#options.nodeId) own.push(rank);
      else foreign.push(rank);
    }
    if (own.length > 0 || !pick.steal) return own;
    // Not the head: that is where its owner, and every other thief, begins.
    const from = foreign.length === 0 ? 0 : spreadHash(this.#options.nodeId) % foreign.length;
    return [...foreign.slice(from), ...foreign.slice(0, from)].slice(0, pick.max);
  }
}
