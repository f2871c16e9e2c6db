/**
 * Goal: a follower never goes silently blind: not when its consumer is deleted, when the last updates before a quiet
 * period are lost, when the connection breaks again and again, or when the server that delivers dies; and it leaves no
 * consumers behind. A stream that vanishes is reported and never made anew behind anyone's back.
 * Method: real servers, a fault proxy between one client and its server, and a second client that writes.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FaultProxy } from "../../cluster/proxy.ts";
import { jetstreamManager } from "@nats-io/jetstream";
import type { JetStreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { NatsConnection } from "@nats-io/nats-core";
import { utf8 } from "../../src/base/bytes.ts";
import { streamName } from "../../src/store/jetstream/bucket.ts";
import { CREATE_TIMEOUT_MS } from "../../src/store/jetstream/consumer.ts";
import type { JetstreamStore } from "../../src/store/jetstream/jetstream-store.ts";
import type { Shard } from "../../src/store/store.ts";
import { Recorder } from "../conformance/recorder.ts";
import { ForgingProxy } from "./forging-proxy.ts";
import { StoreSetting, firstShard } from "./store-setting.ts";

let counter = 0;
const unique = (name: string): string => `${name}${(counter += 1)}`;

async function create(shard: Shard, key = `w.${unique("key")}`): Promise<string> {
  const operationId = unique("operation");
  const outcome = await shard.commit({ operationId, puts: [{ key, value: utf8("1"), base: "absent" }] });
  expect(outcome.kind).toBe("committed");
  return key;
}

const heard = (recorder: Recorder, key: string) => (): boolean => recorder.values(key).length > 0;
const kinds = (recorder: Recorder): string[] => recorder.states.map(({ kind }) => kind);

async function consumerNames(management: JetStreamManager, stream: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of management.consumers.list(stream)) names.push(name);
  return names;
}

describe("on one server", () => {
  let setting: StoreSetting;
  let proxy: FaultProxy;
  let nats: NatsConnection;
  let management: JetStreamManager;
  let opened: JetstreamStore[] = [];
  let forgers: ForgingProxy[] = [];

  beforeAll(async () => {
    setting = await StoreSetting.start({ servers: 1 });
    proxy = await FaultProxy.start({ target: Number(new URL(setting.cluster.urls[0] ?? "").port) });
    nats = await connect({ servers: setting.cluster.urls });
    management = await jetstreamManager(nats, { checkAPI: false });
  });

  afterEach(async () => {
    proxy.setMode("pass");
    await Promise.all(opened.map((store) => store.close()));
    opened = [];
    await Promise.all(forgers.map((forging) => forging.close()));
    forgers = [];
  });

  afterAll(async () => {
    await nats.close();
    await setting.close();
    await proxy.close();
  });

  /** A client that writes directly, and one behind a proxy that follows. */
  async function open({ port }: { readonly port: number } = proxy) {
    const epoch = unique("follow");
    const writer = await setting.open({ epoch, storage: "memory" });
    const servers = [`127.0.0.1:${port}`];
    const connection = { ignoreClusterUpdates: true };
    const reader = await setting.open({ epoch, storage: "memory", servers, connection });
    opened.push(writer, reader);
    return { epoch, stream: streamName(epoch, 0), writer, reader };
  }

  /** The same with a proxy of their own that reads what passes. */
  async function openForged() {
    const forging = await ForgingProxy.start(Number(new URL(setting.cluster.urls[0] ?? "").port));
    forgers.push(forging);
    const { writer, reader } = await open(forging);
    return { forging, writer: firstShard(writer), reader: firstShard(reader) };
  }

  /** How many connections the server has taken since it started. */
  const connectionsMade = async (): Promise<number> => {
    const [server] = setting.cluster.servers;
    const response = await fetch(`${server?.monitorUrl}/varz`);
    return ((await response.json()) as { total_connections: number }).total_connections;
  };

  it("a consumer that somebody deletes is replaced, and nothing is missed or repeated", async () => {
    const { stream, writer, reader } = await open();
    const shard = firstShard(writer);
    const recorder = new Recorder(firstShard(reader), ["w"]);
    const before = await create(shard);
    await recorder.until(heard(recorder, before));
    for (const name of await consumerNames(management, stream)) await management.consumers.delete(stream, name);
    const after = await create(shard);
    await recorder.until(heard(recorder, after));
    await recorder.current();
    expect(recorder.entries.map(({ key }) => key)).toEqual([before, after]);
    expect(kinds(recorder)).not.toContain("reset");
    expect(recorder.follower.resets()).toBe(1);
    await recorder.follower.stop();
    expect(await consumerNames(management, stream)).toEqual([]);
  });

  it("updates that come twice are taken once, and following goes on as it was", async () => {
    const { forging, writer, reader } = await openForged();
    const recorder = new Recorder(reader, ["w"]);
    await recorder.current();
    forging.setRepeats((message) => /^H?MSG \$KV\.\S+ \d+ \$JS\.ACK\./.test(message));
    const keys = [await create(writer), await create(writer)];
    for (const key of keys) await recorder.until(heard(recorder, key));
    expect(recorder.entries.map(({ key }) => key)).toEqual(keys);
    expect(recorder.follower.resets()).toBe(0);
    await recorder.follower.stop();
  });

  it("a consumer that delivers is there, though the answer that says so was lost", async () => {
    const { forging, writer, reader } = await openForged();
    const keys = [await create(writer)];
    forging.setLoss((message) => message.includes("consumer_create_response"));
    const recorder = new Recorder(reader, ["w"]);
    await recorder.current();
    const began = performance.now();
    while (performance.now() - began < 2 * CREATE_TIMEOUT_MS) {
      keys.push(await create(writer));
      // So that the server is not left for answering nothing at all.
      await reader.read(keys.slice(-1));
    }
    const last = keys.at(-1) ?? "";
    await recorder.until(heard(recorder, last));
    expect(recorder.entries.map(({ key }) => key)).toEqual(keys);
    expect(kinds(recorder)).toEqual(["current"]);
    expect(recorder.follower.resets()).toBe(0);
    await recorder.follower.stop();
  });

  it("a server that goes on delivering but answers nothing is left", async () => {
    const { forging, writer, reader } = await openForged();
    const recorder = new Recorder(reader, ["w"]);
    await recorder.current();
    const before = await connectionsMade();
    forging.setLoss((message) => /^H?MSG _INBOX\./.test(message) && !message.includes("NATS/1.0 100"));
    const left = new AbortController();
    const writing = (async () => {
      while (!left.signal.aborted) await create(writer);
    })();
    while (!left.signal.aborted) {
      await reader.read(["w.any"]).catch(() => undefined);
      if ((await connectionsMade()) > before) left.abort();
    }
    await writing;
    forging.setLoss(() => false);
    const key = await create(writer);
    await recorder.until(heard(recorder, key));
    await recorder.follower.stop();
  });

  it("updates that get lost right before a quiet period arrive within seconds all the same", async () => {
    const { writer, reader } = await open();
    const shard = firstShard(writer);
    const recorder = new Recorder(firstShard(reader), ["w"]);
    await recorder.until(heard(recorder, await create(shard)));
    proxy.setMode("drop-to-client");
    const lost = [await create(shard), await create(shard), await create(shard)];
    proxy.setMode("pass");
    proxy.cut();
    const cutAt = performance.now();
    for (const key of lost) await recorder.until(heard(recorder, key));
    expect(performance.now() - cutAt).toBeLessThan(5000);
    await recorder.follower.stop();
  });

  it("a storm of interruptions leaves no pile of consumers, and ends current", async () => {
    const { stream, writer, reader } = await open();
    const shard = firstShard(writer);
    const recorder = new Recorder(firstShard(reader), ["w"]);
    await recorder.current();
    let most = 0;
    for (let cut = 0; cut < 25; cut += 1) {
      proxy.setMode("drop-to-client");
      await create(shard);
      proxy.setMode("pass");
      proxy.cut();
      await firstShard(reader).read(["w.any"]);
      most = Math.max(most, (await consumerNames(management, stream)).length);
    }
    const last = await create(shard);
    await recorder.until(heard(recorder, last));
    await recorder.until(() => recorder.states.at(-1)?.kind === "current");
    expect(new Set(recorder.entries.map(({ key }) => key)).size).toBe(26);
    expect(most).toBeLessThanOrEqual(2);
    expect(await consumerNames(management, stream)).toHaveLength(1);
    await reader.close();
    expect(await consumerNames(management, stream)).toEqual([]);
  });

  it("a follower that began while the store was out of reach delivers when it is back", async () => {
    const { writer, reader } = await open();
    const key = await create(firstShard(writer));
    proxy.setMode("refuse");
    proxy.cut();
    await expect.poll(() => reader.reachable()).toBe(false);
    const recorder = new Recorder(firstShard(reader), ["w"]);
    await recorder.until(() => kinds(recorder).includes("interrupted"));
    proxy.setMode("pass");
    await recorder.until(heard(recorder, key));
    await recorder.follower.stop();
  });

  it("a stream that vanishes is told of, answers nothing, and is not made anew by anyone who uses it", async () => {
    const { epoch, stream, writer, reader } = await open();
    const shard = firstShard(writer);
    for (let count = 0; count < 5; count += 1) await create(shard);
    const key = await create(shard);
    const recorder = new Recorder(firstShard(reader), ["w"]);
    await recorder.until(heard(recorder, key));
    await management.streams.delete(stream);
    const commit = {
      operationId: unique("operation"),
      puts: [{ key: "w.new", value: utf8("1"), base: "absent" }],
    } as const;
    expect(await shard.commit(commit, { deadlineMs: 500 })).toMatchObject({ kind: "unreached" });
    const reads = [shard.read([key]), shard.read([key, "w.other"]), shard.read([key], { fresh: true })];
    for (const read of await Promise.allSettled(reads))
      expect(read).toMatchObject({ status: "rejected", reason: { name: "StoreUnavailable" } });
    await recorder.until(() => kinds(recorder).includes("missing"));
    await expect(management.streams.info(stream)).rejects.toMatchObject({ code: 10059 });

    const anew = await setting.open({ epoch, storage: "memory" });
    const other = await create(firstShard(anew));
    await recorder.until(heard(recorder, other));
    expect(kinds(recorder)).toContain("reset");
    // What was known of the old stream does not make the new one look old.
    expect([...(await firstShard(reader).read([other, key])).keys()]).toEqual([other]);
    await recorder.follower.stop();
  });

  it("100,000 entries of 1 KiB are delivered in seconds, with progress on the way", async () => {
    const { writer } = await open();
    const shard = firstShard(writer);
    const value = new Uint8Array(1024);
    const batches = Array.from({ length: 200 }, (_, batch) => ({
      operationId: unique("load"),
      puts: Array.from({ length: 500 }, (__, index) => ({
        key: `w.load.${batch}-${index}`,
        value,
        base: "absent" as const,
      })),
    }));
    for (const batch of batches) expect((await shard.commit(batch)).kind).toBe("committed");
    const startedAt = performance.now();
    let entries = 0;
    const pending: number[] = [];
    await new Promise<void>((resolve) => {
      shard.follow({
        families: ["w"],
        onEntry: () => {
          entries += 1;
        },
        onState: (state) => {
          if (state.kind === "loading") pending.push(state.pending);
          if (state.kind === "current") resolve();
        },
      });
    });
    expect(entries).toBe(100_000);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(pending.length).toBeGreaterThan(5);
    expect(pending).toEqual([...pending].sort((left, right) => right - left));
  });

  it("a slow machine that loads much does not take its server for dead, though answers queue behind what is delivered", async () => {
    const epoch = unique("slow");
    const writer = await setting.open({ epoch, storage: "memory" });
    const reader = await setting.open({ epoch, storage: "memory" });
    opened.push(writer, reader);
    const value = new Uint8Array(1024);
    for (let batch = 0; batch < 60; batch += 1) {
      const puts = Array.from({ length: 100 }, (_, index) => ({
        key: `w.slow.${batch}-${index}`,
        value,
        base: "absent" as const,
      }));
      expect((await firstShard(writer).commit({ operationId: unique("slow"), puts })).kind).toBe("committed");
    }
    const before = await connectionsMade();
    let entries = 0;
    const states: string[] = [];
    const shard = firstShard(reader);
    const follower = shard.follow({
      families: ["w"],
      onEntry: () => {
        entries += 1;
        const until = performance.now() + 1;
        while (performance.now() < until);
      },
      onState: ({ kind }) => {
        states.push(kind);
      },
    });
    // A question may well be given up meanwhile; it is no reason to leave.
    while (states.at(-1) !== "current") await shard.read(["w.slow.0-0"]).catch(() => undefined);
    expect(entries).toBe(6000);
    expect(follower.resets()).toBe(0);
    expect(await connectionsMade()).toBe(before);
    await follower.stop();
  });
});

