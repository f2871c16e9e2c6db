/**
 * Goal: both implementations of the store port keep every promise of `store.ts` that can be seen without making faults.
 * Method: one suite, run over each; keys are fresh in every test, so that one store serves a whole group. Reads are fresh,
 * since an ordinary read may answer from the past.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { describeCommits } from "./commit-promises.ts";
import { describeContents } from "./content-promises.ts";
import { describeFollowing } from "./following-promises.ts";
import { describeReading } from "./reading-promises.ts";
import { Recorder } from "./recorder.ts";
import { create, firstShard, freshKey, present, readOne, text } from "./store-steps.ts";
import type { OpenedStore, World } from "./store-steps.ts";

export type OpenStore = (options: { readonly shards: number }) => Promise<OpenedStore>;

export function describeStore(name: string, open: OpenStore): void {
  describe(`the store port, ${name}`, () => {
    let opened: OpenedStore | undefined;
    let other: Store | undefined;

    beforeAll(async () => {
      opened = await open({ shards: 1 });
      other = await opened.another();
    }, 60_000);

    afterAll(async () => {
      await opened?.close();
    }, 60_000);

    const world: World = {
      get opened() {
        return present(opened);
      },
      get shard() {
        return firstShard(present(opened).store);
      },
      get other() {
        return firstShard(present(other));
      },
    };
    describeCommits(world);
    describeContents(world);
    describeReading(world);
    describeFollowing(world);
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
