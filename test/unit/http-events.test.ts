/**
 * Goal: a client that follows changes learns of every workload's latest state, wherever and however often it was cut
 * off, and a client that does not read costs a bounded amount.
 * Method: the application over an authority in this process; the stream is read by hand.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assert } from "../../src/base/assert.ts";
import { poll } from "../../cluster/poll.ts";
import type { Authority } from "../../src/testing.ts";
import { Registry } from "prom-client";
import { silentLog } from "../../src/base/log.ts";
import { createHttpApp } from "../../src/http/app.ts";
import { World } from "./authority/virtual-world.ts";
import { admission, openHttp, refusalOf, type HttpSetting } from "./http-setting.ts";

interface SentEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: { readonly workloadId: string; readonly state: string; readonly revision: number } | undefined;
  readonly comment: boolean;
}

/** Reads server-sent events, one block at a time. */
class EventReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";
  lastId: string | undefined;

  constructor(response: Response) {
    assert(response.body !== null, "an event stream has a body");
    this.#reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  }

  /** The next block; `undefined` at the end. */
  async block(): Promise<SentEvent | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const lines = this.#text.slice(0, end).split("\n");
        this.#text = this.#text.slice(end + 2);
        const field = (name: string): string | undefined =>
          lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
        const data = field("data");
        this.lastId = field("id") ?? this.lastId;
        return {
          id: field("id"),
          event: field("event"),
          data: data === undefined ? undefined : (JSON.parse(data) as NonNullable<SentEvent["data"]>),
          comment: lines.some((line) => line.startsWith(":")),
        };
      }
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      this.#text += this.#decoder.decode(value, { stream: true });
    }
  }

  /** The next `count` events with data. */
  async events(count: number): Promise<readonly SentEvent[]> {
    const events: SentEvent[] = [];
    while (events.length < count) {
      const block = await this.block();
      assert(block !== undefined, "the stream ended early");
      if (block.data !== undefined) events.push(block);
    }
    return events;
  }

  close(): Promise<void> {
    return this.#reader.cancel();
  }
}

let http: HttpSetting;
let node: Authority;
const stopping = { controller: new AbortController() };

const open = async (options: Parameters<typeof openHttp>[0]): Promise<void> => {
  stopping.controller = new AbortController();
  http = await openHttp({ ...options, stopping: stopping.controller.signal });
  const [first] = http.cluster.nodes;
  assert(first !== undefined, "a cluster has a node");
  node = first;
};

beforeEach(() => open({}));
afterEach(() => http.close());

const follow = async (query = "", headers: Record<string, string> = {}): Promise<EventReader> => {
  const response = await http.get(`/v1/events${query}`, headers);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  return new EventReader(response);
};

async function admit(changes: object = {}): Promise<string> {
  const { workload } = (await (await http.post("/v1/workloads", admission(changes))).json()) as {
    workload: { workloadId: string };
  };
  return workload.workloadId;
}

const openStreams = async (): Promise<string> =>
  (await http.registry.getSingleMetricAsString("mandate_http_event_streams")).split("\n").at(-1) ?? "";

describe("following", () => {
  test("tells every change as it is committed, in order", async () => {
    const reader = await follow();
    const id = await admit();
    const claim = await node.claim({ workloadId: id, workerId: "w", leaseMs: 1000 });
    await node.start({ workloadId: id, workerId: "w", claimId: claim.claimId, fencingToken: claim.fencingToken });
    const events = await reader.events(3);
    expect(events.map(({ event, data }) => [event, data?.workloadId, data?.state])).toEqual([
      ["workload.ready", id, "READY"],
      ["workload.claimed", id, "CLAIMED"],
      ["workload.started", id, "RUNNING"],
    ]);
    expect(events.map(({ data }) => String(data?.revision))).toEqual(events.map((event) => event.id));
    await reader.close();
  });

  test("says where it begins before anything happens, so that a client cut off early misses nothing", async () => {
    const reader = await follow();
    const greeting = await reader.block();
    expect(greeting).toMatchObject({ event: undefined, data: undefined });
    await reader.close();
    const id = await admit();
    const again = await follow("", { "Last-Event-ID": greeting?.id ?? "" });
    expect((await again.events(1))[0]?.data).toMatchObject({ workloadId: id });
    await again.close();
  });

  test("resumes with the latest change of each workload that was missed, then goes on live", async () => {
    const reader = await follow();
    const first = await admit({ idempotencyKey: "a" });
    const [seen] = await reader.events(1);
    await reader.close();
    const second = await admit({ idempotencyKey: "b" });
    await node.cancel({ workloadId: first, actor: "x" });
    const again = await follow(`?Last-Event-ID=${seen?.id ?? ""}`);
    const third = await admit({ idempotencyKey: "c" });
    expect((await again.events(3)).map(({ data }) => [data?.workloadId, data?.state])).toEqual([
      [second, "READY"],
      [first, "CANCELLED"],
      [third, "READY"],
    ]);
    await again.close();
  });

  test("from the very beginning gives every workload's state, also when there are very many", async () => {
    const ids = [];
    for (let index = 0; index < 600; index++) ids.push(await admit({ idempotencyKey: `k${index}` }));
    const reader = await follow("?Last-Event-ID=0");
    expect((await reader.events(600)).map(({ data }) => data?.workloadId)).toEqual(ids);
    await reader.close();
  });

  test("filters by tenant, application, workload and state", async () => {
    const wanted = await admit({ idempotencyKey: "a" });
    const readers = await Promise.all(
      ["?tenantId=acme", "?applicationId=shop", `?workloadId=${wanted}`, "?state=CANCELLED&state=REJECTED"].map(
        (query) => follow(query),
      ),
    );
    await admit({ tenantId: "other", applicationId: "other" });
    await node.cancel({ workloadId: wanted, actor: "x" });
    for (const reader of readers) {
      expect((await reader.events(1))[0]?.data).toMatchObject({ workloadId: wanted, state: "CANCELLED" });
      await reader.close();
    }
  });

  test.each([
    ["?state=DONE", "state[0]"],
    ["?tenantId=", "tenantId"],
    ["?since=1", "since"],
    ["?Last-Event-ID=x", "Last-Event-ID"],
    ["?Last-Event-ID=1.2", "Last-Event-ID"],
    ["?Last-Event-ID=-1", "Last-Event-ID"],
  ])("refuses %s", async (query, path) =>
    expect(await refusalOf(await http.get(`/v1/events${query}`))).toEqual([400, "WORKLOAD_INVALID", [path]]),
  );
});

