/**
 * Goal: both implementations of the store port keep every promise of `store.ts` that can be seen without making faults.
 * Method: one suite, run over each; keys are fresh in every test, so that one store serves a whole group. Reads are fresh,
 * since an ordinary read may answer from the past.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { META_KEY, payloadKey, workloadKey, workloadPattern } from "../../src/store/keys.ts";
import type { Scope } from "../../src/store/keys.ts";
import { OPERATION_RING, StoreUnavailable } from "../../src/store/store.ts";
import type { Base, Commit, CommitOutcome, Entry, Put, Shard, Store } from "../../src/store/store.ts";
import { Recorder } from "./recorder.ts";

export interface OpenedStore {
  readonly store: Store;
  /** Another client of the same store. */
  another(): Promise<Store>;
  close(): Promise<void>;
  /** Lets time pass at once, ms, where the store allows it; otherwise the suite waits. */
  elapse?(ms: number): void;
}

export type OpenStore = (options: { readonly shards: number }) => Promise<OpenedStore>;

let counter = 0;
const unique = (name: string): string => `${name}${(counter += 1)}`;
const freshKey = (family = "w"): string => `${family}.t.a.${unique("key")}`;
const operation = (): string => unique("operation:");
const text = (entry: Entry | undefined): string | undefined =>
  entry === undefined ? undefined : new TextDecoder().decode(entry.value);

const put = (key: string, value: string, base: Base = "absent"): Put => ({ key, value: utf8(value), base });
const commitOf = (...puts: Put[]): Commit => ({ operationId: operation(), puts });

const fresh = { fresh: true };

async function readOne(shard: Shard, key: string): Promise<Entry | undefined> {
  return (await shard.read([key], fresh)).get(key);
}

function revisionsOf(outcome: CommitOutcome): readonly number[] {
  expect(outcome).toMatchObject({ kind: "committed" });
  return outcome.kind === "committed" ? outcome.revisions : [];
}

async function create(shard: Shard, key: string, value: string): Promise<Entry> {
  const [revision] = revisionsOf(await shard.commit(commitOf(put(key, value))));
  const entry = await readOne(shard, key);
  if (entry === undefined || entry.revision !== revision) throw new TypeError(`${key} is not what was created`);
  return entry;
}

/** Writes over an entry so many times, and answers the last one. */
async function overwrite(shard: Shard, entry: Entry, times: number): Promise<Entry> {
  let last = entry;
  for (let time = 0; time < times; time += 1) {
    const operationId = operation();
    const [revision = 0] = revisionsOf(
      await shard.commit({ operationId, puts: [put(entry.key, `over ${time}`, last)] }),
    );
    last = { ...last, revision, operations: [...last.operations, operationId].slice(-OPERATION_RING) };
  }
  return last;
}

