/**
 * Goal: under every fault of the simulated store no client is lied to: what was acknowledged is in the log, what was denied
 * is not and never gets there, nothing happens twice, a fresh read misses nothing that was acknowledged before it, and
 * followers end up with exactly what the log holds. And the faults do happen: outcomes stay unknown now and then.
 * Method: seeded runs in virtual time. Several clients write a few hot keys while links and servers fail (safety), then
 * everything heals (liveness); the log's own history is the judge. `SEEDS=5000` runs more, `SEED=17` runs one.
 */
import { describe, expect, it } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { Random } from "../../src/base/random.ts";
import { EventQueue } from "../../src/store/simulated/event-queue.ts";
import { noFaults, roughFaults } from "../../src/store/simulated/faults.ts";
import { SimulatedLog } from "../../src/store/simulated/simulated-log.ts";
import type { SimulatedStore } from "../../src/store/simulated/simulated-store.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import type { Commit, CommitOutcome, Entry, Follower, Shard } from "../../src/store/store.ts";

const CLIENTS = 3;
const WRITERS_PER_CLIENT = 3;
const OPERATIONS = 12;
const KEYS = ["w.a", "w.b", "w.c", "b.a", "x.a", "w.d", "w.e", "w.f"];
const FAMILIES = ["w", "b"];

interface Judged {
  readonly commit: Commit;
  readonly outcome: CommitOutcome;
  /** Another call sends the same commit, earlier or later: then "no server took it" speaks of one call alone. */
  readonly sentTwice: boolean;
}

