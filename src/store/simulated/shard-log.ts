import type { Clock } from "../../base/clock.ts";
import { utf8Length } from "../../base/bytes.ts";
import type { AttemptReply } from "../resolution.ts";
import { OPERATION_RING } from "../store.ts";
import type { Commit, Entry, Put } from "../store.ts";

/** What a shard can hold; beyond it a commit is unacceptable. */
export interface Limits {
  /** Bytes of one value. */
  readonly valueBytesMax: number;
  /** Bytes of one key. */
  readonly keyBytesMax: number;
  /** Puts and assertions of one commit. */
  readonly commitSizeMax: number;
  /** Bytes of all names and values of a commit's provenance. */
  readonly provenanceBytesMax: number;
}

export const defaultLimits: Limits = {
  valueBytesMax: 5 * 1024 * 1024,
  keyBytesMax: 3500,
  commitSizeMax: 1000,
  provenanceBytesMax: 48 * 1024,
};

/** The shortest time to live the port allows, ms. */
const TTL_MIN_MS = 1000;

/** How many commits a stale answer may lie back. */
const JOURNAL_MAX = 64;

interface Stored {
  readonly entry: Entry;
  /** From this instant of the log's clock on the entry is gone. */
  readonly vanishesAt: number;
}

/** One commit as the log took it, for those who judge a run afterwards. */
export interface LoggedCommit {
  readonly operationId: string;
  readonly at: number;
  /** In the order of the puts. */
  readonly entries: readonly Entry[];
  /** The revision each put and each assertion found, by key; 0 for absent. */
  readonly guards: ReadonlyMap<string, number>;
}

interface Undo {
  readonly key: string;
  readonly previous: Stored | undefined;
}

/** The order and the state of one shard, as its replicas agree on it: no network, no faults. */
export class ShardLog {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #entries = new Map<string, Stored>();
  /** Keys by their last token, so that a pattern with a known end is found without a walk over everything. */
  readonly #keysByEnd = new Map<string, Set<string>>();
  readonly #journal: (readonly Undo[])[] = [];
  readonly #history: LoggedCommit[] | undefined;
  readonly #listeners = new Set<(entries: readonly Entry[]) => void>();
  #revision = 0;

  constructor(options: { readonly clock: Clock; readonly limits: Limits; readonly history: boolean }) {
    this.#clock = options.clock;
    this.#limits = options.limits;
    this.#history = options.history ? [] : undefined;
  }

  /** The revision of the last committed entry. */
  revision(): number {
    return this.#revision;
  }

  /** Every commit in order; empty unless the log keeps its history. */
  history(): readonly LoggedCommit[] {
    return this.#history ?? [];
  }

