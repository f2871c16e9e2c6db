import { spreadHash } from "../base/hash.ts";
import type { Ability } from "../store/projection/ability.ts";
import type { Rank } from "../store/projection/projected.ts";
import type { ReadyQueues } from "../store/projection/ready-queues.ts";
import { ownerOf } from "./spread.ts";

/**
 * How long another node's share is left to it before this node takes it, ms: three times as long as a claim takes here,
 * within these bounds.
 */
const STEAL_AFTER_MIN_MS = 15;
const STEAL_AFTER_MAX_MS = 100;
const STEAL_AFTER_CLAIMS = 3;
/** How many times that long something at the head may be passed over for what is one's own. */
const PASSED_OVER_MAX = 8;
/** How much of the latest claim goes into the average. */
const LATEST_SHARE = 0.1;
/** A node that claimed in a queue within this time takes part in it, ms. */
const ACTIVE_MS = 1000;
/** How far into a queue a pick looks when it shares the queue with other nodes. */
const LOOK_AHEAD = 256;
/** In a queue with this much in it every living node has a share: when many workers begin at once, none has been seen yet. */
const DEEP = 64;

/** How many queues are remembered in which other nodes claim. */
const SEEN_MAX = 1024;

export interface Pick {
  readonly queue: string;
  readonly workerId: string;
  readonly ability: Ability;
  readonly max: number;
  /** Take another node's share too: it has had its time, or this is the last chance to answer. */
  readonly steal: boolean;
}

export interface QueuePickerOptions {
  readonly nodeId: string;
  readonly ready: ReadyQueues;
  /** Nodes that said, so long ago, that they have workers waiting in a queue (by its hash); this one left out. */
  readonly waitingNodes: (queueHash: number) => readonly { readonly nodeId: string; readonly ageMs: number }[];
  /** All other nodes that are alive. */
  readonly livingNodes: () => readonly string[];
  readonly monotonic: () => number;
  /** `false`: strict order always; several nodes may then meet at the head of a queue. */
  readonly spread: boolean;
}

/** A claim that a node was seen making in a queue. */
interface SeenClaim {
  /** Monotonic ms. */
  readonly at: number;
  readonly workerId: string | undefined;
}

/** A node's last claim, and its last one for another worker than that. */
interface SeenClaims {
  readonly last: SeenClaim;
  readonly before: SeenClaim | undefined;
}

/** The nodes that a queue's work is divided among, this one with them. */
interface Sharing {
  /** Those that are at work in it. */
  readonly working: readonly string[];
  /** And, in a deep queue, those that are alive and may begin any moment. What is theirs comes last. */
  readonly all: readonly string[];
}

/** When a node last claimed for anybody but this worker, monotonic ms. */
const claimedForOthersAt = ({ last, before }: SeenClaims, workerId: string): number =>
  (last.workerId === workerId ? before : last)?.at ?? Number.NEGATIVE_INFINITY;

export const queueHashOf = (queue: string): number => spreadHash(queue);

/**
 * Chooses what a worker tries to claim. In order of rank; but where other nodes drain the same queue, each node takes
 * its own share first within a priority, so that they rarely meet (contract 2.4). What is being tried here is not tried
 * twice. A pick is a hint: only the commit decides.
 */
export class QueuePicker {
  readonly #options: QueuePickerOptions;
  readonly #trying = new Set<string>();
  /** Other nodes' last claims: queue → node → claims. */
  readonly #seen = new Map<string, Map<string, SeenClaims>>();
  /** The first workload of a queue that was left to other nodes, and since when, monotonic ms. */
  readonly #passedOver = new Map<string, { readonly workloadId: string; readonly since: number }>();
  #claimMs = 0;
  /** When a claim of this node last ended, monotonic ms. */
  #claimedAt = Number.NEGATIVE_INFINITY;

  constructor(options: QueuePickerOptions) {
    this.#options = options;
  }