class Run {
  readonly problems: string[] = [];
  readonly judged: Judged[] = [];
  readonly queue: EventQueue;
  readonly log: SimulatedLog;
  readonly clients: readonly SimulatedStore[];
  readonly followers: { readonly view: Map<string, Entry>; readonly follower: Follower }[] = [];
  readonly #random: Random;
  /** The newest acknowledged revision of each key. */
  readonly #acknowledged = new Map<string, number>();
  #operations = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.queue = new EventQueue({ startAt: 1_700_000_000_000 });
    this.log = new SimulatedLog({ clock: this.queue, queue: this.queue, seed, history: true });
    const faults = { ...roughFaults, followReorder: seed % 2 === 0 ? 0.3 : 0 };
    this.clients = Array.from({ length: CLIENTS }, () => this.log.client({ faults, commitDeadlineMs: 6000 }));
    for (const client of this.clients) this.#follow(shardOf(client));
  }

  async perform(): Promise<void> {
    const writers = this.clients.flatMap((client) =>
      Array.from({ length: WRITERS_PER_CLIENT }, () => this.#write(shardOf(client))),
    );
    const work = Promise.all(writers);
    await this.queue.settle(Promise.all([work, this.#disturb()]), 3_600_000);
    this.log.resume();
    this.log.endOutage();
    for (const client of this.clients) {
      client.setFaults({ ...noFaults });
      client.reconnect();
    }
    if (!(await this.queue.runUntilIdle(60_000))) this.problems.push("does not come to rest");
  }

  judge(): void {
    const history = this.log.history(0);
    const landed = new Map<string, number[][]>();
    for (const { operationId, entries } of history) {
      const revisions = entries.map((entry) => entry.revision);
      landed.set(operationId, [...(landed.get(operationId) ?? []), revisions]);
    }
    for (const { commit, outcome, sentTwice } of this.judged) {
      const found = landed.get(commit.operationId) ?? [];
      if (found.length > 1) this.problems.push(`${commit.operationId} took effect ${found.length} times`);
      if (outcome.kind === "unknown" || (sentTwice && outcome.kind === "unreached")) continue;
      if (outcome.kind !== "committed") {
        if (found.length > 0) this.problems.push(`${commit.operationId} is said to be ${outcome.kind}, and landed`);
        continue;
      }
      const [revisions] = found;
      if (revisions === undefined) this.problems.push(`${commit.operationId} was acknowledged, and is not there`);
      else if (outcome.revisions.some((revision, index) => revision > (revisions[index] ?? 0)))
        this.problems.push(
          `${commit.operationId} got revisions ${outcome.revisions.join()} instead of ${revisions.join()}`,
        );
    }
    const shard = this.log.shard(0);
    const expected = shard.since(0, FAMILIES);
    for (const { view, follower } of this.followers) {
      const seen = [...view.values()].sort((left, right) => left.revision - right.revision);
      if (JSON.stringify(seen) !== JSON.stringify(expected)) this.problems.push("a follower sees something else");
      if (follower.cursor() < (expected.at(-1)?.revision ?? 0)) this.problems.push("a follower's cursor lags behind");
    }
  }

  #follow(shard: Shard): void {
    const view = new Map<string, Entry>();
    const follower = shard.follow({
      families: FAMILIES,
      onEntry: (entry) => {
        const known = view.get(entry.key)?.revision ?? 0;
        if (known > entry.revision) this.problems.push(`${entry.key} went back from ${known} to ${entry.revision}`);
        view.set(entry.key, entry);
      },
      onState: (state) => {
        if (state.kind === "reset") view.clear();
        if (state.kind === "current") this.#judgeCurrent(view, state.revision);
      },
    });
    this.followers.push({ view, follower });
  }

  /** Everything up to the revision is in the view, or something newer of the same key. */
  #judgeCurrent(view: ReadonlyMap<string, Entry>, revision: number): void {
    for (const entry of this.log.shard(0).since(0, FAMILIES)) {
      if (entry.revision <= revision && view.get(entry.key)?.revision !== entry.revision)
        this.problems.push(`current at ${revision} without ${entry.key} at ${entry.revision}`);
    }
  }

  async #write(shard: Shard): Promise<void> {
    for (let count = 0; count < OPERATIONS; count += 1) {
      await this.queue.sleep(this.#below(300));
      const keys = this.#pick(1 + this.#below(3));
      const asserted = this.#random() < 0.3 ? this.#pick(1).filter((key) => !keys.includes(key)) : [];
      const base = await this.#read(shard, [...keys, ...asserted]);
      if (base === undefined) continue;
      const operationId = `op-${(this.#operations += 1)}`;
      const commit: Commit = {
        operationId,
        puts: keys.map((key) => ({ key, value: utf8(operationId), base: base.get(key) ?? "absent" })),
        asserts: asserted.map((key) => ({ key, revision: base.get(key)?.revision ?? 0 })),
      };
      const sentTwice = this.#random() < 0.15;
      await this.#commit(shard, commit, sentTwice);
      if (sentTwice) await this.#commit(shard, commit, sentTwice);
    }
  }

  async #commit(shard: Shard, commit: Commit, sentTwice: boolean): Promise<void> {
    const outcome = await shard.commit(commit);
    this.judged.push({ commit, outcome, sentTwice });
    if (outcome.kind !== "committed") return;
    for (const [index, { key }] of commit.puts.entries()) {
      const revision = outcome.revisions[index] ?? 0;
      this.#acknowledged.set(key, Math.max(revision, this.#acknowledged.get(key) ?? 0));
    }
  }

  async #read(shard: Shard, keys: readonly string[]): Promise<ReadonlyMap<string, Entry> | undefined> {
    const fresh = this.#random() < 0.3;
    const least = keys.map((key) => this.#acknowledged.get(key) ?? 0);
    try {
      const entries = await shard.read(keys, { fresh });
      for (const [index, key] of keys.entries()) {
        const revision = entries.get(key)?.revision ?? 0;
        if (fresh && revision < (least[index] ?? 0)) this.problems.push(`a fresh read of ${key} answered ${revision}`);
      }
      return entries;
    } catch (error) {
      if (error instanceof StoreUnavailable) return undefined;
      throw error;
    }
  }

  /** Breaks something, waits, mends it, for a while. */
  async #disturb(): Promise<void> {
    for (let count = 0; count < 6; count += 1) {
      await this.queue.sleep(this.#below(1500));
      const client = this.clients[this.#below(CLIENTS)];
      const faults: readonly [() => void, () => void][] = [
        [() => this.log.pause(), () => this.log.resume()],
        [() => this.log.beginOutage(), () => this.log.endOutage()],
        [() => this.log.restart(), () => undefined],
        [() => client?.cutOff(), () => client?.reconnect()],
        [() => client?.hold(), () => client?.release()],
        [() => client?.resetFollowers("asked for"), () => undefined],
      ];
      const [breaks, mends] = faults[this.#below(faults.length)] ?? [];
      breaks?.();
      await this.queue.sleep(this.#below(8000));
      mends?.();
    }
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #pick(count: number): string[] {
    const keys = new Set<string>();
    while (keys.size < count) keys.add(KEYS[this.#below(KEYS.length)] ?? "w.a");
    return [...keys];
  }
}

function shardOf(store: SimulatedStore): Shard {
  const [shard] = store.shards;
  if (shard === undefined) throw new TypeError("no shard");
  return shard;
}

async function run(seed: number): Promise<Run> {
  const simulated = new Run(seed);
  await simulated.perform();
  simulated.judge();
  return simulated;
}

const tellingOf = (simulated: Run): string =>
  JSON.stringify([
    simulated.log.history(0).map((commit) => [commit.operationId, commit.at]),
    simulated.judged.map(({ commit, outcome }) => [commit.operationId, outcome]),
  ]);

const one = process.env["SEED"];
const first = one === undefined ? 1 : Number(one);
const seeds = one === undefined ? Number(process.env["SEEDS"] ?? 150) : 1;

describe("the simulated store under faults", () => {
  it(`tells no lie in ${seeds} runs from seed ${first} on`, async () => {
    const tally: Record<string, number> = {};
    for (let seed = first; seed < first + seeds; seed += 1) {
      const { problems, judged } = await run(seed);
      expect(problems, `seed ${seed}`).toEqual([]);
      for (const { outcome } of judged) tally[outcome.kind] = (tally[outcome.kind] ?? 0) + 1;
    }
    console.log(`seeds ${first} to ${first + seeds - 1}: ${JSON.stringify(tally)}`);
    if (one !== undefined) return;
    for (const kind of ["committed", "refused", "unknown"]) expect(tally[kind], kind).toBeGreaterThan(0);
  });

  it("repeats exactly from its seed", async () => {
    expect(tellingOf(await run(first))).toBe(tellingOf(await run(first)));
  });
});
