/**
 * Goal: answers that get lost on the way, or come from a server that no longer leads, never make a commit lie.
 * Method: one server behind a proxy that swallows answers, or puts forged ones before the real ones, exactly as a client
 * sees them while two servers both believe that they lead. A second client, connected directly, tells what is stored.
 */
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FaultProxy } from "../../cluster/proxy.ts";
import { utf8 } from "../../src/base/bytes.ts";
import { streamName } from "../../src/store/jetstream/bucket.ts";
import type { CommitReport } from "../../src/store/jetstream/committer.ts";
import type { JetstreamShard } from "../../src/store/jetstream/shard.ts";
import { OPERATION_RING } from "../../src/store/store.ts";
import type { Base, Commit, Entry, Put } from "../../src/store/store.ts";
import { ForgingProxy } from "./forging-proxy.ts";
import { StoreSetting, firstShard } from "./store-setting.ts";

let setting: StoreSetting;
let direct: JetstreamShard;
let counter = 0;

const unique = (name: string): string => `${name}${(counter += 1)}`;
const put = (key: string, value: string, base: Base = "absent"): Put => ({ key, value: utf8(value), base });
const commitOf = (...puts: Put[]): Commit => ({ operationId: unique("operation"), puts });
const text = (entry: Entry | undefined): string | undefined => entry && new TextDecoder().decode(entry.value);
const stored = async (key: string): Promise<Entry | undefined> => (await direct.read([key], { fresh: true })).get(key);

async function created(value = "0", base: Base = "absent", key = `w.${unique("key")}`): Promise<Entry> {
  const outcome = await direct.commit(commitOf(put(key, value, base)));
  expect(outcome.kind).toBe("committed");
  const entry = await stored(key);
  if (entry === undefined) throw new TypeError("not created");
  return entry;
}

const portOf = (): number => Number(new URL(setting.cluster.urls[0] ?? "").port);

beforeAll(async () => {
  setting = await StoreSetting.start({ servers: 1 });
  direct = firstShard(await setting.open({ epoch: "answers", storage: "memory" }));
});

afterAll(async () => {
  await setting.close();
});

