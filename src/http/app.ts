import { Hono } from "hono";
import { setMaxListeners } from "node:events";
import type { Registry } from "prom-client";
import { monotonicMs } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { MandateError } from "../core/errors.ts";
import type { Subject } from "../core/subject.ts";
import { authorizeRoute, bindQuery, readBearer, type HttpGrants } from "./access.ts";
import { answerProblem, type HttpAnswer } from "./answer.ts";
import type { HttpAuthority } from "./authority-port.ts";
import { readJsonBody } from "./body.ts";
import { defaultHttpConfig, type HttpConfig } from "./config.ts";
import type { HttpContext, HttpEnvironment } from "./context.ts";
import { HttpMeters } from "./meters.ts";
import { readPositions, readQuery, readSubject, renderPositions } from "./request.ts";
import type { Exchange, HttpRoute, HttpServices } from "./route.ts";
import { makeRoutes } from "./routes.ts";
import { UnderWay } from "./under-way.ts";

export interface HttpAppOptions {
  readonly authority: HttpAuthority;
  readonly log: Log;
  /** Where the door's measures go, and what `/metrics` shows. One application to a registry. */
  readonly metrics: Registry;
  readonly config?: Partial<HttpConfig>;
  /** Given: every request needs a grant. Absent: the node runs in open mode. */
  readonly grants?: HttpGrants;
  /** Aborted when the server stops. */
  readonly stopping?: AbortSignal;
}

const NO_KEYS = JSON.stringify({ keys: [] });

/** Whoever asks for what nobody need ask for by name. */
const anybody: Subject = { kind: "service", id: "anybody" };

/** Every answer says in which mode the node runs (contract 4.3). */
const toResponse = ({ status, body, contentType, headers }: HttpAnswer, mode: HttpServices["mode"]): Response =>
  new Response(body ?? null, {
    status,
    headers: {
      ...(contentType === undefined ? {} : { "content-type": contentType }),
      "mandate-mode": mode,
      ...headers,
    },
  });

/** What a route throws, as an answer. Anything but a refusal is a bug of ours: logged, and not shown. */
function answerThrown(thrown: unknown, log: Log): HttpAnswer {
  if (thrown instanceof MandateError) {
    if (thrown.code === "INTERNAL_ERROR") log.error({ err: thrown }, "a request failed");
    return answerProblem(thrown);
  }
  log.error({ err: thrown }, "a request failed");
  return answerProblem(new MandateError("INTERNAL_ERROR", "the node failed; its log has the cause"));
}

/**
 * Waits for the revision that a request asks for; answers whether it asked for one.
 *
 * @throws MandateError `AUTHORITY_NOT_READY` when the node does not get there in time (contract 6.2).
 */
async function awaitRevision(context: HttpContext, services: HttpServices): Promise<boolean> {
  const { authority, config } = services;
  const positions = readPositions(context, authority.shards);
  if (positions.length === 0) return false;
  const waits = positions.map((position) => authority.waitForPosition(position, config.minRevisionWaitMs));
  if ((await Promise.all(waits)).every(Boolean)) return true;
  throw new MandateError("AUTHORITY_NOT_READY", "this node has not seen the revision that the request asks for", {
    details: { positions },
  });
}

/**
 * What every answer reflects at least: where the view stood when the request came (contract 6.2). An answer about one
 * workload names its own revision; a refusal was confirmed on something that is newer than the request.
 */
function revisionAtLeast(authority: HttpAuthority): Readonly<Record<string, string>> {
  try {
    return { "mandate-revision": renderPositions(authority.position()) };
  } catch (thrown) {
    // There is no view before the store is open.
    if (thrown instanceof MandateError) return {};
    throw thrown;
  }
}

/** Who asks, and by which grant. */
async function callerOf(
  route: HttpRoute,
  context: HttpContext,
  grants: HttpGrants | undefined,
): Promise<Pick<Exchange, "subject" | "bearer">> {
  if (route.access === "public") return { subject: anybody, bearer: undefined };
  if (grants === undefined) return { subject: readSubject(context), bearer: undefined };
  const bearer = await readBearer(context, grants);
  return { subject: bearer.grant.subject, bearer };
}

