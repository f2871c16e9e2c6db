/**
 * Goal: the one address in front of several nodes hands each request to a ready node, once, and answers in the
 * product's own words when it can't; the fault proxy does to bytes what its mode says.
 * Method: small real HTTP servers as nodes, whose readiness and behaviour a test controls; real sockets throughout.
 */
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { Front } from "../../cluster/front.ts";
import { poll } from "../../cluster/poll.ts";
import { FaultProxy } from "../../cluster/proxy.ts";

interface Node {
  readonly url: string;
  readonly server: Server;
  ready: boolean;
  seen: number;
}

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const startNode = async (
  name: string,
  handle: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.end(name),
): Promise<Node> => {
  const server = createServer((request, response) => {
    if (request.url === "/readyz") {
      response.writeHead(node.ready ? 200 : 503).end();
      return;
    }
    node.seen += 1;
    handle(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const node: Node = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    ready: true,
    seen: 0,
  };
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return node;
};

const startFront = async (...nodes: Node[]): Promise<Front> => {
  const front = await Front.start({ backends: nodes.map(({ url }) => url) });
  closing.push(() => front.stop());
  expect(await front.waitHealthy(nodes.filter(({ ready }) => ready).length)).toBe(true);
  return front;
};

const text = async (url: string, init?: RequestInit): Promise<string> => (await fetch(url, init)).text();

describe("the front", () => {
  test("spreads requests over the ready nodes and leaves out one that is not", async () => {
    const [a, b, c] = [await startNode("a"), await startNode("b"), await startNode("c")];
    const front = await startFront(a, b, c);
    const names = [await text(front.url), await text(front.url), await text(front.url)];
    expect(names.toSorted()).toEqual(["a", "b", "c"]);
    b.ready = false;
    expect(await poll(() => (front.healthyUrls.length === 2 ? true : undefined), { timeoutMs: 5_000 })).toBe(true);
    const before = b.seen;
    for (let request = 0; request < 6; request++) await text(front.url);
    expect(b.seen).toBe(before);
  });

  test("hands a request on unchanged: method, target, repeated headers and body; drops what belongs to the connection", async () => {
    const node = await startNode("a", (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        response.writeHead(201, ["Set-Cookie", "a=1", "Set-Cookie", "b=2", "Keep-Alive", "timeout=99", "X-Node", "a"]);
        response.end(
          JSON.stringify({
            method: request.method,
            target: request.url,
            headers: request.headers,
            body: Buffer.concat(chunks).toString("base64"),
          }),
        );
      });
    });
    const front = await startFront(node);
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, place) => place % 251));
    const response = await fetch(`${front.url}/v1/x?y=%20z`, {
      method: "PUT",
      body,
      headers: { "X-Kept": "1", TE: "trailers", "Proxy-Authorization": "secret" },
    });
    expect(response.status).toBe(201);
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(response.headers.get("keep-alive")).not.toBe("timeout=99");
    expect(await response.json()).toMatchObject({
      method: "PUT",
      target: "/v1/x?y=%20z",
      headers: expect.not.objectContaining({ te: expect.anything(), "proxy-authorization": expect.anything() }),
      body: body.toString("base64"),
    });
  });

  test("goes to another node when the first can't be reached, and only then", async () => {
    const [a, b] = [await startNode("a"), await startNode("b")];
    const front = await startFront(a, b);
    a.server.close();
    a.server.closeAllConnections();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => text(front.url, { method: "POST", body: "work" })),
    );
    expect(new Set(answers)).toEqual(new Set(["b"]));
    expect(b.seen).toBe(8);
  });

  test("answers 503 with an unknown outcome when a node dies over a request that may change something", async () => {
    const [a, b] = [
      await startNode("a", (request) => request.socket.destroy()),
      await startNode("b", (request) => request.socket.destroy()),
    ];
    const front = await startFront(a, b);
    const response = await fetch(front.url, { method: "POST", body: "work" });
    expect(response.status).toBe(503);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(await response.json()).toMatchObject({ code: "WORKLOAD_OUTCOME_UNKNOWN", definite: false });
    expect(a.seen + b.seen).toBe(1);
  });

  test("answers 503 AUTHORITY_NOT_READY with Retry-After while no node is ready, and serves again by itself", async () => {
    const node = await startNode("a");
    node.ready = false;
    const front = await startFront(node);
    const response = await fetch(front.url);
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await response.json()).toMatchObject({ code: "AUTHORITY_NOT_READY", definite: true, retry: true });
    node.ready = true;
    expect(await front.waitHealthy(1, 5_000)).toBe(true);
    expect(await text(front.url)).toBe("a");
  });

  test("streams events as they come and tells the node when the reader leaves", async () => {
    let left = false;
    const node = await startNode("a", (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: one\n\n");
      response.on("close", () => {
        left = true;
      });
    });
    const front = await startFront(node);
    const leave = new AbortController();
    const response = await fetch(front.url, { signal: leave.signal });
    const first = await response.body?.getReader().read();
    expect(new TextDecoder().decode(first?.value)).toBe("data: one\n\n");
    leave.abort();
    expect(await poll(() => (left ? true : undefined), { timeoutMs: 5_000 })).toBe(true);
  });

  test("cuts the connection when an answer breaks off, so that half of it is never taken for the whole", async () => {
    const node = await startNode("a", (request, response) => {
      response.writeHead(200);
      response.write("half", () => request.socket.destroy());
    });
    const front = await startFront(node);
    await expect(text(front.url)).rejects.toThrow();
  });

  test("takes a free port when the wanted one is taken", async () => {
    const node = await startNode("a");
    const front = await Front.start({ backends: [node.url], port: Number(new URL(node.url).port) });
    closing.push(() => front.stop());
    expect(front.url).not.toBe(node.url);
    expect(await front.waitHealthy(1)).toBe(true);
    expect(await text(front.url)).toBe("a");
  });
});

describe("the fault proxy", () => {
  test("passes, swallows one way, holds, refuses and cuts", async () => {
    const node = await startNode("a");
    const proxy = await FaultProxy.start({ target: Number(new URL(node.url).port) });
    closing.push(() => proxy.close());
    const url = `http://127.0.0.1:${proxy.port}`;
    const ask = (): Promise<string> => text(url, { headers: { connection: "close" } });
    expect(await ask()).toBe("a");

    proxy.setMode("drop-to-client");
    const lost = ask().catch(() => "lost");
    expect(await poll(() => (node.seen === 2 ? true : undefined), { timeoutMs: 5_000 })).toBe(true);
    proxy.cut();
    expect(await lost).toBe("lost");

    proxy.setMode("hold");
    const held = ask();
    expect(await poll(() => (proxy.connections === 1 ? true : undefined), { timeoutMs: 5_000 })).toBe(true);
    proxy.setMode("pass");
    expect(await held).toBe("a");

    proxy.setMode("refuse");
    await expect(ask()).rejects.toThrow();
    expect(node.seen).toBe(3);
  });
});
