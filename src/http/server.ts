import { getRequestListener, RequestError } from "@hono/node-server";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Log } from "../base/log.ts";
import { MandateError } from "../core/errors.ts";
import { BODY_BYTES_MAX } from "../wire/limits.ts";
import { PROBLEM_MEDIA_TYPE, problemOf } from "../wire/problem.ts";
import { createHttpApp, type HttpAppOptions } from "./app.ts";

export interface HttpServerOptions extends Omit<HttpAppOptions, "stopping"> {
  /** 0: any free one. */
  readonly port: number;
  /** A node in open mode takes 127.0.0.1 alone (contract 4.3), which is the default; one that knows grants any address. */
  readonly host?: string;
  /** With it the door is HTTPS, and nothing is answered without. */
  readonly tls?: HttpCertificate | undefined;
}

/** What a server shows to prove who it is, in PEM form. */
export interface HttpCertificate {
  /** Its certificate, and those of whoever vouches for it. */
  readonly cert: string;
  readonly key: string;
}

export interface HttpServer {
  /** Where it answers: `http://127.0.0.1:<port>`, or `https://`. */
  readonly url: string;
  readonly port: number;
  /**
   * Shows another certificate to who connects from now on; connections that are up stay. Nothing without TLS.
   *
   * @throws the system's error when the two don't fit together; then it goes on with the one it has.
   */
  renewCertificate(certificate: HttpCertificate): void;
  /**
   * Takes no more connections, ends event streams and long polls, lets requests under way finish for `graceMs` at most,
   * and cuts off what is left then.
   */
  stop(graceMs?: number): Promise<void>;
}

/** The one address of a node that takes every caller's word for who it is. */
export const OPEN_MODE_HOST = "127.0.0.1";

/** Time to send a request's head, and all of it, ms; idle time of a kept connection, ms: longer than proxies keep theirs. */
const HEAD_TIMEOUT_MS = 20_000;
/** Room for a grant of full size beside everything else. */
const HEADER_BYTES_MAX = 32 * 1024;
const REQUEST_TIMEOUT_MS = 120_000;
const KEEP_ALIVE_TIMEOUT_MS = 75_000;

/** What is no HTTP request gets a problem document nevertheless, and the connection is closed. */
function refuseConnection(mode: string, error: Error & { readonly code?: string }, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, what] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? ["431 Request Header Fields Too Large", "the head of the request is too large"]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["408 Request Timeout", "the request did not arrive in time"]
        : ["400 Bad Request", "this is no HTTP request"];
  const body = JSON.stringify(problemOf(new MandateError("WORKLOAD_INVALID", what, { details: { paths: [""] } })));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: ${PROBLEM_MEDIA_TYPE}\r\nMandate-Mode: ${mode}\r\nConnection: close\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** A client that asks before it sends is told to go on only if its body will be read. */
function answerExpectation(server: Server, incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (!(Number(incoming.headers["content-length"] ?? 0) > BODY_BYTES_MAX)) outgoing.writeContinue();
  server.emit("request", incoming, outgoing);
}

/** What never reaches the application: a target or a Host that make no URL are refused like any other bad value. */
function answerOutside(thrown: unknown, mode: string, log: Log): Response {
  const isTarget = thrown instanceof RequestError;
  if (!isTarget) log.error({ err: thrown }, "a request failed");
  const error = isTarget
    ? new MandateError("WORKLOAD_INVALID", "the request's target or Host is malformed", { details: { paths: [""] } })
    : new MandateError("INTERNAL_ERROR", "the node failed; its log has the cause");
  const problem = problemOf(error);
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { "content-type": PROBLEM_MEDIA_TYPE, "mandate-mode": mode },
  });
}

async function listen(server: Server, place: { readonly port: number; readonly host: string }): Promise<AddressInfo> {
  server.listen(place);
  await once(server, "listening");
  return server.address() as AddressInfo;
}

async function closeServer(server: Server, sockets: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, graceMs);
  await closed;
  clearTimeout(timer);
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

function makeServer(tls: HttpCertificate | undefined, listener: Listener): Server | TlsServer {
  const options = { keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS, noDelay: true, maxHeaderSize: HEADER_BYTES_MAX };
  if (tls === undefined) return createServer(options, listener);
  return createTlsServer({ ...options, ...tls, minVersion: "TLSv1.2" }, listener);
}

/**
 * Serves the HTTP door of a node (contract 6.2).
 *
 * @throws MandateError `WORKLOAD_INVALID` in open mode for any address but 127.0.0.1: it is for this machine alone.
 * @throws the system's error when the port can't be had.
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const host = options.host ?? OPEN_MODE_HOST;
  const mode = options.grants === undefined ? "open" : "secure";
  if (mode === "open" && host !== OPEN_MODE_HOST)
    throw new MandateError(
      "WORKLOAD_INVALID",
      `a node in open mode listens on ${OPEN_MODE_HOST} only, not on ${host}`,
      { details: { paths: ["host"], issues: [{ path: "host", message: `must be ${OPEN_MODE_HOST} in open mode` }] } },
    );
  const stopping = new AbortController();
  const app = createHttpApp({ ...options, stopping: stopping.signal });
  const listener = getRequestListener(app.fetch, {
    errorHandler: (thrown) => answerOutside(thrown, mode, options.log),
  });
  const server = makeServer(options.tls, (incoming, outgoing) => {
    if (stopping.signal.aborted) outgoing.setHeader("connection", "close");
    void listener(incoming, outgoing);
  });
  server.headersTimeout = HEAD_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("clientError", (error, socket) => refuseConnection(mode, error, socket));
  server.on("checkContinue", (incoming, outgoing) => answerExpectation(server, incoming, outgoing));
  const { port } = await listen(server, { port: options.port, host });
  const scheme = options.tls === undefined ? "http" : "https";
  const url = `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const whom = mode === "open" ? "in open mode: any caller on this machine is believed" : "to callers with a grant";
  options.log.info({ url }, `HTTP answers, ${whom}`);
  if (mode === "secure" && options.tls === undefined)
    options.log.warn({ url }, "grants travel unencrypted: give HTTP a certificate, or let only what ends TLS reach it");
  return {
    url,
    port,
    renewCertificate: (certificate) => {
      if (server instanceof TlsServer) server.setSecureContext({ ...certificate, minVersion: "TLSv1.2" });
    },
    stop: (graceMs = 5_000) => {
      stopping.abort();
      return closeServer(server, sockets, graceMs);
    },
  };
}
