import { describe, expect, it } from "vitest";
import { OPERATION_RING } from "../../src/store/store.ts";
import { commitOf, create, fresh, freshKey, overwrite, put, readOne, revisionsOf, text } from "./store-steps.ts";
import type { World } from "./store-steps.ts";

/** Guards, atomicity, assertions, and what repeats of one operation answer. */
export function describeCommits(world: World): void {
  describe("guards", () => {
    it("creates what is absent, once", async () => {
      const key = freshKey();
      expect(revisionsOf(await world.shard.commit(commitOf(put(key, "first"))))).toHaveLength(1);
      expect(await world.other.commit(commitOf(put(key, "second")))).toMatchObject({ kind: "refused" });
      expect(text(await readOne(world.other, key))).toBe("first");
    });

    it("writes over the entry it builds on, and no other", async () => {
      const first = await create(world.shard, freshKey(), "1");
      const [revision] = revisionsOf(await world.other.commit(commitOf(put(first.key, "2", first))));
      expect(revision).toBeGreaterThan(first.revision);
      const late = await world.shard.commit(commitOf(put(first.key, "3", first)));
      expect(late).toMatchObject({ kind: "refused" });
      if (late.kind === "refused" && late.newer !== undefined) expect(late.newer).toBe(first.key);
      const entry = await readOne(world.shard, first.key);
      expect([text(entry), entry?.revision]).toEqual(["2", revision]);
    });

    it("refuses a base that never was", async () => {
      const key = freshKey();
      const outcome = await world.shard.commit(commitOf(put(key, "1", { revision: 1, operations: ["nobody"] })));
      expect(outcome).toMatchObject({ kind: "refused" });
      expect(await readOne(world.shard, key)).toBeUndefined();
    });

    it("lets exactly one of 50 racing writers create a key", async () => {
      const key = freshKey();
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          (index % 2 === 0 ? world.shard : world.other).commit(commitOf(put(key, `writer ${index}`))),
        ),
      );
      const winners = outcomes.flatMap((outcome, index) => (outcome.kind === "committed" ? [`writer ${index}`] : []));
      expect(winners).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.kind === "refused")).toHaveLength(49);
      expect(text(await readOne(world.shard, key))).toBe(winners[0]);
    });

    it("lets exactly one of 50 racing writers replace an entry", async () => {
      const first = await create(world.shard, freshKey(), "0");
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          (index % 2 === 0 ? world.shard : world.other).commit(commitOf(put(first.key, `writer ${index}`, first))),
        ),
      );
      const winners = outcomes.flatMap((outcome, index) => (outcome.kind === "committed" ? [`writer ${index}`] : []));
      expect(winners).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.kind === "refused")).toHaveLength(49);
      expect(text(await readOne(world.other, first.key))).toBe(winners[0]);
    });
  });

  describe("commits of several puts", () => {
    it("gives revisions in the order of the puts", async () => {
      const keys = [freshKey(), freshKey("b"), freshKey(), freshKey("x")];
      const revisions = revisionsOf(await world.shard.commit(commitOf(...keys.map((key) => put(key, key)))));
      const entries = await world.other.read(keys, fresh);
      expect(keys.map((key) => entries.get(key)?.revision)).toEqual(revisions);
      expect([...revisions].sort((left, right) => left - right)).toEqual(revisions);
      expect(new Set(revisions).size).toBe(keys.length);
    });

    it.each(["first", "middle", "last"])("stores nothing of it when the %s guard is broken", async (which) => {
      const taken = await create(world.shard, freshKey(), "taken");
      const before = await create(world.shard, freshKey(), "before");
      const free = freshKey();
      const puts = [put(before.key, "after", before), put(free, "new")];
      puts.splice(["first", "middle", "last"].indexOf(which), 0, put(taken.key, "stolen"));
      expect(await world.shard.commit(commitOf(...puts))).toMatchObject({ kind: "refused" });
      const entries = await world.other.read([taken.key, before.key, free], fresh);
      expect(new Set([...entries.values()].map(text))).toEqual(new Set(["before", "taken"]));
    });

    it("takes a hundred puts at once", async () => {
      const keys = Array.from({ length: 100 }, () => freshKey());
      const revisions = revisionsOf(await world.shard.commit(commitOf(...keys.map((key) => put(key, key)))));
      const entries = await world.shard.read(keys, fresh);
      expect(keys.map((key) => entries.get(key)?.revision)).toEqual(revisions);
    });
  });

  describe("assertions", () => {
    it("commits while the asserted key is at its revision, and leaves it alone", async () => {
      const asserted = await create(world.shard, freshKey(), "asserted");
      const key = freshKey();
      const asserts = [{ key: asserted.key, revision: asserted.revision }];
      const revisions = revisionsOf(await world.shard.commit({ ...commitOf(put(key, "1")), asserts }));
      expect(revisions).toEqual([(await readOne(world.other, key))?.revision]);
      expect((await readOne(world.other, asserted.key))?.revision).toBe(asserted.revision);
    });

    it("refuses when the asserted key has moved", async () => {
      const asserted = await create(world.shard, freshKey(), "asserted");
      await overwrite(world.other, asserted, 1);
      const key = freshKey();
      const asserts = [{ key: asserted.key, revision: asserted.revision }];
      expect(await world.shard.commit({ ...commitOf(put(key, "1")), asserts })).toMatchObject({ kind: "refused" });
      expect(await readOne(world.shard, key)).toBeUndefined();
    });

    it("refuses when an asserted key is not there, or is there against the assertion", async () => {
      const present = await create(world.shard, freshKey(), "present");
      const key = freshKey();
      const missing = [{ key: freshKey(), revision: present.revision }];
      expect(await world.shard.commit({ ...commitOf(put(key, "1")), asserts: missing })).toMatchObject({
        kind: "refused",
      });
      const absent = [{ key: present.key, revision: 0 }];
      expect(await world.shard.commit({ ...commitOf(put(key, "2")), asserts: absent })).toMatchObject({
        kind: "refused",
      });
      expect(await readOne(world.shard, key)).toBeUndefined();
    });

    it("commits several puts while several assertions hold, of absence too", async () => {
      const asserted = await create(world.shard, freshKey(), "asserted");
      const keys = [freshKey(), freshKey("b")];
      const absent = freshKey();
      const asserts = [
        { key: asserted.key, revision: asserted.revision },
        { key: absent, revision: 0 },
      ];
      const commit = commitOf(...keys.map((key) => put(key, key)));
      const revisions = revisionsOf(await world.shard.commit({ ...commit, asserts }));
      const entries = await world.other.read([...keys, absent], fresh);
      expect(keys.map((key) => entries.get(key)?.revision)).toEqual(revisions);
      expect(entries.size).toBe(2);
    });

    it("never lets two commits that assert each other's key both pass", async () => {
      for (let round = 0; round < 10; round += 1) {
        const [left, right] = [await create(world.shard, freshKey(), "1"), await create(world.shard, freshKey(), "1")];
        const outcomes = await Promise.all([
          world.shard.commit({
            ...commitOf(put(left.key, "0", left)),
            asserts: [{ key: right.key, revision: right.revision }],
          }),
          world.other.commit({
            ...commitOf(put(right.key, "0", right)),
            asserts: [{ key: left.key, revision: left.revision }],
          }),
        ]);
        expect(outcomes.filter((outcome) => outcome.kind === "committed").length).toBeLessThanOrEqual(1);
        const entries = await world.shard.read([left.key, right.key], fresh);
        expect([...entries.values()].map(text)).toContain("1");
      }
    });
  });

  describe("operations", () => {
    it("keeps the ids of the operations that wrote a key, oldest first, its own last", async () => {
      const key = freshKey();
      const first = commitOf(put(key, "1"));
      await world.shard.commit(first);
      const base = await readOne(world.shard, key);
      if (base === undefined) throw new TypeError("not created");
      const second = commitOf(put(key, "2", base));
      await world.other.commit(second);
      expect((await readOne(world.shard, key))?.operations).toEqual([first.operationId, second.operationId]);
    });

    it(`keeps the last ${OPERATION_RING} of them`, async () => {
      const first = await create(world.shard, freshKey(), "0");
      const last = await overwrite(world.shard, first, OPERATION_RING + 8);
      const entry = await readOne(world.shard, first.key);
      expect(entry?.operations).toHaveLength(OPERATION_RING);
      expect(entry?.operations).toEqual(last.operations);
    });

    it("answers a repeated commit as the first time, without a second effect", async () => {
      const before = await create(world.shard, freshKey(), "before");
      const commit = commitOf(put(freshKey(), "1"), put(before.key, "after", before), put(freshKey("b"), "2"));
      const revisions = revisionsOf(await world.shard.commit(commit));
      expect(revisionsOf(await world.shard.commit(commit))).toEqual(revisions);
      expect(revisionsOf(await world.other.commit(commit))).toEqual(revisions);
      const keys = commit.puts.map((each) => each.key);
      const entries = await world.shard.read(keys, fresh);
      expect(keys.map((key) => entries.get(key)?.revision)).toEqual(revisions);
      expect(keys.map((key) => entries.get(key)?.operations.at(-1))).toEqual(keys.map(() => commit.operationId));
    });

    it("answers a repeated commit of one put as the first time", async () => {
      const commit = commitOf(put(freshKey(), "1"));
      const revisions = revisionsOf(await world.shard.commit(commit));
      expect(revisionsOf(await world.other.commit(commit))).toEqual(revisions);
    });

    it("answers that a repeated commit landed though others have written since, and leaves theirs alone", async () => {
      const commit = commitOf(put(freshKey(), "1"));
      revisionsOf(await world.shard.commit(commit));
      const key = commit.puts[0]?.key ?? "";
      const entry = await readOne(world.shard, key);
      if (entry === undefined) throw new TypeError("not created");
      const last = await overwrite(world.other, entry, 5);
      const revisions = revisionsOf(await world.shard.commit(commit));
      expect(revisions).toHaveLength(1);
      expect(revisions[0]).toBeLessThanOrEqual(last.revision);
      expect((await readOne(world.shard, key))?.revision).toBe(last.revision);
    });

    it("gives one effect and one answer to the same commit sent by two clients at once", async () => {
      const commit = commitOf(put(freshKey(), "1"), put(freshKey(), "2"));
      const outcomes = await Promise.all([
        world.shard.commit(commit),
        world.other.commit(commit),
        world.shard.commit(commit),
      ]);
      const [revisions] = outcomes.map(revisionsOf);
      for (const outcome of outcomes) expect(revisionsOf(outcome)).toEqual(revisions);
    });
  });
}
