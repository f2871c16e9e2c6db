import { describe, expect, it } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { commitOf, create, fresh, freshKey, put, readOne, revisionsOf, text } from "./store-steps.ts";
import type { World } from "./store-steps.ts";

/** What is stored comes back exactly, for as long as it should. */
export function describeContents(world: World): void {
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
      await world.shard.commit({ ...commitOf(put(key, "1")), provenance });
      expect((await readOne(world.other, key))?.provenance).toEqual(provenance);
      const bare = await create(world.shard, freshKey(), "1");
      expect(bare.provenance).toEqual({});
    });

    it("gives each put of a commit the same provenance", async () => {
      const keys = [freshKey(), freshKey("b")];
      await world.shard.commit({ ...commitOf(...keys.map((key) => put(key, key))), provenance: { who: "me" } });
      const entries = await world.shard.read(keys, fresh);
      expect(keys.map((key) => entries.get(key)?.provenance)).toEqual([{ who: "me" }, { who: "me" }]);
    });

    it("gives values back byte for byte, none at all and 4 MiB too", async () => {
      const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);
      const large = new Uint8Array(4 * 1024 * 1024);
      for (let index = 0; index < large.length; index += 1) large[index] = (index * 31) & 0xff;
      const values = [new Uint8Array(), everyByte, utf8("\r\n\r\nHPUB"), large];
      for (const value of values) {
        const key = freshKey("b");
        revisionsOf(await world.shard.commit(commitOf({ key, value, base: "absent" })));
        const entry = await readOne(world.other, key);
        expect(entry === undefined ? "none" : Buffer.compare(entry.value, value)).toBe(0);
      }
    });

    it("answers that it can't hold a value of 9 MiB, and stores nothing of the commit", async () => {
      const keys = [freshKey(), freshKey("b")] as const;
      const large = { key: keys[1], value: new Uint8Array(9 * 1024 * 1024), base: "absent" } as const;
      expect(await world.shard.commit(commitOf(put(keys[0], "1"), large))).toMatchObject({ kind: "unacceptable" });
      expect((await world.shard.read(keys, fresh)).size).toBe(0);
      revisionsOf(await world.shard.commit(commitOf(put(keys[0], "2"))));
    });

    it("stamps entries with the store's clock", async () => {
      const [first, second] = [await create(world.shard, freshKey(), "1"), await create(world.other, freshKey(), "2")];
      expect(Number.isInteger(first.at)).toBe(true);
      expect(second.at).toBeGreaterThanOrEqual(first.at);
    });

    it("lets an entry with a time to live vanish, and its key be created again", async () => {
      const key = freshKey("q");
      revisionsOf(await world.shard.commit(commitOf({ ...put(key, "short"), ttlMs: 1000 })));
      const kept = await create(world.shard, freshKey("q"), "kept");
      expect(text(await readOne(world.other, key))).toBe("short");
      world.opened.elapse?.(1000);
      await expect.poll(() => readOne(world.other, key), { timeout: 4000, interval: 50 }).toBeUndefined();
      expect(text(await readOne(world.shard, kept.key))).toBe("kept");
      expect((await create(world.shard, key, "again")).operations).toHaveLength(1);
    });
  });
}