describe("bounds", () => {
  test("a stream is silent for a bounded time, and moves the client on past what was not for it", async () => {
    await http.close();
    await open({ config: { keepAliveMs: 20 } });
    const reader = await follow("?tenantId=nobody");
    const greeting = await reader.block();
    await admit();
    const moved = await poll(
      async () => {
        const block = await reader.block();
        expect(block?.comment).toBe(true);
        return Number(block?.id) > Number(greeting?.id) ? true : undefined;
      },
      { timeoutMs: 10_000 },
    );
    expect(moved).toBe(true);
    await reader.close();
  });

  test("a client that does not read is cut off at a bound, and resumes without loss", async () => {
    await http.close();
    await open({ config: { eventBacklogMax: 10 } });
    const reader = await follow();
    const ids = [];
    for (let index = 0; index < 40; index++) ids.push(await admit({ idempotencyKey: `k${index}` }));
    const seen = new Set<string>();
    for (let block = await reader.block(); block !== undefined; block = await reader.block())
      if (block.data !== undefined) seen.add(block.data.workloadId);
    expect(seen.size).toBeLessThan(40);
    expect(await openStreams()).toBe("mandate_http_event_streams 0");
    const again = await follow("", { "Last-Event-ID": reader.lastId ?? "" });
    for (const { data } of await again.events(40 - seen.size)) if (data !== undefined) seen.add(data.workloadId);
    expect([...seen].sort()).toEqual(ids.sort());
    await again.close();
  });

  test("streams are bounded in number, and one that ends makes room", async () => {
    await http.close();
    await open({ config: { eventStreamsMax: 1 } });
    const reader = await follow();
    expect(await refusalOf(await http.get("/v1/events"))).toEqual([429, "AUTHORITY_OVERLOADED"]);
    await reader.close();
    await (await follow()).close();
    expect(await openStreams()).toBe("mandate_http_event_streams 0");
  });

  test("a client that is ahead of this node waits for it, and is sent elsewhere when it does not come", async () => {
    await http.close();
    await open({ config: { minRevisionWaitMs: 20 } });
    expect(await refusalOf(await http.get("/v1/events", { "Last-Event-ID": "99" }))).toEqual([
      503,
      "AUTHORITY_NOT_READY",
    ]);
  });

  test("streams end when the server stops", async () => {
    const reader = await follow();
    await reader.block();
    stopping.controller.abort();
    expect(await reader.block()).toBeUndefined();
    const late = await follow();
    expect(await late.block()).toBeUndefined();
  });
});

test("with several shards an id holds the revision of each, and resuming loses none of them", async () => {
  await http.close();
  await open({ shards: 3 });
  const reader = await follow();
  const ids = new Set<string>();
  for (let index = 0; index < 12; index++) ids.add(await admit({ tenantId: `t${index}` }));
  const seen = (await reader.events(5)).map(({ data }) => data?.workloadId);
  await reader.close();
  expect(reader.lastId).toMatch(/^\d+\.\d+\.\d+$/);
  const again = await follow("", { "Last-Event-ID": reader.lastId ?? "" });
  const rest = (await again.events(7)).map(({ data }) => data?.workloadId);
  expect(new Set([...seen, ...rest])).toEqual(ids);
  await again.close();
});

test("a node whose view is not there yet does not tell the past as if it were the present", async () => {
  const world = new World();
  const node = world.node("n1");
  const app = createHttpApp({ authority: node.authority, log: silentLog, metrics: new Registry() });
  const follow = async (): Promise<Response> =>
    app.request("/v1/events", { headers: { "X-Mandate-Subject": "human:alice" } });
  const refused = await follow();
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refusalOf(refused)).toEqual([503, "AUTHORITY_NOT_READY"]);
  await node.becomeReady();
  const response = await follow();
  expect(response.status).toBe(200);
  await response.body?.cancel();
});
