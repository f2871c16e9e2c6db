/**
 * Goal: a store is made whole or not at all, is never taken for another one, and what was lost is never papered over.
 * Method: stores are opened with options that do not fit, and after streams were altered or deleted by hand.
 */
import { jetstreamManager } from "@nats-io/jetstream";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { pack } from "msgpackr";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { streamName, streamSettings, subjectPrefix } from "../../src/store/jetstream/bucket.ts";
import { openJetstreamStore } from "../../src/store/jetstream/jetstream-store.ts";
import { StoreSetting } from "./store-setting.ts";

let setting: StoreSetting;
let nats: NatsConnection;
let management: JetStreamManager;
let counter = 0;
const freshEpoch = (): string => `open${(counter += 1)}`;

beforeAll(async () => {
  setting = await StoreSetting.start({ servers: 1 });
  nats = await connect({ servers: setting.cluster.urls });
  management = await jetstreamManager(nats, { checkAPI: false });
});

afterAll(async () => {
  await nats.close();
  await setting.close();
});

const memory = { storage: "memory" } as const;

const exists = (stream: string): Promise<boolean> =>
  management.streams.info(stream).then(
    () => true,
    () => false,
  );

describe("making a store", () => {
  it("makes every shard with the settings that the commit protocol needs, and says what it is", async () => {
    const epoch = freshEpoch();
    const store = await setting.open({ epoch, shards: 3, storage: "file" });
    expect(store.meta).toMatchObject({ formatVersion: 1, minReader: 1, minWriter: 1, shards: 3, epoch });
    for (const shard of [0, 1, 2])
      expect((await management.streams.info(streamName(epoch, shard))).config).toMatchObject({
        allow_atomic: true,
        allow_msg_ttl: true,
        allow_direct: true,
        deny_delete: true,
        discard: "new",
        max_msgs_per_subject: 1,
        num_replicas: 1,
        storage: "file",
      });
  });

  it("meets on one store when several nodes make it at the same moment", async () => {
    const epoch = freshEpoch();
    const stores = await Promise.all(Array.from({ length: 5 }, () => setting.open({ epoch, shards: 3, ...memory })));
    expect(new Set(stores.map(({ meta }) => meta.createdAt)).size).toBe(1);
  });

  it("does not make one unless it is asked to", async () => {
    const epoch = freshEpoch();
    await expect(setting.open({ epoch, create: false, ...memory })).rejects.toMatchObject({ reason: "absent" });
    expect(await exists(streamName(epoch, 0))).toBe(false);
  });

  it("completes a creation that was cut short", async () => {
    const epoch = freshEpoch();
    const options = { epoch, shards: 2, replicas: 1, storage: "memory" } as const;
    await management.streams.add(streamSettings(options, 0));
    await expect(setting.open({ ...options, create: false })).rejects.toMatchObject({ reason: "absent" });
    const store = await setting.open(options);
    expect(store.shards).toHaveLength(2);
    expect((await setting.open({ ...options, create: false })).meta).toEqual(store.meta);
  });

  it.each([{ epoch: "a.b" }, { epoch: "" }, { shards: 0 }, { shards: 1.5 }, { replicas: 2 }, { history: 0 }])(
    "refuses impossible options: %o",
    async (wrong) => {
      const opening = setting.open({ epoch: freshEpoch(), ...memory, ...wrong });
      await expect(opening).rejects.toMatchObject({ reason: "options-invalid" });
    },
  );

  it("says that the store is unavailable when no server can be reached", async () => {
    const opening = openJetstreamStore({
      servers: ["127.0.0.1:1"],
      epoch: "none",
      shards: 1,
      replicas: 1,
      storage: "memory",
      create: true,
      clientId: "nobody",
      openTimeoutMs: 300,
    });
    await expect(opening).rejects.toMatchObject({ name: "StoreUnavailable" });
  });
});

