import { listApprovals } from "./approvals-handler.ts";
import type { EventFeed } from "./event-feed.ts";
import { streamEvents } from "./events-handler.ts";
import { renderOpenApi } from "./openapi.ts";
import { decideWorkload, operateWorkload } from "./operation-handlers.ts";
import { revokeGrants } from "./revocation-handler.ts";
import type { DocumentedAnswer, HttpRoute } from "./route.ts";
import {
  admitAnswer,
  admitBody,
  admitManyAnswer,
  admitManyBody,
  approvalsQuery,
  changeEvent,
  decideAnswer,
  decideBody,
  eventsQuery,
  explainAnswer,
  listQuery,
  jwksAnswer,
  livenessAnswer,
  operateBody,
  pageAnswer,
  readinessAnswer,
  resultAnswer,
  resultQuery,
  revocation,
  revokeBody,
  scopeQuery,
  stateAnswer,
  workload,
} from "./schemas.ts";
import { registryRoutes } from "./worker-routes.ts";
import { answerJwks, answerLiveness, answerMetrics, answerReadiness } from "./system-handlers.ts";
import {
  admitWorkload,
  admitWorkloads,
  explainWorkload,
  getWorkload,
  listWorkloads,
  readResult,
} from "./workload-handlers.ts";

const one = (description: string, schema: DocumentedAnswer["schema"]): Readonly<Record<number, DocumentedAnswer>> => ({
  200: { description, ...(schema === undefined ? {} : { schema }) },
});

const operation = (name: "cancel" | "retry" | "timeout", summary: string): HttpRoute => ({
  method: "POST",
  path: `/v1/workloads/{id}/${name}`,
  operationId: name,
  summary,
  kind: "write",
  // Whoever may stop work may time it out: both take it away from its worker.
  access: { capability: name === "retry" ? "workload:retry" : "workload:cancel", on: "workload" },
  query: scopeQuery,
  body: operateBody,
  answers: one("The state that it is in now.", stateAnswer),
  handle: operateWorkload(name),
});

const workloadRoutes: readonly HttpRoute[] = [
  {
    method: "POST",
    path: "/v1/workloads",
    operationId: "admit",
    summary: "Admit a workload. Repeating the same request gives the same workload.",
    kind: "write",
    access: { capability: "workload:create", on: "any" },
    body: admitBody,
    answers: {
      200: { description: "The same request was admitted before.", schema: admitAnswer },
      201: { description: "Created; Location names it.", schema: admitAnswer },
    },
    handle: admitWorkload,
  },
  {
    method: "POST",
    path: "/v1/workloads/batch",
    operationId: "admitMany",
    summary: "Admit up to 1000 workloads, each on its own.",
    kind: "write",
    access: { capability: "workload:create", on: "any" },
    body: admitManyBody,
    answers: one("One answer per request, in their order.", admitManyAnswer),
    handle: admitWorkloads,
  },
  {
    method: "GET",
    path: "/v1/workloads",
    operationId: "list",
    summary: "List workloads, the highest priority first, then the oldest.",
    kind: "read",
    access: { capability: "workload:read", on: "any" },
    query: listQuery,
    answers: one("A page; its cursor names the next one.", pageAnswer),
    handle: listWorkloads,
  },
  {
    method: "GET",
    path: "/v1/workloads/{id}",
    operationId: "get",
    summary: "Read a workload.",
    kind: "read",
    access: { capability: "workload:read", on: "workload" },
    query: scopeQuery,
    answers: one("The record.", workload),
    handle: getWorkload,
  },
  {
    method: "GET",
    path: "/v1/workloads/{id}/result",
    operationId: "result",
    summary: "Wait up to 60 s until the workload is settled, and read its result.",
    kind: "wait",
    access: { capability: "workload:read", on: "workload" },
    query: resultQuery,
    answers: one("How it stands; `settled` tells whether anything more will happen by itself.", resultAnswer),
    handle: readResult,
  },
  {
    method: "GET",
    path: "/v1/workloads/{id}/explain",
    operationId: "explain",
    summary: "Tell what keeps the workload from running now.",
    kind: "read",
    access: { capability: "workload:read", on: "workload" },
    query: scopeQuery,
    answers: one("All reasons; none when a worker could claim it.", explainAnswer),
    handle: explainWorkload,
  },
];

