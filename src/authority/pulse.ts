import type { Log } from "../base/log.ts";
import { nodeKey } from "../store/keys.ts";
import type { NodeSeen, Projection } from "../store/projection/projection.ts";
import type { Base, Shard, Store } from "../store/store.ts";
import { encodeNodeHeartbeat } from "../wire/codec.ts";
import type { StoreTime } from "./store-time.ts";

/** A node that has not written for this long is no longer counted among those who share the work, ms. */
export const NODE_SILENT_MS = 5000;
/** How many heartbeats are remembered that the view has not shown: of a view that is further behind, this many will do. */
const SENT_MAX = 4096;
/** A heartbeat vanishes by itself after this long, ms. */
const HEARTBEAT_TTL_MS = 60_000;

/** The heartbeat of one shard. */
class ShardPulse {
  base: Base = "absent";
  beating: Promise<number | undefined> | undefined;
  /** The beat that a caller who comes while one is under way must wait for. */
  following: Promise<number | undefined> | undefined;
  beat = 0;
  /** Heartbeats sent and not yet seen: beat → monotonic ms. */
  readonly sent = new Map<number, number>();
  /** Monotonic ms when the newest heartbeat that this node's view has seen was sent: how old the view is. */
  seenSentAt: number | undefined;
}

export interface PulseOptions {
  readonly nodeId: string;
  /** Unique to this process and this view. */
  readonly nonce: string;
  readonly store: Store;
  readonly projection: Projection;
  readonly monotonic: () => number;
  readonly wall: () => number;
  readonly log: Log;
  readonly time: StoreTime | undefined;
  readonly waiting: () => readonly number[];
  readonly deadlineMs: number;
}

/**
 * A node's heartbeat `n.<nodeId>` in every shard (contract 5.4, 5.5). Seen in the node's own view it tells how old the
 * view is; with the store's timestamp it tells the store's time; written on demand it is the barrier behind which a view
 * is newer than a request.
 */
export class Pulse {
  readonly #options: PulseOptions;
  readonly #shards: readonly ShardPulse[];

  constructor(options: PulseOptions) {
    this.#options = options;
    this.#shards = options.store.shards.map(() => new ShardPulse());
  }

  /** Takes a node's heartbeat in, as the log delivers it. */
  observe(node: NodeSeen): void {
    const pulse = this.#shards[node.shard];
    if (pulse === undefined || node.nodeId !== this.#options.nodeId || node.instance !== this.#options.nonce) return;
    const sentAt = pulse.sent.get(node.beat);
    if (sentAt === undefined) return;
    for (const beat of pulse.sent.keys()) if (beat <= node.beat) pulse.sent.delete(beat);
    pulse.seenSentAt = Math.max(pulse.seenSentAt ?? 0, sentAt);
    if (node.shard === 0) this.#options.time?.observe({ storeAt: node.at, sentAt, seenAt: this.#options.monotonic() });
  }

  /** How old the node's view is, ms: the age of the newest own heartbeat that it shows, in the shard where that is oldest. Absent before the first. */
  viewAgeMs(): number | undefined {
    let oldest: number | undefined;
    for (const { seenSentAt } of this.#shards) {
      if (seenSentAt === undefined) return undefined;
      oldest = Math.min(oldest ?? seenSentAt, seenSentAt);
    }
    return oldest === undefined ? undefined : this.#options.monotonic() - oldest;
  }

  /** Writes a heartbeat in every shard. */
  async beat(): Promise<void> {
    await Promise.all(this.#options.store.shards.map((shard) => this.#beatOnce(shard)));
  }

  /** Waits until the node's view of a shard holds everything that was acknowledged before this call; `false` when it can't be had in time. */
  async barrier(shard: Shard, timeoutMs: number): Promise<boolean> {
    if (this.#options.projection.isHeld) return false;
    const revision = await this.#beatOnce(shard);
    return revision !== undefined && this.#options.projection.waitFor(shard.index, revision, timeoutMs);
  }

  /** Waits until the view of a shard is at least as new as a moment, monotonic ms: it may be already. */
  async viewSince(shard: Shard, moment: number, timeoutMs: number): Promise<boolean> {
    const seenSentAt = this.#shards[shard.index]?.seenSentAt;
    return (seenSentAt !== undefined && seenSentAt >= moment) || this.barrier(shard, timeoutMs);
  }

  /** {@link barrier} for all shards. */
  async barriers(timeoutMs: number): Promise<boolean> {
    const passed = await Promise.all(this.#options.store.shards.map((shard) => this.barrier(shard, timeoutMs)));
    return passed.every(Boolean);
  }

  /** One heartbeat that begins after this call; callers who come while one is under way share the next. */
  #beatOnce(shard: Shard): Promise<number | undefined> {
    const pulse = this.#shards[shard.index];
    if (pulse === undefined) return Promise.resolve(undefined);
    if (pulse.beating === undefined) return this.#begin(shard, pulse);
    pulse.following ??= pulse.beating.then(() => {
      pulse.following = undefined;
      return this.#begin(shard, pulse);
    });
    return pulse.following;
  }

  #begin(shard: Shard, pulse: ShardPulse): Promise<number | undefined> {
    pulse.beating = this.#write(shard, pulse).finally(() => {
      pulse.beating = undefined;
    });
    return pulse.beating;
  }

  async #write(shard: Shard, pulse: ShardPulse): Promise<number | undefined> {
    // A key that somebody else wrote, that vanished, or whose last write was lost sight of takes a second try on what is there.
    return (await this.#writeOnce(shard, pulse)) ?? this.#writeOnce(shard, pulse);
  }

  async #writeOnce(shard: Shard, pulse: ShardPulse): Promise<number | undefined> {
    const { nodeId, monotonic, wall, waiting, deadlineMs, log } = this.#options;
    const beat = ++pulse.beat;
    const key = nodeKey(nodeId);
    pulse.sent.set(beat, monotonic());
    pulse.sent.delete(beat - SENT_MAX);
    const value = encodeNodeHeartbeat({
      nodeId,
      instance: this.#options.nonce,
      wallMs: wall(),
      waiting: waiting(),
      beat,
    });
    const outcome = await shard.commit(
      {
        operationId: `${this.#options.nonce}:beat:${beat}`,
        puts: [{ key, value, base: pulse.base, ttlMs: HEARTBEAT_TTL_MS }],
      },
      { deadlineMs },
    );
    if (outcome.kind === "committed") {
      const revision = outcome.revisions[0] ?? 0;
      pulse.base = { revision, operations: [] };
      return revision;
    }
    log.debug({ shard: shard.index, outcome: outcome.kind }, "the node's heartbeat was not written");
    pulse.sent.delete(beat);
    if (outcome.kind !== "refused") pulse.base = "absent";
    else await this.#rebase(shard, pulse, key);
    return undefined;
  }

  /** Somebody else wrote the key, or our own write was lost sight of, or it vanished: begin again from what is there. */
  async #rebase(shard: Shard, pulse: ShardPulse, key: string): Promise<void> {
    try {
      pulse.base = (await shard.read([key], { fresh: true })).get(key) ?? "absent";
    } catch (cause) {
      this.#options.log.debug({ shard: shard.index, cause: String(cause) }, "the node's heartbeat can't be read");
    }
  }
}
