import type { Msg } from "@nats-io/nats-core";
import { monotonicMs } from "../../base/clock.ts";
import { META_KEY } from "../keys.ts";
import { StoreUnavailable } from "../store.ts";
import type { Entry } from "../store.ts";
import { parseAcknowledgement, revisionNamed } from "./acknowledgement.ts";
import type { Barriers } from "./barrier.ts";
import type { StoreConnection } from "./connection.ts";
import { directMessage, entryOfStored } from "./entry.ts";
import type { DirectMessage, StoredMessage } from "./entry.ts";
import { RenderedHeaders, headerLine } from "./headers.ts";
import { pause, repeatDelayMs } from "./pause.ts";
import { serverCode } from "./server-codes.ts";
import type { ServerError } from "./server-codes.ts";

/** Keys of one snapshot: the server answers at most 1024, and a few are ours. */
const SNAPSHOT_KEYS_MAX = 1000;
/** Short, because a direct get may be given to a server that is dead or paused; another one is asked then. */
const DIRECT_TIMEOUT_MS = 500;
const LEADER_TIMEOUT_MS = 1000;
const READ_DEADLINE_MS = 5000;
const END_OF_BATCH = 204;
const NOTHING_FOUND = 404;

/** What must be in a snapshot for it to count. */
type Newness =
  /** A barrier of ours, at this revision or above. */
  | { readonly barrier: number }
  /** Everything up to this revision. */
  | { readonly revision: number };

type Snapshot =
  | { readonly kind: "entries"; readonly entries: ReadonlyMap<string, Entry> }
  /** The server that answered lags behind. */
  | { readonly kind: "old" }
  /** It does not fit into one answer. */
  | { readonly kind: "large" };

export interface ReaderOptions {
  readonly stream: string;
  readonly prefix: string;
  readonly barriers: Barriers;
  /** The highest revision of the shard that this client knows to be committed. */
  knownRevision(): number;
}

/**
 * Reads of one shard (contract 5.1, 5.3).
 *
 * One key that need not be fresh: the stream's leader is asked. Several: one multi-key direct get, which is a snapshot
 * but may be answered by a lagging replica; so the leader is asked for its last revision at the same time, and the
 * snapshot counts if it reaches up to that and to all this client has seen. Fresh: a barrier is written first, and the
 * snapshot counts if it holds the barrier. More than 1000 keys are several snapshots, each as new as was asked for.
 */
export class Reader {
  readonly #connection: StoreConnection;
  readonly #options: ReaderOptions;
  readonly #leaderProbe: RenderedHeaders;