describe("an answer that gets lost", () => {
  let proxy: FaultProxy;
  let shard: JetstreamShard;

  beforeAll(async () => {
    proxy = await FaultProxy.start({ target: portOf() });
    const servers = [`127.0.0.1:${proxy.port}`];
    const connection = { ignoreClusterUpdates: true };
    shard = firstShard(await setting.open({ epoch: "answers", storage: "memory", servers, connection }));
  });

  afterAll(async () => {
    await proxy.close();
  });

  /** Sends a commit whose answer is swallowed, waits until it is stored, does `meanwhile`, and mends the connection. */
  async function withoutAnswer(commit: Commit, meanwhile: () => Promise<void> = async () => undefined) {
    proxy.setMode("drop-to-client");
    const outcome = shard.commit(commit);
    const [first] = commit.puts;
    const base = first === undefined || first.base === "absent" ? 0 : first.base.revision;
    await expect.poll(async () => (await stored(first?.key ?? ""))?.revision ?? 0).toBeGreaterThan(base);
    await meanwhile();
    proxy.setMode("pass");
    proxy.cut();
    return outcome;
  }

  it("of one put is found out, and the put is not made twice", async () => {
    const entry = await created();
    const commit = commitOf(put(entry.key, "1", entry));
    const outcome = await withoutAnswer(commit);
    const now = await stored(entry.key);
    expect(outcome).toEqual({ kind: "committed", revisions: [now?.revision] });
    expect(now?.operations).toEqual([...entry.operations, commit.operationId]);
  });

  it("of several puts and an assertion is found out", async () => {
    const [left, asserted] = [await created(), await created()];
    const right = `b.${unique("key")}`;
    const asserts = [{ key: asserted.key, revision: asserted.revision }];
    const outcome = await withoutAnswer({ ...commitOf(put(left.key, "1", left), put(right, "1")), asserts });
    const revisions = [(await stored(left.key))?.revision, (await stored(right))?.revision];
    expect(outcome).toEqual({ kind: "committed", revisions });
  });

  it("is found out though others have written over it since", async () => {
    const entry = await created();
    const commit = commitOf(put(entry.key, "1", entry));
    const outcome = await withoutAnswer(commit, async () => {
      for (const value of ["2", "3"]) await created(value, await stored(entry.key), entry.key);
    });
    expect(outcome.kind).toBe("committed");
    const now = await stored(entry.key);
    expect(text(now)).toBe("3");
    expect(now?.operations.filter((id) => id === commit.operationId)).toHaveLength(1);
  });

  it("stays unknown when so many have written over it that nothing tells any more", async () => {
    const entry = await created();
    const outcome = await withoutAnswer(commitOf(put(entry.key, "1", entry)), async () => {
      for (let time = 0; time < OPERATION_RING + 2; time += 1)
        await created(`over ${time}`, await stored(entry.key), entry.key);
    });
    expect(outcome.kind).toBe("unknown");
  });

  it("of a commit that never reached the server, and can't any more, is a refusal", async () => {
    const entry = await created();
    proxy.setMode("drop-to-server");
    const outcome = shard.commit(commitOf(put(entry.key, "mine", entry)));
    await created("theirs", entry, entry.key);
    proxy.setMode("pass");
    proxy.cut();
    expect(await outcome).toEqual({ kind: "refused", newer: entry.key });
    expect(text(await stored(entry.key))).toBe("theirs");
  });

  it("of a batch that got lost on the way leads to a whole new batch", async () => {
    const keys = [`w.${unique("key")}`, `b.${unique("key")}`, `x.${unique("key")}`];
    proxy.setMode("drop-to-server");
    const outcome = shard.commit(commitOf(...keys.map((key) => put(key, "1"))));
    await direct.read(keys, { fresh: true });
    proxy.setMode("pass");
    proxy.cut();
    expect((await outcome).kind).toBe("committed");
    expect((await direct.read(keys, { fresh: true })).size).toBe(3);
  });

  it("with the server out of reach for good ends at the deadline, as unreached or unknown", async () => {
    proxy.setMode("refuse");
    proxy.cut();
    await expect
      .poll(() => shard.commit(commitOf(put(`w.${unique("key")}`, "1")), { deadlineMs: 100 }))
      .toMatchObject({
        kind: "unreached",
      });
    await expect(shard.read([`w.${unique("key")}`])).rejects.toMatchObject({ name: "StoreUnavailable" });
    proxy.setMode("pass");
    const commit = commitOf(put(`w.${unique("key")}`, "1"));
    expect((await shard.commit(commit)).kind).toBe("committed");
  });
});

describe("an answer of several messages of which one gets lost", () => {
  let proxy: ForgingProxy;
  let shard: JetstreamShard;

  beforeAll(async () => {
    proxy = await ForgingProxy.start(portOf());
    const servers = [`127.0.0.1:${proxy.port}`];
    const connection = { ignoreClusterUpdates: true };
    shard = firstShard(await setting.open({ epoch: "answers", storage: "memory", servers, connection }));
  });

  afterAll(async () => {
    await proxy.close();
  });

  /** The next message that tells what a key holds never arrives. */
  function loseOnce(key: string): () => number {
    let lost = 0;
    proxy.setLoss((message) => {
      const chosen = lost === 0 && message.includes(`Nats-Subject: $KV.mandate_answers_0.${key}\r\n`);
      if (chosen) lost += 1;
      return chosen;
    });
    return () => lost;
  }

  it.each(["first", "last"])("its %s entry, is not taken for one without that entry", async (place) => {
    const [one, two] = [await created("1"), await created("2")];
    const chosen = place === "first" ? one : two;
    for (const fresh of [true, false]) {
      const lost = loseOnce(chosen.key);
      const found = await shard.read([one.key, two.key], { fresh });
      expect(lost()).toBe(1);
      expect([...found.keys()].sort()).toEqual([one.key, two.key].sort());
    }
  });
});