/**
 * Serves one route: bounds, subject, revision, what its grant allows, then the handler. No refusal gets past it. Whether the node may take a
 * write at all is the authority's to say, and it says so before it does anything.
 */
function serveRoute(
  route: HttpRoute,
  services: HttpServices,
  how: { readonly underWay: UnderWay; readonly grants: HttpGrants | undefined },
): (context: HttpContext) => Promise<Response> {
  const meter = services.meters.route(`${route.method} ${route.path}`);
  const { log } = services;
  const { underWay, grants } = how;
  const known = new Set(Object.keys(route.query?.shape ?? {}));
  return async (context) => {
    const from = monotonicMs();
    let reflected = revisionAtLeast(services.authority);
    let answer: HttpAnswer;
    const leave = underWay.enter(route.kind);
    try {
      if (leave === undefined) throw new MandateError("AUTHORITY_OVERLOADED", "too many requests are under way");
      const caller = await callerOf(route, context, grants);
      const query = bindQuery(readQuery(context, known), route, caller.bearer);
      const readBody = async (): Promise<unknown> => {
        const body = await readJsonBody(context);
        if (caller.bearer !== undefined) {
          await callerOf(route, context, grants);
          await authorizeRoute(exchange, route);
        }
        return body;
      };
      const exchange: Exchange = { services, context, ...caller, query, operation: route.operationId, readBody };
      if (route.kind !== "system" && (await awaitRevision(context, services)))
        reflected = revisionAtLeast(services.authority);
      await authorizeRoute(exchange, route);
      answer = await route.handle(exchange);
    } catch (thrown) {
      answer = answerThrown(thrown, log);
    } finally {
      leave?.();
    }
    meter.answered(answer.status, monotonicMs() - from);
    if (answer.status >= 400)
      log.debug({ route: route.path, method: route.method, status: answer.status }, "refused over HTTP");
    return toResponse({ ...answer, headers: { ...reflected, ...answer.headers } }, services.mode);
  };
}

const routerPath = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

const matches = (route: HttpRoute, path: string): boolean => {
  const wanted = route.path.split("/");
  const given = path.split("/");
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => (part.startsWith("{") ? given[index] !== "" : part === given[index]))
  );
};

/** What the router knows no handler for: another method of a route that exists, or no route. */
function answerUnmatched(context: HttpContext, routes: readonly HttpRoute[]): HttpAnswer {
  const methods = routes.filter((route) => matches(route, context.req.path)).map(({ method }) => method as string);
  if (methods.length === 0) return answerProblem(new MandateError("ROUTE_NOT_FOUND", "there is no such route"));
  const allow = [...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"].join(", ");
  if (context.req.method === "OPTIONS") return { status: 204, headers: { allow } };
  return answerProblem(new MandateError("METHOD_NOT_ALLOWED", `the route does not take ${context.req.method}`), {
    allow,
  });
}

/**
 * The HTTP door of a node (contract 6.2) as an application that `request()` drives without a port. Nothing
 * in it decides: it parses, calls the authority and renders. Answers are always ours: every refusal is a problem
 * document with a code of the registry.
 */
export function createHttpApp(options: HttpAppOptions): Hono<HttpEnvironment> {
  const config: HttpConfig = { ...defaultHttpConfig, ...options.config };
  const { grants, stopping = new AbortController().signal } = options;
  // Every long poll and every event stream listens to it.
  setMaxListeners(0, stopping);
  const services: HttpServices = {
    authority: options.authority,
    log: options.log,
    registry: options.metrics,
    meters: new HttpMeters(options.metrics),
    config,
    stopping,
    jwks: () => grants?.jwks() ?? NO_KEYS,
    mode: grants === undefined ? "open" : "secure",
  };
  const app = new Hono<HttpEnvironment>();
  const underWay = new UnderWay(config);
  const routes = makeRoutes();
  for (const route of routes)
    app.on(route.method, routerPath(route.path), serveRoute(route, services, { underWay, grants }));
  const unmatched = services.meters.route("none");
  app.notFound((context) => {
    const answer = answerUnmatched(context, routes);
    unmatched.answered(answer.status, 0);
    return toResponse(answer, services.mode);
  });
  app.onError((thrown) => toResponse(answerThrown(thrown, services.log), services.mode));
  return app;
}
