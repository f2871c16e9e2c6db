import type { Registry } from "prom-client";
import type { z } from "zod";
import type { Bearer } from "../authority/access.ts";
import type { Log } from "../base/log.ts";
import type { Capability } from "../core/grant/capabilities.ts";
import type { Subject } from "../core/subject.ts";
import type { HttpAnswer } from "./answer.ts";
import type { HttpAuthority } from "./authority-port.ts";
import type { HttpConfig } from "./config.ts";
import type { HttpContext } from "./context.ts";
import type { HttpMeters } from "./meters.ts";

/** What all requests share. */
export interface HttpServices {
  readonly authority: HttpAuthority;
  readonly log: Log;
  readonly registry: Registry;
  readonly meters: HttpMeters;
  readonly config: HttpConfig;
  /** The public keys of the node, as a JWKS; none in open mode. */
  readonly jwks: () => string;
  readonly mode: "open" | "secure";
  /** Aborted when the server stops: what waits then answers, what streams then ends. */
  readonly stopping: AbortSignal;
}

/** One request to one route. */
export interface Exchange {
  readonly services: HttpServices;
  readonly context: HttpContext;
  /** Who asks. On routes of the kind `system` nobody need say so, and this is a stand-in. */
  readonly subject: Subject;
  /** The verified grant that it asks under; absent in open mode, and on public routes. */
  readonly bearer: Bearer | undefined;
  /** What is asked for, by the route's operationId. */
  readonly operation: string;
  /** The query, its names checked against the route's. */
  readonly query: ReadonlyMap<string, readonly string[]>;
  /**
   * Reads the body as JSON; `undefined` when there is none. A body may take minutes to come, so the grant is looked at
   * once more when it is there.
   *
   * @throws MandateError what is wrong with the body, or what the grant no longer allows.
   */
  readBody(): Promise<unknown>;
}

/**
 * How a route is served. `system`: by anybody, always. The others need a subject, and count against a bound each:
 * `read` and `write` against requests under way, `wait` against long polls, `stream` against event streams.
 */
export type RouteKind = "system" | "read" | "write" | "wait" | "stream";

export interface DocumentedAnswer {
  readonly description: string;
  readonly contentType?: string;
  readonly schema?: z.ZodType;
}

/**
 * What a route needs of the grant (contract 4.1); `public`: none. `workload` and `worker`: on the one of the path.
 * `any`: at all, and the handler asks for each thing that it shows or does.
 */
export type RouteAccess =
  | "public"
  | { readonly capability: Capability; readonly on: "any" | "collection" | "every" | "workload" | "worker" };

/** One line of the route table, which drives both the router and the OpenAPI document. */
export interface HttpRoute {
  readonly method: "GET" | "POST";
  /** In OpenAPI's notation: `/v1/workloads/{id}`. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly kind: RouteKind;
  readonly access: RouteAccess;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  readonly answers: Readonly<Record<number, DocumentedAnswer>>;
  handle(exchange: Exchange): Promise<HttpAnswer> | HttpAnswer;
}