describe("a refusal from a server that no longer leads", () => {
  let proxy: ForgingProxy;
  let shard: JetstreamShard;
  let reports: CommitReport[] = [];
  let forged = 0;

  beforeAll(async () => {
    proxy = await ForgingProxy.start(portOf());
    shard = firstShard(
      await setting.open({
        epoch: "answers",
        storage: "memory",
        servers: [`127.0.0.1:${proxy.port}`],
        connection: { ignoreClusterUpdates: true },
        onCommit: (report) => reports.push(report),
      }),
    );
  });

  afterEach(() => {
    proxy.setForge(() => undefined);
    reports = [];
    forged = 0;
  });

  afterAll(async () => {
    await proxy.close();
  });

  /** Puts a refusal before the next acknowledgement or real refusal of a write. */
  function forge(code: number, description: string): void {
    proxy.setForge((payload) => {
      if (forged > 0 || !/^\{"(stream|error)":/.test(payload)) return undefined;
      forged += 1;
      return JSON.stringify({
        error: { code: 400, err_code: code, description },
        stream: "KV_mandate_answers_0",
        seq: 0,
      });
    });
  }

  const refusals = [
    {
      says: "an older revision",
      code: 10071,
      description: (entry: Entry) => `wrong last sequence: ${entry.revision - 1}`,
    },
    { says: "no revision", code: 10164, description: () => "wrong last sequence" },
    { says: "nothing there", code: 10071, description: () => "wrong last sequence: 0" },
    { says: "a lack of space", code: 10077, description: () => "maximum bytes exceeded" },
    { says: "a lack of resources", code: 10023, description: () => "insufficient resources" },
    { says: "exhausted limits", code: 10002, description: () => "resource limits exceeded for account" },
    { says: "an incomplete batch", code: 10176, description: () => "atomic publish batch is incomplete" },
  ];

  it.each(refusals)("that names $says does not hide that the put landed", async ({ code, description }) => {
    const entry = await created();
    forge(code, description(entry));
    const commit = commitOf(put(entry.key, "1", entry));
    const outcome = await shard.commit(commit);
    const now = await stored(entry.key);
    expect(forged).toBe(1);
    expect(outcome).toEqual({ kind: "committed", revisions: [now?.revision] });
    expect(now?.operations).toEqual([...entry.operations, commit.operationId]);
  });

  it.each(refusals)("that names $says does not hide that a batch landed", async ({ code, description }) => {
    const [entry, asserted] = [await created(), await created()];
    const other = `b.${unique("key")}`;
    forge(code, description(entry));
    const asserts = [{ key: asserted.key, revision: asserted.revision }];
    const outcome = await shard.commit({ ...commitOf(put(entry.key, "1", entry), put(other, "1")), asserts });
    expect(forged).toBe(1);
    expect(outcome).toEqual({
      kind: "committed",
      revisions: [(await stored(entry.key))?.revision, (await stored(other))?.revision],
    });
  });

  it.each(refusals)(
    "that names $says does not turn a true refusal into anything else",
    async ({ code, description }) => {
      const entry = await created();
      await created("theirs", entry, entry.key);
      forge(code, description(entry));
      const outcome = await shard.commit(commitOf(put(entry.key, "mine", entry)));
      expect(forged).toBe(1);
      expect(outcome).toEqual({ kind: "refused", newer: entry.key });
      expect(text(await stored(entry.key))).toBe("theirs");
    },
  );

  it("is looked into with one question, not with a storm of repeats", async () => {
    const entry = await created();
    forge(10071, `wrong last sequence: ${entry.revision - 1}`);
    await shard.commit(commitOf(put(entry.key, "1", entry)));
    expect(reports).toMatchObject([{ outcome: "committed", attempts: 1 }]);
  });
});

describe("a store that is full", () => {
  it("tells no lie, and takes the commit as soon as there is space", async () => {
    const epoch = "full";
    const shard = firstShard(await setting.open({ epoch, storage: "memory" }));
    const nats = await connect({ servers: setting.cluster.urls });
    const { streams } = await jetstreamManager(nats, { checkAPI: false });
    const key = `w.${unique("key")}`;
    const large = { key, value: new Uint8Array(100_000), base: "absent" } as const;
    await streams.update(streamName(epoch, 0), { max_bytes: 50_000 });
    expect(await shard.commit(commitOf(large), { deadlineMs: 300 })).toMatchObject({ kind: "unknown" });
    expect(await shard.commit(commitOf(large, put("w.small", "1")), { deadlineMs: 300 })).toMatchObject({
      kind: "unknown",
    });
    expect((await shard.read([key, "w.small"], { fresh: true })).size).toBe(0);
    const waiting = shard.commit(commitOf(large));
    await streams.update(streamName(epoch, 0), { max_bytes: -1 });
    expect((await waiting).kind).toBe("committed");
    await nats.close();
  });
});
