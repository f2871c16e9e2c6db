/**
 * Goal: authorities over a real nats-server keep the same promises as over the store in memory, also with several shards.
 * Method: the suite of the authority, a server for each group of tests; then one cluster with three shards.
 */
import { describe, expect, it } from "vitest";
import { createTestCluster } from "../../src/testing.ts";
import { describeAuthority } from "../unit/authority/authority-suite.ts";
import { fenceOf, Scene } from "../unit/authority/stage.ts";

describeAuthority("JetStream", "jetstream");

describe("authorities over three shards of JetStream", () => {
  it("serve any number of applications, each from one shard, before and after a restart", async () => {
    const cluster = await createTestCluster({ nodes: 3, store: "jetstream", shards: 3 });
    try {
      const scenes = Array.from({ length: 9 }, () => new Scene({ cluster }));
      for (const scene of scenes) {
        const first = await scene.admitted();
        const { workloadId } = await scene.admitted({ dependencies: [{ workloadId: first.workloadId }] });
        const claim = await scene.b.claim(scene.claimArguments(first.workloadId, { start: true }));
        await scene.c.complete(scene.completeArguments(claim, { resultId: "same" }));
        const [next] = await scene.b.claimNext(scene.nextArguments({ requestId: "r" }));
        expect(next?.workloadId).toBe(workloadId);
        if (next !== undefined) await scene.c.start(fenceOf(next));
      }
      const [scene] = scenes;
      if (scene === undefined) return;
      await cluster.restart(scene.c);
      const all = await scene.c.list({ limit: 100 });
      expect(all.workloads).toHaveLength(18);
      expect(await scene.a.list({ limit: 100 })).toEqual(all);
      cluster.clock.advance(1_000_000_000_000);
      const told = (await Promise.all([scene.a.recoverExpired(), scene.c.recoverExpired()])).flat();
      expect(new Set(told).size).toBe(9);
      expect(told).toHaveLength(9);
    } finally {
      await cluster.close();
    }
  });
});
