/**
 * Goal: a view says when its node must not go on, and holds on to nothing that is gone.
 * Method: the view of the simulated store, whose entries a second client writes.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import { systemTimers } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { META_KEY, nodeKey } from "../../../src/store/keys.ts";
import { Projection } from "../../../src/store/projection/projection.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import type { Shard, Store } from "../../../src/store/store.ts";
import { encodeNodeHeartbeat, packValue } from "../../../src/wire/codec.ts";

let now: number;
let clients: Store[];
let view: Projection;
let writer: Shard;
let operations: number;

beforeEach(() => {
  now = 1_000_000;
  operations = 0;
  const log = new SimulatedLog({ clock: { now: () => now } });
  clients = [log.client(), log.client()];
  const [store, other] = clients;
  assert(store !== undefined && other?.shards[0] !== undefined, "there are two clients");
  writer = other.shards[0];
  const nothing = (): void => undefined;
  view = new Projection({
    store,
    log: silentLog,
    now: () => now,
    timers: systemTimers,
    onReady: nothing,
    onLater: nothing,
  });
  view.start();
});

afterEach(async () => {
  await view.stop();
  for (const client of clients) await client.close();
});

/** Writes a key whatever stands there, and waits until the view has seen it. */
async function write(key: string, value: Uint8Array): Promise<void> {
  const base = (await writer.read([key])).get(key) ?? "absent";
  const outcome = await writer.commit({ operationId: `operation-${(operations += 1)}`, puts: [{ key, value, base }] });
  assert(outcome.kind === "committed", "nobody else writes");
  expect(await view.waitFor(0, outcome.revisions[0] ?? 0, 5000)).toBe(true);
}

describe("the format of the store", () => {
  const metaOf = (bounds: object): Uint8Array =>
    packValue({ v: 1, formatVersion: 1, minReader: 1, minWriter: 1, ...bounds });

  it.each([
    ["a newer writer", metaOf({ minWriter: 2 })],
    ["a newer reader", metaOf({ minReader: 2 })],
    ["what this version can't read", packValue({ v: 2 })],
    ["no record at all", new Uint8Array([0xc1])],
  ])("keeps a node from going on that runs already, when it asks for %s", async (_what, meta) => {
    await write(META_KEY, metaOf({}));
    expect(view.obstacles()).toEqual([]);
    await write(META_KEY, meta);
    expect(view.obstacles()).toEqual(["shard 0 needs a program of a newer format"]);
    await write(META_KEY, metaOf({ formatVersion: 2 }));
    expect(view.obstacles()).toEqual([]);
  });
});

describe("nodes", () => {
  it("that came and went are forgotten", async () => {
    for (let index = 0; index < 100; index += 1) {
      now += 60_000;
      const nodeId = `node-${index}`;
      await write(nodeKey(nodeId), encodeNodeHeartbeat({ nodeId, instance: "i", wallMs: now, waiting: [], beat: 1 }));
    }
    expect([...view.nodes().keys()]).toEqual(Array.from({ length: 11 }, (_, index) => `node-${89 + index}`));
  });
});