  constructor(connection: StoreConnection, options: ReaderOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#leaderProbe = new RenderedHeaders(
      headerLine("Nats-Expected-Last-Subject-Sequence", Number.MAX_SAFE_INTEGER) +
        headerLine("Nats-Expected-Last-Subject-Sequence-Subject", `${options.prefix}>`),
    );
  }

  /** @throws StoreUnavailable when no answer that is new enough could be had in time. */
  async read(
    keys: readonly string[],
    { fresh, deadlineMs = READ_DEADLINE_MS }: { fresh: boolean; deadlineMs?: number },
  ): Promise<ReadonlyMap<string, Entry>> {
    const [only, ...others] = new Set(keys);
    if (only === undefined) return new Map();
    const end = monotonicMs() + deadlineMs;
    if (others.length === 0 && !fresh) return this.#persist(end, () => this.#leaderRead(only));
    return this.#readAll([only, ...others], { fresh, end });
  }

  async #readAll(
    keys: readonly string[],
    how: { readonly fresh: boolean; readonly end: number },
  ): Promise<ReadonlyMap<string, Entry>> {
    if (keys.length > SNAPSHOT_KEYS_MAX) return this.#readHalves(keys, how);
    const { fresh, end } = how;
    const snapshot = await this.#persist(end, async () => {
      const found = fresh ? await this.#freshSnapshot(keys) : await this.#leaderSnapshot(keys);
      if (found.kind === "old") throw new StoreUnavailable("only lagging servers answer");
      return found;
    });
    if (snapshot.kind === "entries") return snapshot.entries;
    if (keys.length === 1) throw new StoreUnavailable("more entries match than can be read at once");
    return this.#readHalves(keys, how);
  }

  async #readHalves(
    keys: readonly string[],
    how: { readonly fresh: boolean; readonly end: number },
  ): Promise<ReadonlyMap<string, Entry>> {
    const middle = Math.ceil(keys.length / 2);
    const [first, second] = await Promise.all([
      this.#readAll(keys.slice(0, middle), how),
      this.#readAll(keys.slice(middle), how),
    ]);
    return new Map([...first, ...second]);
  }

  /** Tries again, ever slower, until there is an answer or the time is up. */
  async #persist<Answer>(end: number, ask: () => Promise<Answer>): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      try {
        if (!(await this.#connection.whenConnected(end - monotonicMs()))) throw new StoreUnavailable("not connected");
        return await ask();
      } catch (thrown) {
        const delayMs = repeatDelayMs(tries);
        if (this.#connection.closed || monotonicMs() + delayMs >= end)
          throw thrown instanceof StoreUnavailable ? thrown : new StoreUnavailable("no answer", { cause: thrown });
        await pause(delayMs);
      }
    }
  }

  async #leaderRead(key: string): Promise<ReadonlyMap<string, Entry>> {
    const { stream, prefix } = this.#options;
    const answer = await this.#connection.requests.one(
      `$JS.API.STREAM.MSG.GET.${stream}`,
      JSON.stringify({ last_by_subj: prefix + key }),
      { timeoutMs: LEADER_TIMEOUT_MS },
    );
    const { message, error } = answer.json<{ message?: StoredMessage; error?: ServerError }>();
    if (error !== undefined) {
      if (error.err_code === serverCode.messageNotFound) return new Map();
      throw new StoreUnavailable(error.description);
    }
    if (message === undefined) throw new StoreUnavailable("an answer without a message");
    const entry = entryOfStored(message, prefix.length);
    return entry === undefined ? new Map() : new Map([[key, entry]]);
  }

  async #freshSnapshot(keys: readonly string[]): Promise<Snapshot> {
    const barrier = await this.#options.barriers.raise();
    return this.#untilNew(() => this.#snapshot(keys, { barrier }));
  }

  async #leaderSnapshot(keys: readonly string[]): Promise<Snapshot> {
    const known = this.#options.knownRevision();
    const [revision, messages] = await Promise.all([this.#leaderRevision(), this.#direct([META_KEY, ...keys])]);
    const newness = { revision: Math.max(known, revision) };
    const snapshot = this.#examine(messages, keys, newness);
    if (snapshot.kind !== "old") return snapshot;
    return this.#untilNew(() => this.#snapshot(keys, newness));
  }

  /** A replica lags for milliseconds; the next try may also meet another one. */
  async #untilNew(ask: () => Promise<Snapshot>): Promise<Snapshot> {
    for (let tries = 1; ; tries++) {
      const snapshot = await ask();
      if (snapshot.kind !== "old" || tries === 6) return snapshot;
      await pause(tries * 4);
    }
  }

  async #snapshot(keys: readonly string[], newness: Newness): Promise<Snapshot> {
    const mark = "barrier" in newness ? this.#options.barriers.key : META_KEY;
    return this.#examine(await this.#direct([mark, ...keys]), keys, newness);
  }

  #direct(keys: readonly string[]): Promise<readonly Msg[]> {
    const { stream, prefix } = this.#options;
    const subjects = new Set(keys.map((key) => prefix + key));
    return this.#connection.requests.many(
      `$JS.API.DIRECT.GET.${stream}`,
      JSON.stringify({ multi_last: [...subjects] }),
      { timeoutMs: DIRECT_TIMEOUT_MS },
    );
  }

  /**
   * The last revision that the leader has applied, found out without reading or writing anything: a publish whose
   * guard, on every key at once, can't hold, so that the refusal names what it found.
   */
  async #leaderRevision(): Promise<number> {
    const { prefix, barriers } = this.#options;
    const answer = await this.#connection.requests.one(prefix + barriers.key, "", {
      headers: this.#leaderProbe,
      timeoutMs: LEADER_TIMEOUT_MS,
    });
    const error = parseAcknowledgement(answer)?.error;
    const revision = error?.err_code === serverCode.wrongLastSequence ? revisionNamed(error) : undefined;
    if (revision === undefined)
      throw new StoreUnavailable(error?.description ?? "the leader does not tell its revision");
    return revision;
  }

  #examine(messages: readonly Msg[], keys: readonly string[], newness: Newness): Snapshot {
    const closing = messages.at(-1)?.headers;
    if (closing === undefined) return { kind: "old" };
    if (closing.code === 413) return { kind: "large" };
    // Nothing found, though a mark was asked for that is surely there: an old state, or a server that is starting.
    if (closing.code === NOTHING_FOUND) return { kind: "old" };
    if (closing.code !== END_OF_BATCH) throw new StoreUnavailable(`direct get: ${closing.code}`);
    if (Number(closing.get("Nats-Num-Pending")) > 0) return { kind: "large" };
    if (!isWhole(messages)) throw new StoreUnavailable("a part of the answer was lost on the way");
    const found = messages.slice(0, -1).map((message) => directMessage(message, this.#options.prefix.length));
    if ("revision" in newness) {
      if (Number(closing.get("Nats-UpTo-Sequence")) < newness.revision) return { kind: "old" };
    } else {
      const mark = found.find(({ key }) => key === this.#options.barriers.key);
      if (mark === undefined || mark.revision < newness.barrier) return { kind: "old" };
    }
    return { kind: "entries", entries: matchEntries(found, keys) };
  }
}

/**
 * Whether no message of a snapshot was lost. Each names the revision of the one before it, and the closing status that of
 * the last. A part that is missing must never pass for a key that is absent: a commit that landed would be called refused.
 */
function isWhole(messages: readonly Msg[]): boolean {
  let last = 0;
  for (const { headers } of messages) {
    if (Number(headers?.get("Nats-Last-Sequence")) !== last) return false;
    last = Number(headers?.get("Nats-Sequence"));
  }
  return true;
}

/** Gives each key, or pattern, its newest entry. */
function matchEntries(found: readonly DirectMessage[], keys: readonly string[]): ReadonlyMap<string, Entry> {
  const byKey = new Map(found.map((message) => [message.key, message]));
  const entries = new Map<string, Entry>();
  for (const key of keys) {
    const entry = key.includes("*") ? newestMatch(found, key) : byKey.get(key)?.entry;
    if (entry !== undefined) entries.set(key, entry);
  }
  return entries;
}

function newestMatch(found: readonly DirectMessage[], pattern: string): Entry | undefined {
  const tokens = pattern.split(".");
  let newest: DirectMessage | undefined;
  for (const message of found) {
    if (message.revision < (newest?.revision ?? 0)) continue;
    const parts = message.key.split(".");
    const matches =
      parts.length === tokens.length && tokens.every((token, index) => token === "*" || token === parts[index]);
    if (matches) newest = message;
  }
  return newest?.entry;
}
