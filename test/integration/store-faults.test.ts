/**
 * Goal: whatever happens to the servers, no acknowledged commit is lost, none is applied twice, and no answer is a lie.
 * Method: a ledger writes to hot keys of three servers that sync every write, through three clients, while a server is
 * killed or paused, or all are restarted; then what is stored is held against every answer. Followers that ran all
 * through must end with what is stored.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { poll } from "../../cluster/poll.ts";
import { streamName } from "../../src/store/jetstream/bucket.ts";
import type { JetstreamStore } from "../../src/store/jetstream/jetstream-store.ts";
import type { Shard } from "../../src/store/store.ts";
import { Recorder } from "../conformance/recorder.ts";
import { Ledger } from "./ledger.ts";
import { StoreSetting, firstShard } from "./store-setting.ts";

const WRITERS = 9;
const seed = Number(process.env["MANDATE_TEST_SEED"] ?? 20_260_801);

/** The newest revision of each key that a follower was told. */
const heard = (recorder: Recorder): Record<string, number> =>
  Object.fromEntries(recorder.entries.map(({ key, revision }) => [key, revision]));

async function stored(shard: Shard, keys: readonly string[]): Promise<Record<string, number>> {
  const entries = await shard.read(keys, { fresh: true });
  return Object.fromEntries([...entries].map(([key, { revision }]) => [key, revision]));
}

describe("three servers under load", () => {
  let setting: StoreSetting;
  let stores: readonly JetstreamStore[];
  let recorders: readonly Recorder[];
  let ledger: Ledger;
  let epochs = 0;

  const leader = () => setting.cluster.waitLeader(streamName(`faults${epochs}`, 0));
  const commits = async (more: number): Promise<void> => {
    const wanted = ledger.committed() + more;
    await expect.poll(() => ledger.committed(), { timeout: 40_000, interval: 20 }).toBeGreaterThanOrEqual(wanted);
  };

  beforeAll(async () => {
    setting = await StoreSetting.start({ servers: 3, sync: "always" });
  });

  afterAll(async () => {
    await setting.close();
  });

  const begin = async (): Promise<void> => {
    epochs += 1;
    const open = () => setting.open({ epoch: `faults${epochs}` });
    stores = [await open(), await open(), await open()];
    const shards = stores.map(firstShard);
    recorders = shards.map((shard) => new Recorder(shard, ["w"]));
    ledger = new Ledger(shards, seed + epochs);
    ledger.start(WRITERS);
    await commits(200);
  };

  /** Ends the load, and holds everything against everything. */
  const settle = async () => {
    await ledger.stop();
    const [store] = stores;
    if (store === undefined) throw new TypeError("no store is open");
    const shard = firstShard(store);
    const summary = await ledger.verify(shard);
    for (const recorder of recorders) {
      const truth = await stored(shard, Object.keys(heard(recorder)));
      await expect.poll(() => heard(recorder), { timeout: 10_000 }).toEqual(truth);
      expect(Object.keys(truth)).toHaveLength(24);
    }
    expect(summary.refused).toBeGreaterThan(0);
    return summary;
  };

  afterEach(async () => {
    await ledger.stop();
    await Promise.all(stores.map((store) => store.close()));
  });

  it("keeps its word when the stream's leader is paused for three seconds", async () => {
    await begin();
    const paused = await leader();
    await paused.pause();
    const resumed = poll(() => undefined, { timeoutMs: 3000 }).then(() => paused.resume());
    await resumed;
    await commits(300);
    expect((await settle()).unknown).toBe(0);
  });

  it("keeps its word when the stream's leader is killed", async () => {
    await begin();
    const killed = await leader();
    await killed.kill("SIGKILL");
    await commits(300);
    await setting.cluster.restart(killed);
    await commits(100);
    expect((await settle()).unknown).toBe(0);
  });

  it("keeps its word when all servers are killed and started again", async () => {
    await begin();
    await setting.cluster.killAll();
    expect(await poll(() => stores.every((store) => !store.reachable()) || undefined, { timeoutMs: 5000 })).toBe(true);
    await Promise.all(setting.cluster.servers.map((server) => server.start()));
    await setting.cluster.waitReady();
    await commits(300);
    expect((await settle()).unknown).toBe(0);
  });
});