  /** Notes that another node claimed in a queue, and for whom. */
  noteClaim(queue: string, node: string, workerId: string | undefined): void {
    if (!this.#options.spread || node === this.#options.nodeId) return;
    const nodes = this.#seen.get(queue) ?? new Map<string, SeenClaims>();
    const known = nodes.get(node);
    const before = known?.last.workerId === workerId ? known?.before : known?.last;
    nodes.set(node, { last: { at: this.#options.monotonic(), workerId }, before });
    // Queues that this node never picks from would be remembered for ever. Those that are alive are soon seen again.
    if (this.#seen.size > SEEN_MAX) this.#seen.clear();
    this.#seen.set(queue, nodes);
  }

  /** Notes how long a claim of this node took, ms. */
  noteDuration(tookMs: number): void {
    if (this.#isIdle()) this.#claimMs = 0;
    this.#claimedAt = this.#options.monotonic();
    this.#claimMs += (tookMs - this.#claimMs) * LATEST_SHARE;
  }

  /** How long another node's share is left to it, ms. At idle the least: what load made of claims before says nothing (contract 2.4: 50 ms). */
  stealAfterMs(): number {
    if (this.#isIdle()) return STEAL_AFTER_MIN_MS;
    return Math.min(Math.max(STEAL_AFTER_CLAIMS * this.#claimMs, STEAL_AFTER_MIN_MS), STEAL_AFTER_MAX_MS);
  }

  /** Candidates, marked as being tried until {@link done}. */
  pick(pick: Pick): readonly Rank[] {
    if (pick.max <= 0) return [];
    const sharing = this.#sharingOf(pick);
    const chosen = sharing === undefined ? this.#first(pick) : this.#shared(pick, sharing);
    for (const { workloadId } of chosen) this.#trying.add(workloadId);
    return chosen;
  }

  /** Whether other nodes are known to be at work in a queue, for others than this worker: what is theirs is left to them for a while. */
  isShared(queue: string, workerId: string): boolean {
    return this.#options.spread && this.#othersIn(queue, workerId).length > 0;
  }

  /** The try is over, whatever came of it. */
  done(candidates: readonly Rank[]): void {
    for (const { workloadId } of candidates) this.#trying.delete(workloadId);
  }

  /** Whether something is claimable in the queue that nobody here is trying. */
  hasMore(queue: string, ability: Ability): boolean {
    for (const { workloadId } of this.#options.ready.candidates(queue, ability))
      if (!this.#trying.has(workloadId)) return true;
    return false;
  }

  /**
   * Nodes that are at work in a queue, or have workers waiting in it. A node that claims for nobody but the very worker
   * that asks here is neither: that worker has moved on, and a lone one goes from node to node.
   */
  #othersIn(queue: string, workerId: string): readonly string[] {
    const now = this.#options.monotonic();
    const others = new Set<string>();
    const seen = this.#seen.get(queue);
    for (const { nodeId, ageMs } of this.#options.waitingNodes(queueHashOf(queue))) {
      const last = seen?.get(nodeId)?.last;
      const movedOn = last?.workerId === workerId && now - last.at < ageMs;
      if (!movedOn) others.add(nodeId);
    }
    for (const [node, claims] of seen ?? []) {
      if (now - claims.last.at > ACTIVE_MS) seen?.delete(node);
      else if (now - claimedForOthersAt(claims, workerId) <= ACTIVE_MS) others.add(node);
    }
    if (seen?.size === 0) this.#seen.delete(queue);
    return [...others];
  }

  /** Whether this node has not claimed for a while: how long claims took is then forgotten. */
  #isIdle(): boolean {
    return this.#options.monotonic() - this.#claimedAt > ACTIVE_MS;
  }

  #first(pick: Pick): readonly Rank[] {
    const chosen: Rank[] = [];
    for (const rank of this.#options.ready.candidates(pick.queue, pick.ability)) {
      if (chosen.length >= pick.max) break;
      if (!this.#trying.has(rank.workloadId)) chosen.push(rank);
    }
    return chosen;
  }

  /** Whom to share with; `undefined`: nobody. */
  #sharingOf({ queue, workerId }: Pick): Sharing | undefined {
    if (!this.#options.spread) return undefined;
    const { nodeId, ready, livingNodes } = this.#options;
    const working = this.#othersIn(queue, workerId);
    const living = ready.size(queue) >= DEEP ? livingNodes() : [];
    if (working.length + living.length === 0) return undefined;
    return { working: [nodeId, ...working], all: [...new Set([nodeId, ...working, ...living])] };
  }

  #shared(pick: Pick, { working, all }: Sharing): readonly Rank[] {
    const { nodeId, ready } = this.#options;
    const own: Rank[] = [];
    const adopted: Rank[] = [];
    const foreign: Rank[] = [];
    let priority: number | undefined;
    let looked = 0;
    for (const rank of ready.candidates(pick.queue, pick.ability)) {
      if (own.length >= pick.max || looked++ >= LOOK_AHEAD) break;
      // A lower priority is not looked at while a higher one has anything that this node may take.
      const takeable = own.length + adopted.length + (pick.steal ? foreign.length : 0);
      if (priority !== undefined && rank.priority !== priority && takeable > 0) break;
      priority = rank.priority;
      if (this.#trying.has(rank.workloadId)) continue;
      const owner = ownerOf(rank.workloadId, all);
      if (owner === nodeId) own.push(rank);
      else if (!working.includes(owner ?? "") && ownerOf(rank.workloadId, working) === nodeId) adopted.push(rank);
      else foreign.push(rank);
    }
    const chosen = own.length > 0 ? own : adopted.slice(0, pick.max);
    const overdue = this.#overdue(pick.queue, foreign[0]);
    if (overdue !== undefined) return [overdue, ...chosen].slice(0, pick.max);
    if (chosen.length > 0 || !pick.steal) return chosen;
    // Not the head: that is where its owner, and every other thief, begins.
    const from = foreign.length === 0 ? 0 : spreadHash(nodeId) % foreign.length;
    return [...foreign.slice(from), ...foreign.slice(0, from)].slice(0, pick.max);
  }

  /** The first that was left to others, if it has been left for as long as it may be: nothing is passed over for ever. */
  #overdue(queue: string, head: Rank | undefined): Rank | undefined {
    const known = this.#passedOver.get(queue);
    if (head === undefined) {
      this.#passedOver.delete(queue);
      return undefined;
    }
    const now = this.#options.monotonic();
    if (known?.workloadId === head.workloadId)
      return now - known.since > PASSED_OVER_MAX * this.stealAfterMs() ? head : undefined;
    if (this.#passedOver.size > SEEN_MAX) this.#passedOver.clear();
    this.#passedOver.set(queue, { workloadId: head.workloadId, since: now });
    return undefined;
  }
}