describe("opening a store that is there", () => {
  it.each([
    { setting: "allow_atomic", change: { allow_atomic: false } },
    { setting: "allow_direct", change: { allow_direct: false } },
    { setting: "discard", change: { discard: "old" as never } },
    { setting: "allow_rollup_hdrs", change: { allow_rollup_hdrs: true } },
    { setting: "max_msg_size", change: { max_msg_size: 1024 } },
    { setting: "duplicate_window", change: { duplicate_window: 1_000_000_000 } },
    { setting: "max_age", change: { max_age: 3_600_000_000_000 } },
    { setting: "max_msgs", change: { max_msgs: 10_000 } },
  ])("refuses another $setting by its name", async ({ setting: name, change }) => {
    const epoch = freshEpoch();
    await setting.open({ epoch, ...memory });
    await management.streams.update(streamName(epoch, 0), change);
    await expect(setting.open({ epoch, ...memory })).rejects.toMatchObject({
      reason: "setting-differs",
      details: { setting: name },
    });
  });

  it("takes more than it asks for where that does no harm", async () => {
    const epoch = freshEpoch();
    await setting.open({ epoch, ...memory });
    await management.streams.update(streamName(epoch, 0), {
      duplicate_window: 240_000_000_000,
      max_bytes: 1_000_000_000,
    });
    expect((await setting.open({ epoch, ...memory })).shards).toHaveLength(1);
  });

  it("refuses another storage, another number of replicas or revisions kept", async () => {
    const epoch = freshEpoch();
    await setting.open({ epoch, ...memory, history: -1 });
    await expect(setting.open({ epoch, storage: "file" })).rejects.toMatchObject({ details: { setting: "storage" } });
    await expect(setting.open({ epoch, ...memory, history: 1 })).rejects.toMatchObject({
      details: { setting: "max_msgs_per_subject" },
    });
    expect((await setting.open({ epoch, ...memory })).shards).toHaveLength(1);
  });

  it.each([
    { made: 3, asked: 1 },
    { made: 1, asked: 3 },
  ])("made with $made shards, refuses to be opened with $asked", async ({ made, asked }) => {
    const epoch = freshEpoch();
    await setting.open({ epoch, shards: made, ...memory });
    await expect(setting.open({ epoch, shards: asked, ...memory })).rejects.toMatchObject({
      reason: "layout-differs",
      details: { setting: "shards", found: made, wanted: asked },
    });
    expect(await exists(streamName(epoch, Math.max(made, asked) - 1))).toBe(made > asked);
  });

  it("refuses when a shard was lost, and does not make an empty one in its place", async () => {
    const epoch = freshEpoch();
    await setting.open({ epoch, shards: 3, ...memory });
    await management.streams.delete(streamName(epoch, 1));
    await expect(setting.open({ epoch, shards: 3, ...memory })).rejects.toMatchObject({
      reason: "shards-missing",
      details: { missing: [streamName(epoch, 1)] },
    });
    expect(await exists(streamName(epoch, 1))).toBe(false);
  });

  it.each([
    { what: "a newer writer", record: { minWriter: 2 } },
    { what: "a newer reader", record: { minReader: 2 } },
    { what: "another shape", record: { v: 2 } },
    { what: "no shape at all", record: { minReader: "1" } },
  ])("refuses a format record that needs $what", async ({ record }) => {
    const epoch = freshEpoch();
    await management.streams.add(streamSettings({ epoch, shards: 1, replicas: 1, ...memory }, 0));
    const meta = { v: 1, formatVersion: 2, minReader: 1, minWriter: 1, shards: 1, epoch, createdAt: 1, ...record };
    await nats.request(`${subjectPrefix(epoch, 0)}m.meta`, pack(meta));
    await expect(setting.open({ epoch, ...memory })).rejects.toMatchObject({ reason: "format-unsupported" });
  });

  it("opens a newer format that still lets this program read and write", async () => {
    const epoch = freshEpoch();
    await management.streams.add(streamSettings({ epoch, shards: 1, replicas: 1, ...memory }, 0));
    const meta = { v: 1, formatVersion: 2, minReader: 1, minWriter: 1, shards: 1, epoch, createdAt: 1, more: true };
    await nats.request(`${subjectPrefix(epoch, 0)}m.meta`, pack(meta));
    expect((await setting.open({ epoch, ...memory })).meta.formatVersion).toBe(2);
  });

  it("refuses a stream of that name that holds what is not its own", async () => {
    const epoch = freshEpoch();
    await management.streams.add(streamSettings({ epoch, shards: 1, replicas: 1, ...memory }, 0));
    await nats.request(`${subjectPrefix(epoch, 0)}w.foreign`, "1");
    await expect(setting.open({ epoch, ...memory })).rejects.toMatchObject({ reason: "layout-differs" });
  });
});
