import type { Timers } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { revocationOfAll, RevocationSet, type Revocation } from "../../core/grant/revocation.ts";
import type { WorkloadRecord } from "../../core/workload/record.ts";
import { decodeNodeHeartbeat, decodeWorkload, isFormatSupported, type NodeHeartbeat } from "../../wire/codec.ts";
import { decodeRevocation } from "../../wire/grant-codec.ts";
import { isRegistryKey, META_KEY, scopeOfKey } from "../keys.ts";
import type { Entry, Follower, FollowState, Shard, Store } from "../store.ts";
import { projectedOf, type Projected } from "./projected.ts";
import { HeldWorkload, WarmRecords } from "./held-workload.ts";
import type { ReadyOptions } from "./ready-queues.ts";
import { Registry } from "./registry.ts";
import { WorkloadIndex } from "./workload-index.ts";

/** An authority node as the log shows it. */
export interface NodeSeen extends NodeHeartbeat {
  /** The store's clock when the node last wrote, epoch ms. */
  readonly at: number;
  readonly revision: number;
  readonly shard: number;
}

/** A change as the log delivered it, in the order of its shard. */
export interface Delivered {
  readonly shard: number;
  readonly revision: number;
  readonly workload: HeldWorkload;
}

/** A commit of this node that is on its way: what the log will deliver for one key. */
export interface Expected {
  readonly operationId: string;
  readonly record: WorkloadRecord;
  readonly node: string;
  readonly action: string;
}

type ShardState = "loading" | "current" | "interrupted" | "missing";

interface Waiter {
  readonly revision: number;
  readonly settle: (seen: boolean) => void;
}

/** The view of one shard: its follower, what it has seen, and who waits for more. */
class ShardView {
  state: ShardState = "loading";
  pending = 0;
  follower: Follower | undefined;
  waiters: Waiter[] = [];
  /** Where the view stood when it began to be held. */
  heldAt = 0;
  /** Everything was delivered once since the last reset. Breaking off afterwards only makes the view older, which its age tells. */
  complete = false;
  /** How often it was forgotten, since the stream was another one or had gone back. */
  beginnings = 0;
  /** The store's own record says that a program of this format must not go on with it. */
  outdated = false;
}

/** Key families that a node follows: workloads, workers with their slots, pools, revocations, nodes, the store's own record. Payloads and reservations are read on demand. */
const followed = ["w", "k", "s", "p", "g", "n", "m"] as const;

/** A node that has not been heard of for this long is forgotten, ms. Its heartbeat vanished from the store long before. */
const NODE_FORGOTTEN_MS = 600_000;

export interface ProjectionOptions extends ReadyOptions {
  readonly store: Store;
  readonly log: Log;
  /** The authority's time, ms. */
  readonly now: () => number;
  readonly timers: Timers;
  /** Told every node heartbeat as the log delivers it, with the store's time. */
  readonly onNode?: (node: NodeSeen) => void;
  /** Told when something was revoked. */
  readonly onRevocation?: () => void;
  /** Told the key of a worker, a slot or a pool that has changed. */
  readonly onRegistry?: (key: string) => void;
}

/**
 * A node's watched view of all shards (contract 5.4). Entries apply by revision, never backwards; own commits are
 * applied at once. It never claims to be the truth: decisions built on it are guarded by their commit, and refusals are
 * confirmed by a fresh read.
 */
export class Projection {
  readonly index: WorkloadIndex;
  readonly registry = new Registry();
  /** Kept when a shard's view begins anew: none of them is ever taken back. */
  readonly revocations = new RevocationSet();
  readonly #options: ProjectionOptions;
  readonly #views: readonly ShardView[];
  readonly #nodes = new Map<string, NodeSeen>();
  readonly #listeners = new Set<(delivered: Delivered) => void>();
  readonly #expected = new Map<string, Expected>();
  readonly #warm = new WarmRecords();
  #held: { shard: Shard; entry: Entry }[] | undefined;

  constructor(options: ProjectionOptions) {
    this.#options = options;
    this.index = new WorkloadIndex(options);
    this.#views = options.store.shards.map(() => new ShardView());
  }

  /** Begins to follow every shard. */
  start(): void {
    for (const shard of this.#options.store.shards) {
      const view = this.#view(shard.index);
      view.follower = shard.follow({
        families: followed,
        onEntry: (entry) => this.#take(shard, entry),
        onState: (state) => this.#turn(shard, state),
      });
    }
  }

