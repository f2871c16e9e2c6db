import { describe, expect, it } from "vitest";
import { META_KEY, payloadKey, workloadKey, workloadPattern } from "../../src/store/keys.ts";
import type { Scope } from "../../src/store/keys.ts";
import {
  commitOf,
  create,
  fresh,
  freshKey,
  overwrite,
  put,
  readOne,
  revisionsOf,
  text,
  unique,
} from "./store-steps.ts";
import type { World } from "./store-steps.ts";

/** Keys that stay apart, patterns, snapshots and freshness. */
export function describeReading(world: World): void {
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
      for (const [index, key] of keys.entries()) await create(world.shard, key, `value ${index}`);
      const entries = await world.other.read(keys, fresh);
      expect(keys.map((key) => text(entries.get(key)))).toEqual(keys.map((_, index) => `value ${index}`));
      expect(keys.map((key) => entries.get(key)?.key)).toEqual(keys);
    });

    it("finds by a pattern, keyed by the pattern", async () => {
      const scope: Scope = { tenantId: unique("tenant *"), applicationId: "a.b" };
      const workloadId = unique("wörk.load ");
      const key = workloadKey(scope, workloadId);
      await create(world.shard, key, "found");
      await create(world.shard, payloadKey(scope, workloadId, "input"), "another family");
      await create(world.shard, workloadKey(scope, `${workloadId}.more`), "another id");
      const pattern = workloadPattern(workloadId);
      const entries = await world.other.read([pattern, key], fresh);
      expect(entries.get(pattern)?.key).toBe(key);
      expect(text(entries.get(pattern))).toBe("found");
      expect(entries.get(key)?.key).toBe(key);
      expect((await world.other.read([workloadPattern(unique("none"))], fresh)).size).toBe(0);
    });

    it("takes the newest match of a pattern", async () => {
      const workloadId = unique("twice");
      await create(world.shard, workloadKey({ tenantId: "t2", applicationId: "a" }, workloadId), "older");
      await create(world.shard, workloadKey({ tenantId: "t1", applicationId: "a" }, workloadId), "newer");
      const pattern = workloadPattern(workloadId);
      expect(text((await world.shard.read([pattern], fresh)).get(pattern))).toBe("newer");
    });

    it("leaves absent keys out, and answers for none", async () => {
      const entry = await create(world.shard, freshKey(), "1");
      const entries = await world.shard.read([freshKey(), entry.key, META_KEY], fresh);
      expect([...entries.keys()]).toEqual([entry.key]);
      expect((await world.shard.read([], fresh)).size).toBe(0);
    });

    it("answers an ordinary read as well", async () => {
      const entry = await create(world.shard, freshKey(), "1");
      const found = (await world.shard.read([entry.key])).get(entry.key);
      if (found !== undefined) expect(found).toEqual(entry);
    });

    it("shows another client's acknowledged write to every fresh read", async () => {
      let last = await create(world.shard, freshKey(), "0");
      for (let time = 0; time < 60; time += 1) {
        last = await overwrite(world.shard, last, 1);
        expect((await readOne(world.other, last.key))?.revision).toBe(last.revision);
      }
    });

    it("never tears a snapshot of several keys while both are being written", async () => {
      const amount = 1000;
      let left = await create(world.shard, freshKey(), String(amount));
      let right = await create(world.shard, freshKey(), "0");
      const write = async (): Promise<void> => {
        for (let moved = 1; moved <= 100; moved += 1) {
          const commit = commitOf(put(left.key, String(amount - moved), left), put(right.key, String(moved), right));
          const [first = 0, second = 0] = revisionsOf(await world.shard.commit(commit));
          left = { ...left, revision: first, operations: [commit.operationId] };
          right = { ...right, revision: second, operations: [commit.operationId] };
        }
      };
      const sums = new Set<number>();
      const read = async (): Promise<void> => {
        for (let time = 0; time < 60; time += 1) {
          for (const options of [{}, fresh]) {
            const entries = await world.other.read([left.key, right.key], options);
            if (entries.size > 0) sums.add([...entries.values()].reduce((sum, entry) => sum + Number(text(entry)), 0));
          }
        }
      };
      await Promise.all([write(), read()]);
      expect([...sums]).toEqual([amount]);
    });
  });
}