const operationRoutes: readonly HttpRoute[] = [
  {
    method: "POST",
    path: "/v1/workloads/{id}/decision",
    operationId: "decide",
    summary: "Approve or reject a workload that waits for it.",
    kind: "write",
    access: { capability: "workload:approve", on: "workload" },
    query: scopeQuery,
    body: decideBody,
    answers: one("The decision; `replayed` when it had been taken before.", decideAnswer),
    handle: decideWorkload,
  },
  {
    method: "POST",
    path: "/v1/grants/revocations",
    operationId: "revoke",
    summary: "End a grant, a subject's grants, or all of an application or a tenant, for good.",
    kind: "write",
    access: { capability: "authorization:revoke", on: "collection" },
    body: revokeBody,
    answers: one("The revocation, or the earlier one that already reached as far.", revocation),
    handle: revokeGrants,
  },
  operation("cancel", "Cancel a workload; a running one is asked to stop."),
  operation("retry", "Grant one more attempt to a workload that failed."),
  operation("timeout", "Time a workload out now."),
  {
    method: "GET",
    path: "/v1/approvals",
    operationId: "approvals",
    summary: "List the workloads that wait for a decision which the subject may take.",
    kind: "read",
    access: { capability: "workload:approve", on: "any" },
    query: approvalsQuery,
    answers: one("A page, perhaps with fewer workloads than its limit; its cursor names the next one.", pageAnswer),
    handle: listApprovals,
  },
];

/** Every route of the door: what the router serves and what the OpenAPI document describes (contract 6.2). */
export function makeRoutes(): readonly HttpRoute[] {
  const openFeeds = new Set<EventFeed>();
  const routes: readonly HttpRoute[] = [
    ...workloadRoutes,
    ...operationRoutes,
    ...registryRoutes,
    {
      method: "GET",
      path: "/v1/events",
      operationId: "events",
      summary: "Follow committed changes as server-sent events; resume with Last-Event-ID.",
      kind: "stream",
      access: { capability: "workload:read", on: "any" },
      query: eventsQuery,
      answers: {
        200: { description: "One event per change.", contentType: "text/event-stream", schema: changeEvent },
      },
      handle: (exchange) => streamEvents(exchange, openFeeds),
    },
    {
      method: "GET",
      path: "/livez",
      operationId: "livez",
      summary: "Whether the process answers.",
      kind: "system",
      access: "public",
      answers: one("It does.", livenessAnswer),
      handle: answerLiveness,
    },
    {
      method: "GET",
      path: "/readyz",
      operationId: "readyz",
      summary: "Whether the node may serve, and what keeps it from it.",
      kind: "system",
      access: "public",
      answers: {
        200: { description: "It may.", schema: readinessAnswer },
        503: { description: "It may not, for these reasons.", schema: readinessAnswer },
      },
      handle: answerReadiness,
    },
    {
      method: "GET",
      path: "/.well-known/jwks.json",
      operationId: "jwks",
      summary: "The public keys that grants are verified with; none in open mode.",
      kind: "system",
      access: "public",
      answers: {
        200: { description: "A JWKS.", contentType: "application/jwk-set+json", schema: jwksAnswer },
      },
      handle: answerJwks,
    },
    {
      method: "GET",
      path: "/metrics",
      operationId: "metrics",
      summary: "Measures for Prometheus.",
      kind: "system",
      access: "public",
      answers: { 200: { description: "The measures.", contentType: "text/plain" } },
      handle: answerMetrics,
    },
    {
      method: "GET",
      path: "/openapi.json",
      operationId: "openapi",
      summary: "This document.",
      kind: "system",
      access: "public",
      answers: { 200: { description: "OpenAPI 3.1.", contentType: "application/json" } },
      handle: ({ services: { mode } }) => ({
        status: 200,
        body: (document ??= renderOpenApi(routes, mode)),
        contentType: "application/json",
      }),
    },
  ];
  let document: string | undefined;
  return routes;
}
