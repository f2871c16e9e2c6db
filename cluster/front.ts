import { once } from "node:events";
import type { ClientRequest, IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";
import type { Log } from "../src/base/log.ts";
import { silentLog } from "../src/base/log.ts";
import { FrontBackend } from "./front-backend.ts";
import { freePorts } from "./free-ports.ts";
import { poll } from "./poll.ts";

/** Headers that belong to one connection and are never handed on (RFC 9110, 7.6.1). */
const HOP_BY_HOP = new Set([
  "connection",
  "expect",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The headers to hand on, flat (name, value, name, value …), in their order and with their repetitions. */
function endToEndHeaders(message: IncomingMessage): string[] {
  const { rawHeaders } = message;
  const named = message.headers.connection;
  const alsoDropped =
    named === undefined || /^(keep-alive|close)$/i.test(named)
      ? undefined
      : new Set(named.split(",").map((name) => name.trim().toLowerCase()));
  const kept: string[] = [];
  for (let place = 0; place + 1 < rawHeaders.length; place += 2) {
    const name = rawHeaders[place] ?? "";
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || alsoDropped?.has(lower) === true) continue;
    kept.push(name, rawHeaders[place + 1] ?? "");
  }
  return kept;
}

/** What the front answers itself, in the product's own form of a problem (RFC 9457). */
interface FrontProblem {
  readonly status: number;
  readonly title: string;
  readonly code: "AUTHORITY_NOT_READY" | "WORKLOAD_OUTCOME_UNKNOWN" | "WORKLOAD_INVALID";
  readonly definite: boolean;
  readonly retry: boolean;
}

const NOBODY_READY: FrontProblem = {
  status: 503,
  title: "No authority node is ready.",
  code: "AUTHORITY_NOT_READY",
  definite: true,
  retry: true,
};
const LOST_READ: FrontProblem = {
  ...NOBODY_READY,
  title: "The node went away before it answered; nothing was changed.",
};
const LOST_WRITE: FrontProblem = {
  status: 503,
  title: "The node went away before it answered; whether the request took effect is not known.",
  code: "WORKLOAD_OUTCOME_UNKNOWN",
  definite: false,
  retry: true,
};
const BAD_TARGET: FrontProblem = {
  status: 400,
  title: "The request target can't be handed on.",
  code: "WORKLOAD_INVALID",
  definite: true,
  retry: false,
};

function answerProblem(response: ServerResponse, problem: FrontProblem): void {
  if (response.headersSent) {
    // Half an answer was handed on already: cutting the connection is the only way left to say that it is not whole.
    response.destroy();
    return;
  }
  const body = Buffer.from(JSON.stringify({ type: "about:blank", ...problem, details: {} }));
  response.writeHead(problem.status, {
    "content-type": "application/problem+json",
    "content-length": body.length,
    ...(problem.status === 503 ? { "retry-after": "1" } : {}),
  });
  response.end(body);
}

const isRead = (method: string | undefined): boolean => method === "GET" || method === "HEAD" || method === "OPTIONS";

/**
 * One address in front of several authority nodes: an HTTP reverse proxy that hands each request to the next node that
 * says it is ready, round robin. A request goes to another node only when no connection to the first could be made, so
 * that none is ever carried out twice through it; a connection lost later is answered 503, as an unknown outcome for a
 * request that may change something. Bodies, server-sent events and long polls stream both ways.
 */
export class Front {
  readonly #server: Server;
  readonly #log: Log;
  readonly #url: string;
  #backends: FrontBackend[] = [];
  #next = 0;

  private constructor(server: Server, url: string, log: Log) {
    this.#server = server;
    this.#url = url;
    this.#log = log;
  }

  /**
   * Listens on 127.0.0.1 at `port` or, when that is taken or absent, at a free one ({@link url} says which).
   *
   * @throws ClusterError `NO_FREE_PORT`.
   */
  static async start(options: {
    readonly backends: readonly string[];
    readonly port?: number;
    readonly log?: Log;
  }): Promise<Front> {
    const server = createServer({ noDelay: true, keepAliveTimeout: 65_000 });
    const [port] = await freePorts([options.port]);
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const front = new Front(server, url, options.log ?? silentLog);
    front.setBackends(options.backends);
    server.on("request", (request, response) => front.#serve(request, response));
    server.on("connect", (_request, socket) => socket.destroy());
    return front;
  }

  /** Where it answers. */
  get url(): string {
    return this.#url;
  }

  /** The nodes that take requests now. */
  get healthyUrls(): string[] {
    return this.#backends.filter(({ healthy }) => healthy).map(({ url }) => url);
  }

  /** Replaces the nodes behind it; those that stay keep their connections. */
  setBackends(urls: readonly string[]): void {
    const wanted = urls.map((url) => new URL(url).origin);
    const kept = this.#backends.filter(({ url }) => wanted.includes(url));
    for (const backend of this.#backends) if (!kept.includes(backend)) backend.close();
    this.#backends = wanted.map(
      (url) =>
        kept.find((backend) => backend.url === url) ??
        new FrontBackend(url, ({ healthy }) => this.#log.info({ url, healthy }, "a node behind the front changed")),
    );
  }

  /** Waits until at least `count` nodes are ready; answers whether they were within `timeoutMs`. */
  async waitHealthy(count: number, timeoutMs = 30_000): Promise<boolean> {
    const enough = await poll(() => (this.healthyUrls.length >= count ? true : undefined), { timeoutMs });
    return enough === true;
  }

  /** Takes no more connections and ends those that are up, long polls too. */
  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const backend of this.#backends) backend.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #pick(tried: readonly FrontBackend[]): FrontBackend | undefined {
    const count = this.#backends.length;
    for (let step = 0; step < count; step++) {
      const backend = this.#backends[(this.#next + step) % count];
      if (backend === undefined || !backend.healthy || tried.includes(backend)) continue;
      this.#next = (this.#next + step + 1) % count;
      return backend;
    }
    return undefined;
  }

  #serve(request: IncomingMessage, response: ServerResponse, tried: readonly FrontBackend[] = []): void {
    const backend = this.#pick(tried);
    if (backend === undefined) {
      request.resume();
      answerProblem(response, NOBODY_READY);
      return;
    }
    const outgoing = open(request, backend);
    if (outgoing === undefined) {
      request.resume();
      answerProblem(response, BAD_TARGET);
      return;
    }
    let connected = false;
    whenConnected(outgoing, () => {
      connected = true;
      request.pipe(outgoing);
    });
    let answered = false;
    outgoing.on("response", (answer) => {
      answered = true;
      handBack(answer, response);
    });
    outgoing.on("error", () => {
      // An answer under way speaks for itself, also one that came before the whole body was taken (413).
      if (answered) request.unpipe(outgoing).resume();
      if (answered || response.destroyed || response.writableEnded) return;
      if (!connected) {
        backend.markUnreachable();
        this.#serve(request, response, [...tried, backend]);
        return;
      }
      request.unpipe(outgoing);
      request.resume();
      answerProblem(response, isRead(request.method) ? LOST_READ : LOST_WRITE);
    });
    // Whoever asked has gone: the node must learn it, so that a long poll or a stream ends there too.
    response.once("close", () => {
      if (!response.writableFinished) outgoing.destroy();
    });
  }
}

/** Prepares the request to the node; nothing is sent before a connection stands and the body is piped or ended. */
function open(request: IncomingMessage, backend: FrontBackend): ClientRequest | undefined {
  const headers = endToEndHeaders(request);
  if (request.headers["transfer-encoding"] !== undefined) headers.push("Transfer-Encoding", "chunked");
  try {
    return sendRequest({
      hostname: backend.hostname,
      port: backend.port,
      method: request.method,
      path: request.url,
      headers,
      setHost: false,
      agent: backend.agent,
    });
  } catch {
    return undefined;
  }
}

function whenConnected(outgoing: ClientRequest, go: () => void): void {
  outgoing.once("socket", (socket) => {
    if (socket.connecting) socket.once("connect", go);
    else go();
  });
}

function handBack(answer: IncomingMessage, response: ServerResponse): void {
  response.sendDate = false;
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEndHeaders(answer));
  // An event stream's headers must arrive before its first event; anything else goes out in one piece with its body.
  if (answer.headers["content-length"] === undefined) response.flushHeaders();
  answer.on("error", () => response.destroy());
  answer.on("aborted", () => response.destroy());
  answer.pipe(response);
}
