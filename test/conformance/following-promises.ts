import { describe, expect, it } from "vitest";
import { StoreUnavailable } from "../../src/store/store.ts";
import { Recorder } from "./recorder.ts";
import { commitOf, create, firstShard, freshKey, overwrite, put, readOne, revisionsOf } from "./store-steps.ts";
import type { World } from "./store-steps.ts";

/** What followers are told, and what a closed client still does. */
export function describeFollowing(world: World): void {
  describe("following", () => {
    it("delivers the latest of each key, says it is current, then goes on with what is committed", async () => {
      const first = await create(world.shard, freshKey(), "0");
      await overwrite(world.shard, first, 3);
      const second = await create(world.shard, freshKey(), "once");
      const recorder = new Recorder(world.other, ["w"]);
      await recorder.current();
      expect(recorder.values(first.key)).toEqual(["over 2"]);
      expect(recorder.values(second.key)).toEqual(["once"]);
      const third = await create(world.shard, freshKey(), "live");
      await overwrite(world.shard, second, 1);
      await recorder.until(() => recorder.values(second.key).length === 2);
      expect(recorder.values(third.key)).toEqual(["live"]);
      expect(recorder.entries.find((entry) => entry.key === third.key)).toEqual(third);
      await recorder.follower.stop();
    });

    it("delivers in order of revision and moves its cursor along", async () => {
      const recorder = new Recorder(world.other, ["w", "b"]);
      await recorder.current();
      const keys = Array.from({ length: 20 }, () => [freshKey(), freshKey("b")]);
      const outcomes = await Promise.all(
        keys.map(async (pair) => revisionsOf(await world.shard.commit(commitOf(...pair.map((key) => put(key, key)))))),
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
      const recorder = new Recorder(world.shard, ["z"]);
      await recorder.current();
      expect(recorder.entries).toEqual([]);
      await recorder.follower.stop();
    });

    it("delivers the families asked for, and no others", async () => {
      const recorder = new Recorder(world.shard, ["k", "n"]);
      await recorder.current();
      const keys = ["n", "b", "k", "w"].map((family) => freshKey(family));
      await world.shard.commit(commitOf(...keys.map((key) => put(key, key))));
      const last = await create(world.shard, freshKey("n"), "last");
      await recorder.until(() => recorder.values(last.key).length > 0);
      const followed = recorder.entries.map((entry) => entry.key).filter((key) => keys.includes(key));
      expect(followed).toEqual([keys[0], keys[2]]);
      expect(recorder.entries.every((entry) => /^[kn]\./.test(entry.key))).toBe(true);
      await recorder.follower.stop();
    });

    it("delivers nothing of a refused commit, and a repeated one once", async () => {
      const taken = await create(world.shard, freshKey(), "taken");
      const recorder = new Recorder(world.other, ["w"]);
      await recorder.current();
      const refused = freshKey();
      await world.shard.commit(commitOf(put(refused, "never"), put(taken.key, "never")));
      const commit = commitOf(put(freshKey(), "once"));
      await world.shard.commit(commit);
      await world.shard.commit(commit);
      const last = await create(world.shard, freshKey(), "last");
      await recorder.until(() => recorder.values(last.key).length > 0);
      expect(recorder.values(refused)).toEqual([]);
      expect(recorder.values(commit.puts[0]?.key ?? "")).toEqual(["once"]);
      await recorder.follower.stop();
    });

    it("serves several followers, each on its own", async () => {
      const recorders = [
        new Recorder(world.shard, ["w"]),
        new Recorder(world.other, ["w"]),
        new Recorder(world.other, ["b"]),
      ] as const;
      await Promise.all(recorders.map((recorder) => recorder.current()));
      await recorders[0].follower.stop();
      const heard = recorders[0].entries.length;
      const keys = [freshKey(), freshKey("b")] as const;
      await world.shard.commit(commitOf(put(keys[0], "1"), put(keys[1], "2")));
      await recorders[1].until(() => recorders[1].values(keys[0]).length > 0);
      await recorders[2].until(() => recorders[2].values(keys[1]).length > 0);
      expect(recorders[2].values(keys[0])).toEqual([]);
      expect(recorders[0].entries).toHaveLength(heard);
      await Promise.all(recorders.map((recorder) => recorder.follower.stop()));
    });
  });

  describe("a client that was closed", () => {
    it("is not reachable, reads reject as unavailable, commits are not taken, followers are silent", async () => {
      const closed = await world.opened.another();
      const shardClosed = firstShard(closed);
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
      await create(world.shard, freshKey(), "later");
      expect(recorder.entries).toHaveLength(heard);
      expect(await readOne(world.shard, key)).toBeUndefined();
    });
  });
}
