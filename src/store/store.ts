/**
 * The store port (contract 5.1): one replicated log, many writers. Everything above it knows this file alone; two
 * implementations stand behind it, `jetstream/` and `simulated/`, held to one conformance suite.
 *
 * A deployment has one or more shards. A shard is one stream with one order of revisions; a commit never crosses it.
 * Values are opaque here. With each value the store keeps a ring of the ids of the last {@link OPERATION_RING}
 * operations that wrote the key, so that the outcome of a commit whose answer was lost can be found out (contract 5.3).
 */

/** How many operation ids each stored value carries, its own last (contract 5.3). */
export const OPERATION_RING = 32;

/** A committed value of one key. */
export interface Entry {
  readonly key: string;
  readonly value: Uint8Array;
  /** The shard's revision that wrote it: positive, strictly growing within the shard. */
  readonly revision: number;
  /** Ids of the last operations that wrote this key, oldest first, its own last. */
  readonly operations: readonly string[];
  /** The store's clock when it was written, epoch ms. */
  readonly at: number;
  /** Provenance as it was committed (contract 5.2): names and values are the committer's, exactly. */
  readonly provenance: Readonly<Record<string, string>>;
}

/** What a guarded write builds on: the entry as it was read, or its absence. */
export type Base = Pick<Entry, "revision" | "operations"> | "absent";

/** One guarded write. */
export interface Put {
  readonly key: string;
  readonly value: Uint8Array;
  readonly base: Base;
  /** The entry vanishes this long after it was written, ms (at least 1000). Followers are not told. */
  readonly ttlMs?: number;
}

/** A key that must still be at a revision (0: absent) for the commit to happen, though the commit does not write it. */
export interface Assertion {
  readonly key: string;
  readonly revision: number;
}

/** All or nothing: every put and every assertion is guarded. At least one put; no key twice. */
export interface Commit {
  /** Unique to one decision; a repeat of the same commit bears the same id. [A-Za-z0-9_:-], at most 64 characters. */
  readonly operationId: string;
  readonly puts: readonly Put[];
  readonly asserts?: readonly Assertion[];
  readonly provenance?: Readonly<Record<string, string>>;
}

export type CommitOutcome =
  /** Durable. `revisions` stand in the order of the puts. Also the answer when an earlier try of the same commit had landed. */
  | { readonly kind: "committed"; readonly revisions: readonly number[] }
  /** Definite: a guard is broken by something newer, nothing of this commit is or will be stored. */
  | { readonly kind: "refused"; readonly newer?: string }
  /** Definite: the store can't hold such a commit (too large, say); nothing of it is or will be stored. */
  | { readonly kind: "unacceptable"; readonly cause: string }
  /** Definite: no server took it before the deadline; nothing of it is or will be stored. */
  | { readonly kind: "unreached"; readonly cause: string }
  /** Not resolved before the deadline: it may have landed, or may still land. */
  | { readonly kind: "unknown"; readonly cause: string };

/** What a follower is told about itself, beside the entries. */
export type FollowState =
  /** Entries are about to be delivered from scratch: what was known of this shard is void. */
  | { readonly kind: "reset"; readonly reason: string }
  /** Still delivering what was committed before it began; `pending` entries are left, as far as the store says. */
  | { readonly kind: "loading"; readonly pending: number }
  /** Everything up to `revision` has been delivered; from here on entries arrive as they are committed. */
  | { readonly kind: "current"; readonly revision: number }
  /** Delivery broke off; it is being mended. */
  | { readonly kind: "interrupted"; readonly reason: string }
  /** The stream is not there. It is never recreated by a follower. */
  | { readonly kind: "missing"; readonly reason: string };

export interface Follower {
  /** Entries with this revision or less have been delivered (or superseded). */
  cursor(): number;
  /** How often delivery was begun anew since the start. */
  resets(): number;
  /** Ends delivery and frees what the store holds for it. No callback runs afterwards. */
  stop(): Promise<void>;
}

export interface FollowOptions {
  /** First letters of the keys to follow, such as `w` and `n`. */
  readonly families: readonly string[];
  /** Entries in order of revision, the latest of each key first time round; never an older one of a key after a newer. */
  onEntry(entry: Entry): void;
  onState(state: FollowState): void;
}

export interface ReadOptions {
  /**
   * `true`: the answer reflects at least everything that was acknowledged before the call, even beside a stale server
   * (contract 5.3: one snapshot that also contains a barrier written after the call). `false`, the default: a leader
   * read, which a server that was just deposed may answer from its past: good for computing a commit, not for a refusal.
   */
  readonly fresh?: boolean;
}

export interface Shard {
  readonly index: number;
  /**
   * Current entries of several keys in one snapshot; absent keys are absent from the map, which is keyed by the key
   * asked for. A key may have `*` in the place of whole tokens: the newest match stands for it.
   *
   * @throws StoreUnavailable when no answer could be had.
   */
  read(keys: readonly string[], options?: ReadOptions): Promise<ReadonlyMap<string, Entry>>;
  /** Commits, and resolves a lost answer (contract 5.3) until `deadlineMs` have passed. Never rejects. */
  commit(commit: Commit, options?: { readonly deadlineMs?: number }): Promise<CommitOutcome>;
  follow(options: FollowOptions): Follower;
}

export interface Store {
  readonly shards: readonly Shard[];
  /** `false` while the store is known to be out of reach: calls would only wait. */
  reachable(): boolean;
  close(): Promise<void>;
}

/** The store gave no answer: nothing is known. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}
