/**
 * Goal: the OpenAPI document says what the router does, no more and no less, and answers look as it says.
 * Method: the document's operations and the router's are compared both ways; answers of a run are held to the shapes
 * that the document is made of.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { assert } from "../../src/base/assert.ts";
import * as schemas from "../../src/http/schemas.ts";
import { admission, openHttp, type HttpSetting } from "./http-setting.ts";

let http: HttpSetting;

beforeEach(async () => {
  http = await openHttp();
});
afterEach(() => http.close());

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: object } } };
  readonly responses: Readonly<Record<string, unknown>>;
}

async function operations(): Promise<ReadonlyMap<string, Operation>> {
  const response = await http.app.request("/openapi.json");
  const { openapi, paths } = (await response.json()) as {
    openapi: string;
    paths: Record<string, Record<string, Operation>>;
  };
  expect(openapi).toBe("3.1.0");
  return new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
    ),
  );
}

test("the document and the router have the same routes", async () => {
  const documented = [...(await operations()).keys()].map((route) => route.replaceAll(/\{(\w+)\}/g, ":$1"));
  const routed = http.app.routes.map(({ method, path }) => `${method} ${path}`);
  expect(routed.sort()).toEqual(documented.sort());
});

test("the document has the routes of contract 6.2, and those about workers and pools", async () => {
  expect([...(await operations()).keys()].sort()).toEqual(
    [
      "POST /v1/workloads",
      "POST /v1/workloads/batch",
      "GET /v1/workloads",
      "GET /v1/workloads/{id}",
      "GET /v1/workloads/{id}/result",
      "GET /v1/workloads/{id}/explain",
      "POST /v1/workloads/{id}/decision",
      "POST /v1/workloads/{id}/cancel",
      "POST /v1/workloads/{id}/retry",
      "POST /v1/workloads/{id}/timeout",
      "GET /v1/approvals",
      "GET /v1/events",
      "POST /v1/grants/revocations",
      "GET /.well-known/jwks.json",
      "POST /v1/workers",
      "GET /v1/workers",
      "GET /v1/workers/{id}",
      "POST /v1/workers/{id}/heartbeat",
      "POST /v1/workers/{id}/reconcile",
      "POST /v1/workers/{id}/drain",
      "POST /v1/workers/{id}/recover",
      "POST /v1/workers/{id}/remove",
      "POST /v1/pools",
      "GET /v1/pools",
      "GET /v1/pools/{id}",
      "POST /v1/pools/{id}/members",
      "POST /v1/pools/{id}/remove",
      "GET /v1/workloads/{id}/placement",
      "POST /v1/claims/validate",
      "GET /livez",
      "GET /readyz",
      "GET /metrics",
      "GET /openapi.json",
    ].sort(),
  );
});

test("each operation names its parameters, its body and the form of its refusals, and every reference leads somewhere", async () => {
  const text = await (await http.app.request("/openapi.json")).text();
  expect([...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference)).not.toContainEqual(
    expect.not.stringMatching(/^#\/components\/responses\/Problem$/),
  );
  for (const [route, { parameters, requestBody, responses }] of await operations()) {
    const names = parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
    expect(new Set(names).size).toBe(names.length);
    expect(names.includes("path id")).toBe(route.includes("{id}"));
    expect(names.includes("header X-Mandate-Subject")).toBe(route.includes("/v1/"));
    expect(requestBody !== undefined).toBe(route.startsWith("POST"));
    expect(responses["default"]).toEqual({ $ref: "#/components/responses/Problem" });
  }
});

test("the query parameters that the document names are taken, and others are not", async () => {
  for (const [route, { parameters }] of await operations()) {
    if (!route.startsWith("GET /v1/") || route.endsWith("/events")) continue;
    const path = route.slice(4).replace("{id}", "nobody");
    for (const { name } of parameters.filter((parameter) => parameter.in === "query")) {
      const response = await http.get(`${path}?${name}=%00`);
      const { details } = (await response.json()) as { details?: { issues?: { path: string; message: string }[] } };
      expect(details?.issues?.map(({ message }) => message)).not.toContain("is not a parameter of this request");
    }
    const other = await http.get(`${path}?surplus=1`);
    expect(await other.json()).toMatchObject({ details: { issues: [{ path: "surplus" }] } });
  }
});

test("answers have the shapes that the document gives", async () => {
  const [node] = http.cluster.nodes;
  assert(node !== undefined, "a cluster has a node");
  const admitted = schemas.admitAnswer.parse(
    await (await http.post("/v1/workloads", admission({ approval: {} }))).json(),
  );
  const { workloadId, inputHash } = admitted.workload;
  const path = `/v1/workloads/${workloadId}`;
  schemas.admitManyAnswer.parse(
    await (await http.post("/v1/workloads/batch", [admission({ approval: {} }), 1])).json(),
  );
  schemas.explainAnswer.parse(await (await http.get(`${path}/explain`)).json());
  const bob = { "X-Mandate-Subject": "human:bob" };
  const approvals = schemas.pageAnswer.parse(await (await http.get("/v1/approvals", bob)).json());
  expect(approvals.workloads).toHaveLength(1);
  const verdict = { outcome: "approved", inputHash };
  schemas.decideAnswer.parse(await (await http.post(`${path}/decision`, verdict, bob)).json());
  const claim = await node.claim({ workloadId, workerId: "w", leaseMs: 1000, start: true });
  const fence = { workloadId, workerId: "w", claimId: claim.claimId, fencingToken: claim.fencingToken };
  await node.checkpoint({ ...fence, state: [1] });
  await node.complete({ ...fence, output: 1 });
  schemas.workload.parse(await (await http.get(path)).json());
  schemas.pageAnswer.parse(await (await http.get("/v1/workloads?limit=1")).json());
  const result = schemas.resultAnswer.parse(await (await http.get(`${path}/result`)).json());
  expect(result).toMatchObject({ settled: true, result: { output: 1 } });
  schemas.problem.parse(await (await http.post(`${path}/retry`)).json());
  schemas.readinessAnswer.parse(await (await http.app.request("/readyz")).json());
  schemas.livenessAnswer.parse(await (await http.app.request("/livez")).json());
  const other = await http.post("/v1/workloads", admission({ idempotencyKey: "other" }));
  const { workload } = schemas.admitAnswer.parse(await other.json());
  schemas.stateAnswer.parse(await (await http.post(`/v1/workloads/${workload.workloadId}/cancel`)).json());
});