describe("on three servers", () => {
  it("the death of the server that delivers interrupts following for seconds, not minutes", async () => {
    const setting = await StoreSetting.start({ servers: 3 });
    try {
      const epoch = unique("dies");
      const { servers } = setting.cluster;
      const recorders: Recorder[] = [];
      for (const server of servers) {
        const store = await setting.open({ epoch, servers: [server.url], connection: { ignoreClusterUpdates: true } });
        const recorder = new Recorder(firstShard(store), ["w"]);
        await recorder.current();
        recorders.push(recorder);
      }
      const writer = firstShard(await setting.open({ epoch }));
      const first = await create(writer);
      await Promise.all(recorders.map((recorder) => recorder.until(heard(recorder, first))));
      const leader = await setting.cluster.waitLeader(streamName(epoch, 0));
      await leader.kill("SIGKILL");
      const living = recorders.filter((_, index) => servers[index] !== leader);
      const operation = {
        operationId: unique("operation"),
        puts: [{ key: "w.late", value: utf8("1"), base: "absent" }],
      } as const;
      expect((await writer.commit(operation, { deadlineMs: 30_000 })).kind).toBe("committed");
      const committedAt = performance.now();
      await Promise.all(living.map((recorder) => recorder.until(heard(recorder, "w.late"))));
      expect(performance.now() - committedAt).toBeLessThan(8000);
    } finally {
      await setting.close();
    }
  });
});