export function describeStore(name: string, open: OpenStore): void {
  describe(`the store port, ${name}`, () => {
    let opened: OpenedStore;
    let shard: Shard;
    let other: Shard;

    const shardOf = (store: Store, index = 0): Shard => {
      const found = store.shards[index];
      if (found === undefined) throw new TypeError(`no shard ${index}`);
      return found;
    };

    beforeAll(async () => {
      opened = await open({ shards: 1 });
      shard = shardOf(opened.store);
      other = shardOf(await opened.another());
    }, 60_000);

    afterAll(async () => {
      await opened.close();
    }, 60_000);

    describe("guards", () => {
      it("creates what is absent, once", async () => {
        const key = freshKey();
        expect(revisionsOf(await shard.commit(commitOf(put(key, "first"))))).toHaveLength(1);
        expect(await other.commit(commitOf(put(key, "second")))).toMatchObject({ kind: "refused" });
        expect(text(await readOne(other, key))).toBe("first");
      });

      it("writes over the entry it builds on, and no other", async () => {
        const first = await create(shard, freshKey(), "1");
        const [revision] = revisionsOf(await other.commit(commitOf(put(first.key, "2", first))));
        expect(revision).toBeGreaterThan(first.revision);
        const late = await shard.commit(commitOf(put(first.key, "3", first)));
        expect(late).toMatchObject({ kind: "refused" });
        if (late.kind === "refused" && late.newer !== undefined) expect(late.newer).toBe(first.key);
        const entry = await readOne(shard, first.key);
        expect([text(entry), entry?.revision]).toEqual(["2", revision]);
      });

      it("refuses a base that never was", async () => {
        const key = freshKey();
        const outcome = await shard.commit(commitOf(put(key, "1", { revision: 1, operations: ["nobody"] })));
        expect(outcome).toMatchObject({ kind: "refused" });
        expect(await readOne(shard, key)).toBeUndefined();
      });

      it("lets exactly one of 50 racing writers create a key", async () => {
        const key = freshKey();
        const outcomes = await Promise.all(
          Array.from({ length: 50 }, (_, index) =>
            (index % 2 === 0 ? shard : other).commit(commitOf(put(key, `writer ${index}`))),
          ),
        );
        const winners = outcomes.flatMap((outcome, index) => (outcome.kind === "committed" ? [`writer ${index}`] : []));
        expect(winners).toHaveLength(1);
        expect(outcomes.filter((outcome) => outcome.kind === "refused")).toHaveLength(49);
        expect(text(await readOne(shard, key))).toBe(winners[0]);
      });

      it("lets exactly one of 50 racing writers replace an entry", async () => {
        const first = await create(shard, freshKey(), "0");
        const outcomes = await Promise.all(
          Array.from({ length: 50 }, (_, index) =>
            (index % 2 === 0 ? shard : other).commit(commitOf(put(first.key, `writer ${index}`, first))),
          ),
        );
        const winners = outcomes.flatMap((outcome, index) => (outcome.kind === "committed" ? [`writer ${index}`] : []));
        expect(winners).toHaveLength(1);
        expect(outcomes.filter((outcome) => outcome.kind === "refused")).toHaveLength(49);
        expect(text(await readOne(other, first.key))).toBe(winners[0]);
      });
    });

    describe("commits of several puts", () => {
      it("gives revisions in the order of the puts", async () => {
        const keys = [freshKey(), freshKey("b"), freshKey(), freshKey("x")];
        const revisions = revisionsOf(await shard.commit(commitOf(...keys.map((key) => put(key, key)))));
        const entries = await other.read(keys, fresh);
        expect(keys.map((key) => entries.get(key)?.revision)).toEqual(revisions);
        expect([...revisions].sort((left, right) => left - right)).toEqual(revisions);
        expect(new Set(revisions).size).toBe(keys.length);
      });

      it.each(["first", "middle", "last"])("stores nothing of it when the %s guard is broken", async (which) => {
        const taken = await create(shard, freshKey(), "taken");
        const before = await create(shard, freshKey(), "before");
        const free = freshKey();
        const puts = [put(before.key, "after", before), put(free, "new")];
        puts.splice(["first", "middle", "last"].indexOf(which), 0, put(taken.key, "stolen"));
        expect(await shard.commit(commitOf(...puts))).toMatchObject({ kind: "refused" });
        const entries = await other.read([taken.key, before.key, free], fresh);
        expect([...entries.values()].map(text).sort()).toEqual(["before", "taken"]);
      });

      it("takes a hundred puts at once", async () => {
        const keys = Array.from({ length: 100 }, () => freshKey());
        const revisions = revisionsOf(await shard.commit(commitOf(...keys.map((key) => put(key, key)))));
        const entries = await shard.read(keys, fresh);
        expect(keys.map((key) => entries.get(key)?.revision)).toEqual(revisions);
      });
    });

    describe("assertions", () => {
      it("commits while the asserted key is at its revision, and leaves it alone", async () => {
        const asserted = await create(shard, freshKey(), "asserted");
        const key = freshKey();
        const asserts = [{ key: asserted.key, revision: asserted.revision }];
        const revisions = revisionsOf(await shard.commit({ ...commitOf(put(key, "1")), asserts }));
        expect(revisions).toEqual([(await readOne(other, key))?.revision]);
        expect((await readOne(other, asserted.key))?.revision).toBe(asserted.revision);
      });

      it("refuses when the asserted key has moved", async () => {
        const asserted = await create(shard, freshKey(), "asserted");
        await overwrite(other, asserted, 1);
        const key = freshKey();
        const asserts = [{ key: asserted.key, revision: asserted.revision }];
        expect(await shard.commit({ ...commitOf(put(key, "1")), asserts })).toMatchObject({ kind: "refused" });
        expect(await readOne(shard, key)).toBeUndefined();
      });

      it("refuses when an asserted key is not there, or is there against the assertion", async () => {
        const present = await create(shard, freshKey(), "present");
        const key = freshKey();
        const missing = [{ key: freshKey(), revision: present.revision }];
        expect(await shard.commit({ ...commitOf(put(key, "1")), asserts: missing })).toMatchObject({ kind: "refused" });
        const absent = [{ key: present.key, revision: 0 }];
        expect(await shard.commit({ ...commitOf(put(key, "2")), asserts: absent })).toMatchObject({ kind: "refused" });
        expect(await readOne(shard, key)).toBeUndefined();
      });

      it("commits several puts while several assertions hold, of absence too", async () => {
        const asserted = await create(shard, freshKey(), "asserted");
        const keys = [freshKey(), freshKey("b")];
        const absent = freshKey();
        const asserts = [
          { key: asserted.key, revision: asserted.revision },
          { key: absent, revision: 0 },
        ];
        const commit = commitOf(...keys.map((key) => put(key, key)));
        const revisions = revisionsOf(await shard.commit({ ...commit, asserts }));
        const entries = await other.read([...keys, absent], fresh);
        expect(keys.map((key) => entries.get(key)?.revision)).toEqual(revisions);
        expect(entries.size).toBe(2);
      });

      it("never lets two commits that assert each other's key both pass", async () => {
        for (let round = 0; round < 10; round += 1) {
          const [left, right] = [await create(shard, freshKey(), "1"), await create(shard, freshKey(), "1")];
          const outcomes = await Promise.all([
            shard.commit({
              ...commitOf(put(left.key, "0", left)),
              asserts: [{ key: right.key, revision: right.revision }],
            }),
            other.commit({
              ...commitOf(put(right.key, "0", right)),
              asserts: [{ key: left.key, revision: left.revision }],
            }),
          ]);
          expect(outcomes.filter((outcome) => outcome.kind === "committed").length).toBeLessThanOrEqual(1);
          const entries = await shard.read([left.key, right.key], fresh);
          expect([...entries.values()].map(text)).toContain("1");
        }
      });
    });

    describe("operations", () => {
      it("keeps the ids of the operations that wrote a key, oldest first, its own last", async () => {
        const key = freshKey();
        const first = commitOf(put(key, "1"));
        await shard.commit(first);
        const base = await readOne(shard, key);
        if (base === undefined) throw new TypeError("not created");
        const second = commitOf(put(key, "2", base));
        await other.commit(second);
        expect((await readOne(shard, key))?.operations).toEqual([first.operationId, second.operationId]);
      });

      it(`keeps the last ${OPERATION_RING} of them`, async () => {
        const first = await create(shard, freshKey(), "0");
        const last = await overwrite(shard, first, OPERATION_RING + 8);
        const entry = await readOne(shard, first.key);
        expect(entry?.operations).toHaveLength(OPERATION_RING);
        expect(entry?.operations).toEqual(last.operations);
      });

      it("answers a repeated commit as the first time, without a second effect", async () => {
        const before = await create(shard, freshKey(), "before");
        const commit = commitOf(put(freshKey(), "1"), put(before.key, "after", before), put(freshKey("b"), "2"));
        const revisions = revisionsOf(await shard.commit(commit));
        expect(revisionsOf(await shard.commit(commit))).toEqual(revisions);
        expect(revisionsOf(await other.commit(commit))).toEqual(revisions);
        const keys = commit.puts.map((each) => each.key);
        const entries = await shard.read(keys, fresh);
        expect(keys.map((key) => entries.get(key)?.revision)).toEqual(revisions);
        expect(keys.map((key) => entries.get(key)?.operations.at(-1))).toEqual(keys.map(() => commit.operationId));
      });

      it("answers a repeated commit of one put as the first time", async () => {
        const commit = commitOf(put(freshKey(), "1"));
        const revisions = revisionsOf(await shard.commit(commit));
        expect(revisionsOf(await other.commit(commit))).toEqual(revisions);
      });

      it("answers that a repeated commit landed though others have written since, and leaves theirs alone", async () => {
        const commit = commitOf(put(freshKey(), "1"));
        revisionsOf(await shard.commit(commit));
        const key = commit.puts[0]?.key ?? "";
        const entry = await readOne(shard, key);
        if (entry === undefined) throw new TypeError("not created");
        const last = await overwrite(other, entry, 5);
        const revisions = revisionsOf(await shard.commit(commit));
        expect(revisions).toHaveLength(1);
        expect(revisions[0]).toBeLessThanOrEqual(last.revision);
        expect((await readOne(shard, key))?.revision).toBe(last.revision);
      });

      it("gives one effect and one answer to the same commit sent by two clients at once", async () => {
        const commit = commitOf(put(freshKey(), "1"), put(freshKey(), "2"));
        const outcomes = await Promise.all([shard.commit(commit), other.commit(commit), shard.commit(commit)]);
        const [revisions] = outcomes.map(revisionsOf);
        for (const outcome of outcomes) expect(revisionsOf(outcome)).toEqual(revisions);
      });
    });

    describe("contents", () => {
      it("gives provenance back exactly", async () => {
        const provenance = {
          action: "complete",
          subject: "human:Zoë\r\nX-Injected: yes",
          emoji: "🧵👩‍👩‍👧 é é",
          empty: "",
          blank: " \t padded ",
          long: "ö".repeat(300),
          "Odd-Name_1": "%25=3D,;:\u0000\u007f",
        };
        const key = freshKey();
        await shard.commit({ ...commitOf(put(key, "1")), provenance });
        expect((await readOne(other, key))?.provenance).toEqual(provenance);
        const bare = await create(shard, freshKey(), "1");
        expect(bare.provenance).toEqual({});
      });

      it("gives each put of a commit the same provenance", async () => {
        const keys = [freshKey(), freshKey("b")];
        await shard.commit({ ...commitOf(...keys.map((key) => put(key, key))), provenance: { who: "me" } });
        const entries = await shard.read(keys, fresh);
        expect(keys.map((key) => entries.get(key)?.provenance)).toEqual([{ who: "me" }, { who: "me" }]);
      });

      it("gives values back byte for byte, none at all and 4 MiB too", async () => {
        const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);
        const large = new Uint8Array(4 * 1024 * 1024);
        for (let index = 0; index < large.length; index += 1) large[index] = (index * 31) & 0xff;
        const values = [new Uint8Array(), everyByte, utf8("\r\n\r\nHPUB"), large];
        for (const value of values) {
          const key = freshKey("b");
          revisionsOf(await shard.commit(commitOf({ key, value, base: "absent" })));
          const entry = await readOne(other, key);
          expect(entry === undefined ? "none" : Buffer.compare(entry.value, value)).toBe(0);
        }
      });

      it("answers that it can't hold a value of 9 MiB, and stores nothing of the commit", async () => {
        const keys = [freshKey(), freshKey("b")] as const;
        const large = { key: keys[1], value: new Uint8Array(9 * 1024 * 1024), base: "absent" } as const;
        expect(await shard.commit(commitOf(put(keys[0], "1"), large))).toMatchObject({ kind: "unacceptable" });
        expect((await shard.read(keys, fresh)).size).toBe(0);
        revisionsOf(await shard.commit(commitOf(put(keys[0], "2"))));
      });

      it("stamps entries with the store's clock", async () => {
        const [first, second] = [await create(shard, freshKey(), "1"), await create(other, freshKey(), "2")];
        expect(Number.isInteger(first.at)).toBe(true);
        expect(second.at).toBeGreaterThanOrEqual(first.at);
      });

      it("lets an entry with a time to live vanish, and its key be created again", async () => {
        const key = freshKey("q");
        revisionsOf(await shard.commit(commitOf({ ...put(key, "short"), ttlMs: 1000 })));
        const kept = await create(shard, freshKey("q"), "kept");
        expect(text(await readOne(other, key))).toBe("short");
        opened.elapse?.(1000);
        await expect.poll(() => readOne(other, key), { timeout: 4000, interval: 50 }).toBeUndefined();
        expect(text(await readOne(shard, kept.key))).toBe("kept");
        expect((await create(shard, key, "again")).operations).toHaveLength(1);
      });
    });

    describe("keys and reading", () => {
      const awkward = [
        "a.b",
        "*",
        ">",
        "a b",
        "x\r\nPUB y",
        "🧵",
        "ü".normalize("NFD"),
        "ü".normalize("NFC"),
        "A",
        "a",
        "=",
        "$SYS",
      ];

      it("keeps every identifier apart from every other", async () => {
        const scope: Scope = { tenantId: unique("t.*>"), applicationId: "a\r\n >" };
        const identifiers = [...awkward, "l".repeat(300), "L".repeat(300)];
        const keys = identifiers.map((identifier) => workloadKey(scope, identifier));
        for (const [index, key] of keys.entries()) await create(shard, key, `value ${index}`);
        const entries = await other.read(keys, fresh);
        expect(keys.map((key) => text(entries.get(key)))).toEqual(keys.map((_, index) => `value ${index}`));
        expect(keys.map((key) => entries.get(key)?.key)).toEqual(keys);
      });

      it("finds by a pattern, keyed by the pattern", async () => {
        const scope: Scope = { tenantId: unique("tenant *"), applicationId: "a.b" };
        const workloadId = unique("wörk.load ");
        const key = workloadKey(scope, workloadId);
        await create(shard, key, "found");
        await create(shard, payloadKey(scope, workloadId, "input"), "another family");
        await create(shard, workloadKey(scope, `${workloadId}.more`), "another id");
        const pattern = workloadPattern(workloadId);
        const entries = await other.read([pattern, key], fresh);
        expect(entries.get(pattern)?.key).toBe(key);
        expect(text(entries.get(pattern))).toBe("found");
        expect(entries.get(key)?.key).toBe(key);
        expect((await other.read([workloadPattern(unique("none"))], fresh)).size).toBe(0);
      });

      it("takes the newest match of a pattern", async () => {
        const workloadId = unique("twice");
        await create(shard, workloadKey({ tenantId: "t2", applicationId: "a" }, workloadId), "older");
        await create(shard, workloadKey({ tenantId: "t1", applicationId: "a" }, workloadId), "newer");
        const pattern = workloadPattern(workloadId);
        expect(text((await shard.read([pattern], fresh)).get(pattern))).toBe("newer");
      });

      it("leaves absent keys out, and answers for none", async () => {
        const entry = await create(shard, freshKey(), "1");
        const entries = await shard.read([freshKey(), entry.key, META_KEY], fresh);
        expect([...entries.keys()]).toEqual([entry.key]);
        expect((await shard.read([], fresh)).size).toBe(0);
      });

      it("answers an ordinary read as well", async () => {
        const entry = await create(shard, freshKey(), "1");
        const found = (await shard.read([entry.key])).get(entry.key);
        if (found !== undefined) expect(found).toEqual(entry);
      });

      it("shows another client's acknowledged write to every fresh read", async () => {
        let last = await create(shard, freshKey(), "0");
        for (let time = 0; time < 60; time += 1) {
          last = await overwrite(shard, last, 1);
          expect((await readOne(other, last.key))?.revision).toBe(last.revision);
        }
      });

      it("never tears a snapshot of several keys while both are being written", async () => {
        const amount = 1000;
        let left = await create(shard, freshKey(), String(amount));
        let right = await create(shard, freshKey(), "0");
        let done = false;
        const write = async (): Promise<void> => {
          for (let moved = 1; moved <= 100; moved += 1) {
            const commit = commitOf(put(left.key, String(amount - moved), left), put(right.key, String(moved), right));
            const [first = 0, second = 0] = revisionsOf(await shard.commit(commit));
            left = { ...left, revision: first, operations: [commit.operationId] };
            right = { ...right, revision: second, operations: [commit.operationId] };
          }
          done = true;
        };
        const sums = new Set<number>();
        const read = async (): Promise<void> => {
          while (!done) {
            for (const options of [{}, fresh]) {
              const entries = await other.read([left.key, right.key], options);
              if (entries.size > 0)
                sums.add([...entries.values()].reduce((sum, entry) => sum + Number(text(entry)), 0));
            }
          }
        };
        await Promise.all([write(), read()]);
        expect([...sums]).toEqual([amount]);
      });
    });

    describe("following", () => {
      it("delivers the latest of each key, says it is current, then goes on with what is committed", async () => {
        const first = await create(shard, freshKey(), "0");
        await overwrite(shard, first, 3);
        const second = await create(shard, freshKey(), "once");
        const recorder = new Recorder(other, ["w"]);
        await recorder.current();
        expect(recorder.values(first.key)).toEqual(["over 2"]);
        expect(recorder.values(second.key)).toEqual(["once"]);
        const third = await create(shard, freshKey(), "live");
        await overwrite(shard, second, 1);
        await recorder.until(() => recorder.values(second.key).length === 2);
        expect(recorder.values(third.key)).toEqual(["live"]);
        expect(recorder.entries.find((entry) => entry.key === third.key)).toEqual(third);
        await recorder.follower.stop();
      });

      it("delivers in order of revision and moves its cursor along", async () => {
        const recorder = new Recorder(other, ["w", "b"]);
        await recorder.current();
        const keys = Array.from({ length: 20 }, () => [freshKey(), freshKey("b")]);
        const outcomes = await Promise.all(
          keys.map(async (pair) => revisionsOf(await shard.commit(commitOf(...pair.map((key) => put(key, key)))))),
        );
        const last = Math.max(...outcomes.flat());
        await recorder.until(() => recorder.follower.cursor() >= last);
        const revisions = recorder.entries.map((entry) => entry.revision);
        expect(revisions).toEqual([...new Set(revisions)].sort((left, right) => left - right));
        const delivered = new Set(recorder.entries.map((entry) => entry.key));
        expect(keys.flat().filter((key) => !delivered.has(key))).toEqual([]);
        expect(recorder.follower.resets()).toBe(0);
        await recorder.follower.stop();
      });

      it("is current with nothing to deliver", async () => {
        const recorder = new Recorder(shard, ["z"]);
        await recorder.current();
        expect(recorder.entries).toEqual([]);
        await recorder.follower.stop();
      });

      it("delivers the families asked for, and no others", async () => {
        const recorder = new Recorder(shard, ["k", "n"]);
        await recorder.current();
        const keys = ["n", "b", "k", "w"].map((family) => freshKey(family));
        await shard.commit(commitOf(...keys.map((key) => put(key, key))));
        const last = await create(shard, freshKey("n"), "last");
        await recorder.until(() => recorder.values(last.key).length > 0);
        const followed = recorder.entries.map((entry) => entry.key).filter((key) => keys.includes(key));
        expect(followed).toEqual([keys[0], keys[2]]);
        expect(recorder.entries.every((entry) => /^[kn]\./.test(entry.key))).toBe(true);
        await recorder.follower.stop();
      });

      it("delivers nothing of a refused commit, and a repeated one once", async () => {
        const taken = await create(shard, freshKey(), "taken");
        const recorder = new Recorder(other, ["w"]);
        await recorder.current();
        const refused = freshKey();
        await shard.commit(commitOf(put(refused, "never"), put(taken.key, "never")));
        const commit = commitOf(put(freshKey(), "once"));
        await shard.commit(commit);
        await shard.commit(commit);
        const last = await create(shard, freshKey(), "last");
        await recorder.until(() => recorder.values(last.key).length > 0);
        expect(recorder.values(refused)).toEqual([]);
        expect(recorder.values(commit.puts[0]?.key ?? "")).toEqual(["once"]);
        await recorder.follower.stop();
      });

      it("serves several followers, each on its own", async () => {
        const recorders = [new Recorder(shard, ["w"]), new Recorder(other, ["w"]), new Recorder(other, ["b"])] as const;
        await Promise.all(recorders.map((recorder) => recorder.current()));
        await recorders[0].follower.stop();
        const heard = recorders[0].entries.length;
        const keys = [freshKey(), freshKey("b")] as const;
        await shard.commit(commitOf(put(keys[0], "1"), put(keys[1], "2")));
        await recorders[1].until(() => recorders[1].values(keys[0]).length > 0);
        await recorders[2].until(() => recorders[2].values(keys[1]).length > 0);
        expect(recorders[2].values(keys[0])).toEqual([]);
        expect(recorders[0].entries).toHaveLength(heard);
        await Promise.all(recorders.map((recorder) => recorder.follower.stop()));
      });
    });

    describe("a client that was closed", () => {
      it("is not reachable, reads reject as unavailable, commits are not taken, followers are silent", async () => {
        const closed = await opened.another();
        const shardClosed = shardOf(closed);
        expect(closed.reachable()).toBe(true);
        const recorder = new Recorder(shardClosed, ["w"]);
        await recorder.current();
        await closed.close();
        expect(closed.reachable()).toBe(false);
        const key = freshKey();
        await expect(shardClosed.read([key])).rejects.toBeInstanceOf(StoreUnavailable);
        const outcome = await shardClosed.commit(commitOf(put(key, "1")), { deadlineMs: 200 });
        expect(["unreached", "unknown"]).toContain(outcome.kind);
        const heard = recorder.entries.length;
        await create(shard, freshKey(), "later");
        expect(recorder.entries).toHaveLength(heard);
        expect(await readOne(shard, key)).toBeUndefined();
      });
    });
  });

  describe(`the store port with three shards, ${name}`, () => {
    it("keeps the shards apart: keys, revisions, followers", async () => {
      const opened = await open({ shards: 3 });
      try {
        const { shards } = opened.store;
        const others = (await opened.another()).shards;
        expect(shards.map((shard) => shard.index)).toEqual([0, 1, 2]);
        const recorders = others.map((shard) => new Recorder(shard, ["w"]));
        await Promise.all(recorders.map((recorder) => recorder.current()));
        const key = freshKey();
        for (const shard of shards) await create(shard, key, `shard ${shard.index}`);
        for (const shard of others) expect(text(await readOne(shard, key))).toBe(`shard ${shard.index}`);
        for (const [index, recorder] of recorders.entries()) {
          await recorder.until(() => recorder.entries.length > 0);
          expect(recorder.values(key)).toEqual([`shard ${index}`]);
          await recorder.follower.stop();
        }
      } finally {
        await opened.close();
      }
    }, 60_000);
  });
}