  /** Ends following; whoever waits is told that it will not be seen. */
  async stop(): Promise<void> {
    await Promise.all(this.#views.map(async (view) => view.follower?.stop()));
    for (const view of this.#views) for (const waiter of view.waiters.splice(0)) waiter.settle(false);
  }

  /** Stops taking entries in until {@link release}; they are kept. For tests that need a view to be old. */
  hold(): void {
    if (this.#held !== undefined) return;
    for (const view of this.#views) view.heldAt = view.follower?.cursor() ?? 0;
    this.#held = [];
  }

  /** Takes in what was held back, and goes on. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const { shard, entry } of held) this.#take(shard, entry);
    for (const view of this.#views) this.#wake(view);
  }

  get isHeld(): boolean {
    return this.#held !== undefined;
  }

  /** A commit is about to be sent: should the log deliver it before it is acknowledged, it need not be decoded. */
  expect(key: string, expected: Expected): void {
    this.#expected.set(key, expected);
  }

  /** The commit has been answered, in whatever way. */
  forget(key: string, operationId: string): void {
    if (this.#expected.get(key)?.operationId === operationId) this.#expected.delete(key);
  }

  /** Takes a version in that was read or committed outside the follower. Older than what is known: ignored. */
  adopt(workload: Projected): void {
    const known = this.index.get(workload.record.workloadId);
    if (known !== undefined && known.shard === workload.shard && known.revision >= workload.revision) return;
    this.#file(workload)?.warm();
  }

  /** Takes in a worker, a slot or a pool that was delivered, read or committed. Older than what is known: ignored. */
  adoptEntry(shard: number, entry: Entry): void {
    const { log, onRegistry } = this.#options;
    const applied = this.registry.apply(shard, entry);
    if (applied === "unreadable")
      log.error({ key: entry.key, revision: entry.revision }, "a stored record can't be read");
    else if (applied === "new") onRegistry?.(entry.key);
  }

  /** All shards delivered everything that was committed before they began, and none is broken off. */
  isCurrent(): boolean {
    return this.#views.every((view) => view.state === "current");
  }

  /** Why it is not current, in words; empty when it is. */
  obstacles(): readonly string[] {
    return this.#views.flatMap((view, shard) => {
      if (view.outdated) return [`shard ${shard} needs a program of a newer format`];
      if (view.state === "current" || (view.complete && view.state !== "missing")) return [];
      const left = view.state === "loading" ? `, ${view.pending} entries left` : "";
      return [`view of shard ${shard} is ${view.state}${left}`];
    });
  }

  /** The revision of each shard up to which the view is complete. */
  position(): readonly number[] {
    return this.#views.map((view) => (this.#held === undefined ? (view.follower?.cursor() ?? 0) : view.heldAt));
  }

  resets(): number {
    return this.#views.reduce((total, view) => total + (view.follower?.resets() ?? 0), 0);
  }

  /** How often the view of a shard was forgotten, to be told anew: what was known before need not be known now. */
  beginnings(): number {
    return this.#views.reduce((total, view) => total + view.beginnings, 0);
  }

  nodes(): ReadonlyMap<string, NodeSeen> {
    return this.#nodes;
  }

  /** Listens to changes of workloads as the log delivers them. Answers how to stop. */
  listen(listener: (delivered: Delivered) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Waits until the view of a shard has seen a revision: `true`; or `false` when the time is up, or the view is held. */
  waitFor(shard: number, revision: number, timeoutMs: number): Promise<boolean> {
    if ((this.position()[shard] ?? 0) >= revision) return Promise.resolve(true);
    if (this.#held !== undefined) return Promise.resolve(false);
    return new Promise((resolve) => {
      const view = this.#view(shard);
      const giveUp = this.#options.timers.after(timeoutMs, () => waiter.settle(false));
      const waiter: Waiter = {
        revision,
        settle: (seen) => {
          giveUp();
          view.waiters = view.waiters.filter((other) => other !== waiter);
          resolve(seen);
        },
      };
      view.waiters.push(waiter);
    });
  }

  #view(shard: number): ShardView {
    const view = this.#views[shard];
    if (view === undefined) throw new RangeError(`no shard ${shard}`);
    return view;
  }

  #take(shard: Shard, entry: Entry): void {
    if (this.#held !== undefined) {
      this.#held.push({ shard, entry });
      return;
    }
    const view = this.#view(shard.index);
    if (entry.key.startsWith("w.")) this.#takeWorkload(shard, entry);
    else if (isRegistryKey(entry.key)) this.adoptEntry(shard.index, entry);
    else if (entry.key.startsWith("g.")) this.#takeRevocation(entry);
    else if (entry.key.startsWith("n.")) this.#takeNode(shard, entry);
    else if (entry.key === META_KEY) this.#takeFormat(view, entry);
    if (view.waiters.length > 0) this.#wake(view);
  }

  #takeWorkload(shard: Shard, entry: Entry): void {
    const workloadId = entry.key.slice(entry.key.lastIndexOf(".") + 1);
    const known = this.index.get(workloadId);
    let workload: HeldWorkload | undefined;
    if (known instanceof HeldWorkload && known.shard === shard.index && known.revision === entry.revision) {
      // Our own commit, or one that a read brought, is here already: no need to decode it again.
      known.keep(entry.value);
      workload = known;
    } else {
      const found = this.#asExpected(shard, entry) ?? this.#decode(shard, entry);
      workload = found === undefined ? undefined : this.#file(found, entry.value);
    }
    if (workload === undefined) return;
    const delivered = { shard: shard.index, revision: entry.revision, workload };
    for (const listener of this.#listeners) listener(delivered);
    // What is loaded is history for the most part.
    if (this.#view(shard.index).state === "current") workload.warm();
    else workload.cool();
  }

  /** What an entry holds if it is a commit of this node that has not been acknowledged yet: the very record that was sent. */
  #asExpected(shard: Shard, entry: Entry): Projected | undefined {
    const expected = this.#expected.get(entry.key);
    if (expected === undefined || entry.operations.at(-1) !== expected.operationId) return undefined;
    const { record, node, action } = expected;
    const { key, revision, operations } = entry;
    return { record, writable: true, key, shard: shard.index, revision, operations, node, action };
  }

  #decode(shard: Shard, entry: Entry): Projected | undefined {
    const stored = decodeWorkload(entry.value);
    if (stored !== undefined) return projectedOf(shard.index, entry, stored);
    this.#options.log.error({ key: entry.key, revision: entry.revision }, "a stored workload can't be read");
    return undefined;
  }

  /** Takes a version in, unless it has a shape that the indexes can't be derived from: that must not keep the others from being seen. */
  #file(found: Projected, value?: Uint8Array): HeldWorkload | undefined {
    try {
      const workload = new HeldWorkload(found, this.#warm, value);
      this.index.apply(workload);
      return workload;
    } catch (cause) {
      const { key, revision } = found;
      this.#options.log.error({ key, revision, cause: String(cause) }, "a stored workload can't be taken in");
      return undefined;
    }
  }

  /** Takes a revocation in that was read or committed outside the follower. */
  revoke(revocation: Revocation): void {
    this.revocations.add(revocation);
    this.#options.onRevocation?.();
  }

  /** One that can't be read might end anything of its application, and is taken to end all of it. */
  #takeRevocation(entry: Entry): void {
    const scope = scopeOfKey(entry.key);
    const revocation = decodeRevocation(entry.value) ?? (scope === undefined ? undefined : revocationOfAll(scope));
    if (revocation !== undefined) this.revoke(revocation);
  }

  #takeNode(shard: Shard, entry: Entry): void {
    const heartbeat = decodeNodeHeartbeat(entry.value);
    if (heartbeat === undefined) return;
    const seen: NodeSeen = { ...heartbeat, at: entry.at, revision: entry.revision, shard: shard.index };
    if (shard.index === 0) this.#noteNode(seen);
    this.#options.onNode?.(seen);
  }