  /** Calls `listener` within each commit, after it took effect; the answer ends it. */
  listen(listener: (entries: readonly Entry[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Commits at once, if every guard holds. */
  apply(commit: Commit): AttemptReply {
    const problem = this.#problem(commit);
    if (problem !== undefined) return { kind: "unacceptable", cause: problem };
    const guards = new Map<string, number>();
    for (const { key, revision } of commit.asserts ?? []) guards.set(key, revision);
    for (const put of commit.puts) guards.set(put.key, put.base === "absent" ? 0 : put.base.revision);
    for (const [key, expected] of guards) {
      const revision = this.#current(key)?.entry.revision ?? 0;
      if (revision !== expected) return { kind: "refused", revision };
    }
    const at = this.#clock.now();
    const provenance = Object.freeze({ ...commit.provenance });
    const undo = commit.puts.map((put) => ({ key: put.key, previous: this.#entries.get(put.key) }));
    const entries = commit.puts.map((put) => this.#store(put, { at, provenance, operationId: commit.operationId }));
    this.#journal.push(undo);
    if (this.#journal.length > JOURNAL_MAX) this.#journal.shift();
    this.#history?.push({ operationId: commit.operationId, at, entries, guards });
    for (const listener of this.#listeners) listener(entries);
    return { kind: "stored", revisions: entries.map((entry) => entry.revision) };
  }

  /** One snapshot; `back` commits ago, as far as that is remembered. */
  read(keys: readonly string[], back = 0): ReadonlyMap<string, Entry> {
    const past = new Map<string, Stored | undefined>();
    for (const undo of this.#journal.slice(Math.max(0, this.#journal.length - back)).reverse()) {
      for (const { key, previous } of undo) past.set(key, previous);
    }
    const found = new Map<string, Entry>();
    for (const asked of keys) {
      let newest: Entry | undefined;
      for (const key of this.#matches(asked)) {
        const stored = past.has(key) ? past.get(key) : this.#current(key);
        if (stored !== undefined && stored.entry.revision > (newest?.revision ?? 0)) newest = stored.entry;
      }
      if (newest !== undefined) found.set(asked, newest);
    }
    return found;
  }

  /** The latest entry of each key of the families that is newer than a revision, in order of revision. */
  since(revision: number, families: readonly string[]): Entry[] {
    const entries: Entry[] = [];
    for (const key of this.#entries.keys()) {
      const entry = this.#current(key)?.entry;
      if (entry !== undefined && entry.revision > revision && families.includes(key.charAt(0))) entries.push(entry);
    }
    return entries.sort((left, right) => left.revision - right.revision);
  }

  #store(
    put: Put,
    of: { readonly at: number; readonly provenance: Entry["provenance"]; readonly operationId: string },
  ): Entry {
    const ring = put.base === "absent" ? [] : put.base.operations;
    this.#revision += 1;
    const entry: Entry = {
      key: put.key,
      value: put.value.slice(),
      revision: this.#revision,
      operations: [...ring, of.operationId].slice(-OPERATION_RING),
      at: of.at,
      provenance: of.provenance,
    };
    const vanishesAt = put.ttlMs === undefined ? Number.POSITIVE_INFINITY : of.at + put.ttlMs;
    // Set anew, so that the order of the map stays the order of revisions and loading it needs next to no sorting.
    this.#entries.delete(put.key);
    this.#entries.set(put.key, { entry, vanishesAt });
    const end = endOf(put.key);
    const siblings = this.#keysByEnd.get(end);
    if (siblings === undefined) this.#keysByEnd.set(end, new Set([put.key]));
    else siblings.add(put.key);
    return entry;
  }

  #current(key: string): Stored | undefined {
    const stored = this.#entries.get(key);
    if (stored === undefined || stored.vanishesAt > this.#clock.now()) return stored;
    this.#entries.delete(key);
    const end = endOf(key);
    const siblings = this.#keysByEnd.get(end);
    siblings?.delete(key);
    if (siblings?.size === 0) this.#keysByEnd.delete(end);
    return undefined;
  }

  #matches(asked: string): readonly string[] {
    if (!asked.includes("*")) return [asked];
    const tokens = asked.split(".");
    const end = tokens.at(-1) ?? "";
    const candidates = end === "*" ? [...this.#entries.keys()] : [...(this.#keysByEnd.get(end) ?? [])];
    return candidates.filter((key) => {
      const own = key.split(".");
      return own.length === tokens.length && tokens.every((token, index) => token === "*" || token === own[index]);
    });
  }

  #problem(commit: Commit): string | undefined {
    const { puts, asserts = [], provenance = {}, operationId } = commit;
    if (!/^[A-Za-z0-9_:-]{1,64}$/.test(operationId)) return "the operation id is not one";
    if (puts.length === 0) return "a commit without a put";
    if (new Set(puts.map((put) => put.key)).size < puts.length) return "a key is put twice";
    if (puts.length + asserts.length > this.#limits.commitSizeMax) return "too many puts and assertions";
    for (const put of puts) {
      if (utf8Length(put.key) > this.#limits.keyBytesMax) return "a key is too long";
      if (put.value.byteLength > this.#limits.valueBytesMax)
        return `a value is larger than ${this.#limits.valueBytesMax} bytes`;
      if (put.ttlMs !== undefined && !(put.ttlMs >= TTL_MIN_MS)) return `a time to live below ${TTL_MIN_MS} ms`;
    }
    const bytes = Object.entries(provenance).reduce(
      (sum, [name, value]) => sum + utf8Length(name) + utf8Length(value),
      0,
    );
    return bytes > this.#limits.provenanceBytesMax ? "the provenance is too large" : undefined;
  }
}

const endOf = (key: string): string => key.slice(key.lastIndexOf(".") + 1);
