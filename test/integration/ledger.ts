import { expect } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { Random } from "../../src/base/random.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import type { Assertion, Commit, CommitOutcome, Entry, Shard } from "../../src/store/store.ts";

const KEYS = 24;
const keyOf = (index: number): string => `w.ledger.key${index}`;

interface Line {
  readonly id: string;
  readonly keys: readonly string[];
  readonly outcome: CommitOutcome;
}

/** What {@link Ledger.verify} found, for the test to judge what it does not itself. */
export interface LedgerSummary {
  readonly committed: number;
  readonly refused: number;
  readonly unreached: number;
  readonly unknown: number;
}

/**
 * Several writers on a few hot keys, and a record of what each was told. Every value is the list of all operations that
 * ever wrote its key, each writer adding its own to the list it read: so in the end the store itself tells what was
 * applied, how often and in which order, and that is held against the answers.
 */
export class Ledger {
  readonly #shards: readonly Shard[];
  readonly #random: Random;
  readonly #seed: number;
  readonly #lines: Line[] = [];
  #writing = false;
  #writers: Promise<unknown> = Promise.resolve();
  #counter = 0;

  /** One shard object a client: all of the same shard. */
  constructor(shards: readonly Shard[], seed: number) {
    this.#shards = shards;
    this.#seed = seed;
    this.#random = seededRandom(seed);
  }

  /** How many commits were answered so far as done. */
  committed(): number {
    return this.#lines.filter(({ outcome }) => outcome.kind === "committed").length;
  }

  start(writers: number): void {
    this.#writing = true;
    this.#writers = Promise.all(Array.from({ length: writers }, (_, index) => this.#write(index)));
  }

  /** Answers when every writer has had its last answer. */
  async stop(): Promise<void> {
    this.#writing = false;
    await this.#writers;
  }

  /** Holds the answers against the store: none lost, none twice, none partial, no "no" that was a "yes". */
  async verify(shard: Shard): Promise<LedgerSummary> {
    const entries = await shard.read(
      Array.from({ length: KEYS }, (_, index) => keyOf(index)),
      { fresh: true },
    );
    const applied = new Map<string, string[]>();
    for (const [key, entry] of entries)
      for (const id of listOf(entry)) applied.set(id, [...(applied.get(id) ?? []), key]);
    const problems: string[] = [];
    for (const { id, keys, outcome } of this.#lines) {
      const found = (applied.get(id) ?? []).sort().join(" ");
      const whole = [...keys].sort().join(" ");
      const told = outcome.kind === "committed" ? [whole] : outcome.kind === "unknown" ? ["", whole] : [""];
      if (!told.includes(found)) problems.push(`${id}: ${outcome.kind}, wrote [${whole}], found in [${found}]`);
    }
    expect(problems, `seed ${this.#seed}`).toEqual([]);
    const count = (kind: CommitOutcome["kind"]): number =>
      this.#lines.filter(({ outcome }) => outcome.kind === kind).length;
    return {
      committed: count("committed"),
      refused: count("refused"),
      unreached: count("unreached"),
      unknown: count("unknown"),
    };
  }

  async #write(writer: number): Promise<void> {
    const shard = this.#shards[writer % this.#shards.length];
    if (shard === undefined) throw new TypeError("a ledger has a shard");
    while (this.#writing) {
      const commit = await this.#plan(shard, writer);
      if (commit === undefined) continue;
      const outcome = await shard.commit(commit, { deadlineMs: 20_000 });
      this.#lines.push({ id: commit.operationId, keys: commit.puts.map(({ key }) => key), outcome });
    }
  }

  async #plan(shard: Shard, writer: number): Promise<Commit | undefined> {
    const pick = (): string => keyOf(Math.floor(this.#random() * KEYS));
    const keys = [...new Set(Array.from({ length: 1 + Math.floor(this.#random() * 3) }, pick))];
    const asserted = this.#random() < 0.3 ? pick() : undefined;
    let entries: ReadonlyMap<string, Entry>;
    try {
      entries = await shard.read(asserted === undefined ? keys : [...keys, asserted]);
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable) return undefined;
      throw thrown;
    }
    const operationId = `o${writer}-${(this.#counter += 1)}`;
    const asserts: Assertion[] =
      asserted === undefined || keys.includes(asserted)
        ? []
        : [{ key: asserted, revision: entries.get(asserted)?.revision ?? 0 }];
    const puts = keys.map((key) => {
      const entry = entries.get(key);
      return { key, value: utf8([...listOf(entry), operationId].join(",")), base: entry ?? ("absent" as const) };
    });
    return { operationId, puts, asserts };
  }
}

function listOf(entry: Entry | undefined): readonly string[] {
  return entry === undefined ? [] : new TextDecoder().decode(entry.value).split(",");
}
