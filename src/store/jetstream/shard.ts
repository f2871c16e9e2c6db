import { encodeToken } from "../../base/token.ts";
import { META_KEY } from "../keys.ts";
import type { Commit, CommitOutcome, Entry, FollowOptions, Follower, ReadOptions, Shard } from "../store.ts";
import { Barriers } from "./barrier.ts";
import { streamName, subjectPrefix } from "./bucket.ts";
import { Committer } from "./committer.ts";
import type { CommitReport } from "./committer.ts";
import type { StoreConnection } from "./connection.ts";
import { ShardFollower } from "./follower.ts";
import type { FollowerContext } from "./follower.ts";
import { Reader } from "./reader.ts";
import type { Log } from "../../base/log.ts";

export interface JetstreamShardOptions {
  readonly index: number;
  readonly epoch: string;
  /** Unique among the clients that are open at the same time. */
  readonly clientId: string;
  readonly log: Log;
  readonly onReport?: ((report: CommitReport) => void) | undefined;
}

/**
 * One stream as the port sees it. Beside the records it holds keys of the store's own: `m.meta`, which the port does not
 * show, and under `y.` each client's barrier and the carriers of its assertions, which vanish by themselves.
 */
export class JetstreamShard implements Shard {
  readonly index: number;
  readonly #reader: Reader;
  readonly #committer: Committer;
  readonly #followerContext: FollowerContext;
  readonly #followers = new Set<ShardFollower>();
  #knownRevision = 0;

  constructor(connection: StoreConnection, options: JetstreamShardOptions) {
    this.index = options.index;
    const prefix = subjectPrefix(options.epoch, options.index);
    const stream = streamName(options.epoch, options.index);
    const clientToken = encodeToken(options.clientId);
    const barriers = new Barriers(connection.requests, { prefix, key: `y.${clientToken}.barrier` });
    const know = (revision: number): void => {
      if (revision > this.#knownRevision) this.#knownRevision = revision;
    };
    this.#reader = new Reader(connection, { stream, prefix, barriers, knownRevision: () => this.#knownRevision });
    this.#committer = new Committer(connection, {
      prefix,
      carrierKey: `y.${clientToken}`,
      reader: this.#reader,
      onCommitted: know,
      onReport: options.onReport,
    });
    const onReplaced = (): void => {
      this.#knownRevision = 0;
    };
    const { log } = options;
    this.#followerContext = { connection, barriers, stream, prefix, clientToken, log, onRevision: know, onReplaced };
  }

  read(keys: readonly string[], options?: ReadOptions): Promise<ReadonlyMap<string, Entry>> {
    const wanted = keys.includes(META_KEY) ? keys.filter((key) => key !== META_KEY) : keys;
    return this.#reader.read(wanted, { fresh: options?.fresh === true });
  }

  commit(commit: Commit, options?: { readonly deadlineMs?: number }): Promise<CommitOutcome> {
    return this.#committer.commit(commit, options?.deadlineMs);
  }

  follow(options: FollowOptions): Follower {
    const follower = new ShardFollower(this.#followerContext, options);
    this.#followers.add(follower);
    // A view that is given up, with all that it holds, must not be kept by the follower that served it.
    void follower.ended.then(() => this.#followers.delete(follower));
    return follower;
  }

  /** Stops every follower. */
  async close(): Promise<void> {
    await Promise.all([...this.#followers].map((follower) => follower.stop()));
    this.#followers.clear();
  }
}