  /** Nodes that came and went, each under a name of its own, must not pile up. */
  #noteNode(seen: NodeSeen): void {
    this.#nodes.set(seen.nodeId, seen);
    for (const [nodeId, { at }] of this.#nodes) if (seen.at - at > NODE_FORGOTTEN_MS) this.#nodes.delete(nodeId);
  }

  /** A store may be handed on to newer programs while older ones run: those must not write there any more. */
  #takeFormat(view: ShardView, entry: Entry): void {
    view.outdated = !isFormatSupported(entry.value);
    if (view.outdated) this.#options.log.error({ key: entry.key }, "the store needs a program of a newer format");
  }

  #turn(shard: Shard, state: FollowState): void {
    const view = this.#view(shard.index);
    const { log } = this.#options;
    switch (state.kind) {
      case "reset":
        log.warn({ shard: shard.index, reason: state.reason }, "the view of a shard is rebuilt");
        view.state = "loading";
        view.complete = false;
        view.heldAt = 0;
        view.beginnings++;
        if (this.#held !== undefined) this.#held = this.#held.filter((held) => held.shard.index !== shard.index);
        this.index.forgetShard(shard.index);
        this.registry.forgetShard(shard.index);
        return;
      case "loading":
        view.state = "loading";
        view.pending = state.pending;
        return;
      case "current":
        if (view.state !== "current")
          log.info({ shard: shard.index, revision: state.revision }, "the view of a shard is current");
        view.state = "current";
        view.complete = true;
        this.#wake(view);
        return;
      case "interrupted":
        log.warn({ shard: shard.index, reason: state.reason }, "following a shard broke off");
        view.state = "interrupted";
        return;
      case "missing":
        log.error({ shard: shard.index, reason: state.reason }, "a shard's stream is missing; it is not recreated");
        view.state = "missing";
        return;
    }
  }

  #wake(view: ShardView): void {
    if (this.#held !== undefined) return;
    const seen = view.follower?.cursor() ?? 0;
    for (const waiter of [...view.waiters]) if (waiter.revision <= seen) waiter.settle(true);
  }
}
