/**
 * Goal: the HTTP door keeps its promises over real connections: bodies are refused before they are read, what is no
 * HTTP gets a problem document too, streams end when they must, a stop finishes what is under way, and a store that goes
 * away and comes back is told and survived.
 * Method: real servers on free ports; raw sockets where a client library would be too polite; a real nats-server that is
 * killed and started again.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Registry } from "prom-client";
import { afterEach, describe, expect, test } from "vitest";
import { poll } from "../../cluster/poll.ts";
import { assert } from "../../src/base/assert.ts";
import { silentLog } from "../../src/base/log.ts";
import { startHttpServer, type HttpServer, type HttpServerOptions } from "../../src/http/server.ts";
import { Authority, createTestCluster, type TestCluster } from "../../src/testing.ts";
import { StoreSetting } from "./store-setting.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(
  authority: Authority,
  options: Partial<Pick<HttpServerOptions, "config" | "metrics">> = {},
): Promise<HttpServer> {
  const server = await startHttpServer({ authority, log: silentLog, metrics: new Registry(), port: 0, ...options });
  closers.push(() => server.stop(0));
  return server;
}

async function startCluster(nodes: number): Promise<TestCluster> {
  const cluster = await createTestCluster({ nodes, now: 10_000 });
  closers.push(() => cluster.close());
  return cluster;
}

async function serveOne(options: Partial<Pick<HttpServerOptions, "config" | "metrics">> = {}): Promise<HttpServer> {
  const [node] = (await startCluster(1)).nodes;
  assert(node !== undefined, "a cluster has a node");
  return serve(node, options);
}

const subject = { "X-Mandate-Subject": "human:alice" };
const admission = (changes: object = {}): string =>
  JSON.stringify({
    tenantId: "acme",
    applicationId: "shop",
    environment: "test",
    definitionId: "resize",
    definitionRevision: "1",
    trigger: "test",
    input: { size: 3 },
    idempotencyKey: "key-1",
    ...changes,
  });
const post = (url: string, body: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${url}/v1/workloads`, {
    method: "POST",
    headers: { ...subject, "content-type": "application/json" },
    body,
    ...(signal === undefined ? {} : { signal }),
  });
const workloadsAt = async (url: string): Promise<unknown> => {
  const response = await fetch(`${url}/v1/workloads`, { headers: subject });
  return ((await response.json()) as { workloads: unknown }).workloads;
};

/** A raw connection: what is written is sent as it is, and everything that comes back is kept. */
class RawClient {
  readonly socket: Socket;
  text = "";
  ended = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => (this.text += String(chunk)));
    socket.on("close", () => (this.ended = true));
    socket.on("error", () => (this.ended = true));
  }

  static async open(server: HttpServer): Promise<RawClient> {
    const socket = connect({ host: "127.0.0.1", port: server.port });
    const client = new RawClient(socket);
    await once(socket, "connect");
    closers.push(() => Promise.resolve(void socket.destroy()));
    return client;
  }

  /** Waits until what came back matches. */
  async expect(pattern: RegExp): Promise<void> {
    await poll(() => (pattern.test(this.text) || this.ended ? true : undefined), { timeoutMs: 10_000 });
    expect(this.text).toMatch(pattern);
  }

  async end(): Promise<void> {
    await poll(() => (this.ended ? true : undefined), { timeoutMs: 10_000 });
    expect(this.ended).toBe(true);
  }
}

const head = (lines: readonly string[]): string =>
  `POST /v1/workloads HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Mandate-Subject: human:alice\r\nContent-Type: application/json\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;

describe("a body", () => {
  test("that says it is larger than 8 MiB is refused before any of it is sent", async () => {
    const server = await serveOne();
    const client = await RawClient.open(server);
    client.socket.write(head([`Content-Length: ${8 * 1024 * 1024 + 1}`]));
    await client.expect(/^HTTP\/1\.1 413 [^]*application\/problem\+json[^]*WORKLOAD_TOO_LARGE/);
    await client.end();
  });

  test("that is asked about first is refused without being asked for, or asked for and read", async () => {
    const server = await serveOne();
    const large = await RawClient.open(server);
    large.socket.write(head(["Content-Length: 9000000", "Expect: 100-continue"]));
    await large.expect(/^HTTP\/1\.1 413 /);
    const small = await RawClient.open(server);
    const body = admission();
    small.socket.write(head([`Content-Length: ${body.length}`, "Expect: 100-continue"]));
    await small.expect(/^HTTP\/1\.1 100 Continue/);
    small.socket.write(body);
    await small.expect(/HTTP\/1\.1 201 Created/);
  });

  test("in chunks is read up to 8 MiB and cut off beyond", async () => {
    const server = await serveOne();
    const client = await RawClient.open(server);
    client.socket.write(head(["Transfer-Encoding: chunked"]));
    const chunk = `100000\r\n${" ".repeat(0x10_0000)}\r\n`;
    for (let sent = 0; sent < 9 && !client.ended; sent++) client.socket.write(chunk);
    await client.expect(/^HTTP\/1\.1 413 [^]*WORKLOAD_TOO_LARGE/);

    const padded = `${" ".repeat(8 * 1024 * 1024 - 1000)}${admission()}`;
    expect((await post(server.url, padded)).status).toBe(201);
  });

  test("that breaks off leaves nothing behind", async () => {
    const server = await serveOne();
    const client = await RawClient.open(server);
    client.socket.write(`${head(["Content-Length: 5000"])}${admission()}`);
    client.socket.end();
    await client.end();
    expect(await workloadsAt(server.url)).toEqual([]);
  });

  test("that is refused leaves the connection usable for the next request", async () => {
    const server = await serveOne();
    const client = await RawClient.open(server);
    client.socket.write(`${head(["Content-Length: 2"])}{x`);
    await client.expect(/^HTTP\/1\.1 400 /);
    const body = admission();
    client.socket.write(`${head([`Content-Length: ${body.length}`])}${body}`);
    await client.expect(/HTTP\/1\.1 201 /);
  });
});

describe("what is no proper request gets a problem document", () => {
  test.each([
    ["no HTTP at all", "hello\r\n\r\n", /^HTTP\/1\.1 400 /],
    ["a head without end", `GET / HTTP/1.1\r\nX: ${"x".repeat(100_000)}`, /^HTTP\/1\.1 431 /],
    [
      "two lengths",
      "POST /v1/workloads HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      /^HTTP\/1\.1 400 /,
    ],
    [
      "length and chunks",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      /^HTTP\/1\.1 400 /,
    ],
    ["a Host that is none", "GET /livez HTTP/1.1\r\nHost: a b\r\n\r\n", /^HTTP\/1\.1 400 /],
    ["a target that is none", "GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", /^HTTP\/1\.1 400 /],
    [
      "a header with NUL",
      "GET /livez HTTP/1.1\r\nHost: x\r\nX-Mandate-Subject: human:a\u0000b\r\n\r\n",
      /^HTTP\/1\.1 400 /,
    ],
  ])("%s", async (_, text, pattern) => {
    const server = await serveOne();
    const client = await RawClient.open(server);
    client.socket.write(text);
    await client.expect(pattern);
    await client.expect(/application\/problem\+json[^]*Mandate-Mode: open|mandate-mode: open/i);
    await client.expect(/WORKLOAD_INVALID/);
    expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  });
});

describe("several nodes", () => {
  test("one's write is read through another, with the revision that the first answered", async () => {
    const cluster = await startCluster(2);
    const [one, two] = await Promise.all(cluster.nodes.map((node) => serve(node)));
    assert(one !== undefined && two !== undefined, "two nodes are served");
    for (let index = 0; index < 20; index++) {
      const admitted = await post(one.url, admission({ idempotencyKey: `k${index}` }));
      const revision = admitted.headers.get("mandate-revision") ?? "";
      const listed = await fetch(`${two.url}/v1/workloads`, {
        headers: { ...subject, "Mandate-Min-Revision": revision },
      });
      expect(((await listed.json()) as { workloads: unknown[] }).workloads).toHaveLength(index + 1);
    }
  });

  test("an event stream that one node began is resumed at another", async () => {
    const cluster = await startCluster(2);
    const [one, two] = await Promise.all(cluster.nodes.map((node) => serve(node)));
    assert(one !== undefined && two !== undefined, "two nodes are served");
    const begin = new AbortController();
    const first = await fetch(`${one.url}/v1/events`, { headers: subject, signal: begin.signal });
    assert(first.body !== null, "an event stream has a body");
    const { value } = await first.body.getReader().read();
    const id = /^id: (\S+)$/m.exec(new TextDecoder().decode(value))?.[1] ?? "";
    begin.abort();
    await post(one.url, admission());
    const rest = new AbortController();
    const second = await fetch(`${two.url}/v1/events`, {
      headers: { ...subject, "Last-Event-ID": id },
      signal: rest.signal,
    });
    assert(second.body !== null, "an event stream has a body");
    let text = "";
    for await (const chunk of second.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (text.includes("data: ")) break;
    }
    rest.abort();
    expect(text).toContain("event: workload.ready");
  });
});

describe("event streams", () => {
  test("of clients that went away are closed, and a client that does not read is cut off", async () => {
    const metrics = new Registry();
    const server = await serveOne({ metrics, config: { eventBacklogMax: 50 } });
    const streams = async (): Promise<string | undefined> =>
      (await metrics.getSingleMetricAsString("mandate_http_event_streams")).split("\n").at(-1);
    const count = (open: number): Promise<true | undefined> =>
      poll(async () => ((await streams()) === `mandate_http_event_streams ${open}` ? true : undefined), {
        timeoutMs: 10_000,
      });
    const client = await RawClient.open(server);
    client.socket.write("GET /v1/events HTTP/1.1\r\nHost: x\r\nX-Mandate-Subject: human:a\r\n\r\n");
    await client.expect(/^id: \d+$/m);
    expect(await count(1)).toBe(true);
    client.socket.destroy();
    expect(await count(0)).toBe(true);

    const lazy = connect({ host: "127.0.0.1", port: server.port });
    lazy.on("error", () => undefined);
    await once(lazy, "connect");
    lazy.pause();
    closers.push(() => Promise.resolve(void lazy.destroy()));
    lazy.write("GET /v1/events HTTP/1.1\r\nHost: x\r\nX-Mandate-Subject: human:a\r\n\r\n");
    expect(await count(1)).toBe(true);
    // Enough to fill the buffers of both ends of the connection, and the bound.
    const items = Array.from({ length: 1000 }, (_, index) => index);
    for (let round = 0; round < 100 && (await streams()) !== "mandate_http_event_streams 0"; round++) {
      const body = `[${items.map((index) => admission({ idempotencyKey: `${round}/${index}` })).join(",")}]`;
      await fetch(`${server.url}/v1/workloads/batch`, {
        method: "POST",
        headers: { ...subject, "content-type": "application/json" },
        body,
      });
    }
    expect(await count(0)).toBe(true);
  });
});

describe("stopping", () => {
  test("ends streams, answers long polls, finishes requests under way, frees the port", async () => {
    const server = await serveOne();
    const admitted = await post(server.url, admission());
    const { workload } = (await admitted.json()) as { workload: { workloadId: string } };
    const events = await fetch(`${server.url}/v1/events`, { headers: subject });
    const waiting = fetch(`${server.url}/v1/workloads/${workload.workloadId}/result?waitMs=60000`, {
      headers: subject,
    });
    const slow = await RawClient.open(server);
    const body = admission({ idempotencyKey: "slow" });
    slow.socket.write(`${head([`Content-Length: ${body.length}`, "Connection: close"])}${body.slice(0, 20)}`);
    // The poll and the slow request are there when a request that was sent after them is answered.
    await fetch(`${server.url}/livez`);
    const stopped = server.stop(10_000);
    expect(await events.text()).toMatch(/^id: /);
    expect(await (await waiting).json()).toMatchObject({ settled: false });
    slow.socket.write(body.slice(20));
    await slow.expect(/^HTTP\/1\.1 201 /);
    await stopped;
    await expect(fetch(`${server.url}/livez`)).rejects.toThrow();
  });

  test("cuts off what does not end in time", async () => {
    const server = await serveOne();
    const client = await RawClient.open(server);
    client.socket.write(`${head(["Content-Length: 100"])}{`);
    await fetch(`${server.url}/livez`);
    await server.stop(50);
    await client.end();
  });

  test("a port that is taken is an error at start", async () => {
    const server = await serveOne();
    const [node] = (await startCluster(1)).nodes;
    assert(node !== undefined, "a cluster has a node");
    await expect(
      startHttpServer({ authority: node, log: silentLog, metrics: new Registry(), port: server.port }),
    ).rejects.toMatchObject({ code: "EADDRINUSE" });
  });
});

test("a store that goes away makes writes 503 at once and the node not ready; both mend themselves when it is back", async () => {
  const setting = await StoreSetting.start({ servers: 1 });
  closers.push(() => setting.close());
  const store = await setting.open({ epoch: "http", clientId: "node-1" });
  const authority = new Authority({ store, nodeId: "node-1", nonce: "test", log: silentLog });
  closers.push(() => authority.close());
  authority.open();
  const server = await serve(authority);
  const readyWith = (status: number): Promise<true | undefined> =>
    poll(async () => ((await fetch(`${server.url}/readyz`)).status === status ? true : undefined), {
      timeoutMs: 30_000,
    });
  expect(await readyWith(200)).toBe(true);
  expect((await post(server.url, admission())).status).toBe(201);

  await setting.cluster.killAll();
  expect(await readyWith(503)).toBe(true);
  const readiness = await fetch(`${server.url}/readyz`);
  expect(readiness.headers.get("retry-after")).toBe("1");
  expect(await readiness.json()).toMatchObject({ ready: false, reasons: [expect.any(String)] });
  const startedAt = performance.now();
  const refused = await post(server.url, admission({ idempotencyKey: "away" }));
  expect(performance.now() - startedAt).toBeLessThan(1000);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await refused.json()).toMatchObject({ code: "AUTHORITY_NOT_READY", definite: true, retry: true });
  expect((await fetch(`${server.url}/livez`)).status).toBe(200);

  await Promise.all(setting.cluster.servers.map((nats) => nats.start()));
  await setting.cluster.waitReady();
  expect(await readyWith(200)).toBe(true);
  const again = await post(server.url, admission({ idempotencyKey: "away" }));
  expect(again.status).toBe(201);
  expect(await workloadsAt(server.url)).toHaveLength(2);
});
