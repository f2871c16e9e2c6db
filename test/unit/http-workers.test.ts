/**
 * Goal: operators, and workers that speak HTTP, can do with workers and pools over HTTP whatever the authority can do.
 * Method: an authority in this process behind the door; every answer is held to the shape that the document gives of it.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { z } from "zod";
import * as schemas from "../../src/http/worker-schemas.ts";
import { admission, membersOf, openHttp, refusalOf, type HttpSetting } from "./http-setting.ts";

let http: HttpSetting;

beforeEach(async () => {
  http = await openHttp();
});
afterEach(() => http.close());

const owner = "tenantId=acme&applicationId=shop";
const described = {
  tenantId: "acme",
  applicationId: "shop",
  name: "press-1",
  runtime: "process",
  version: "1",
  concurrency: 2,
  declaredCapabilities: ["gpu"],
};
const told = { version: "1", capabilityVersion: 0, timestamp: 10_000 };

async function answered<Schema extends z.ZodType>(
  response: Promise<Response>,
  status: number,
  schema: Schema,
): Promise<z.output<Schema>> {
  const answer = await response;
  const body: unknown = await answer.json();
  expect([answer.status, body]).toEqual([status, body]);
  return schema.parse(body);
}

test("a worker is registered, heard, drained, recovered, reconciled and removed", async () => {
  const created = await http.post("/v1/workers", described);
  expect(created.headers.get("mandate-revision")).toMatch(/^[1-9]/);
  const { worker } = schemas.registerAnswer.parse(await created.json());
  const path = `/v1/workers/${worker.workerId}`;
  expect([created.status, created.headers.get("location")]).toEqual([201, path]);
  await answered(http.post("/v1/workers", described), 200, schemas.registerAnswer);
  const beat = { ...told, health: "HEALTHY" };
  const heard = await answered(http.post(`${path}/heartbeat?${owner}`, beat), 200, schemas.heartbeatAnswer);
  expect(heard.worker.lifecycle).toBe("READY");
  expect((await answered(http.get(`${path}?${owner}`), 200, schemas.worker)).capacity.active).toBe(0);
  expect((await answered(http.get(`/v1/workers?${owner}&limit=1`), 200, schemas.workersAnswer)).workers).toHaveLength(
    1,
  );
  const drained = await answered(http.post(`${path}/drain?${owner}`), 200, schemas.worker);
  expect(drained.lifecycle).toBe("OFFLINE");
  await answered(http.post(`${path}/recover?${owner}`), 200, schemas.worker);
  const step = { ...told, knownClaims: ["claim_old"] };
  const again = await answered(http.post(`${path}/reconcile?${owner}`, step), 200, schemas.reconcileAnswer);
  expect([again.fencedClaims, again.worker.lifecycle]).toEqual([["claim_old"], "READY"]);
  await answered(http.post(`${path}/remove?${owner}`), 200, schemas.worker);
  expect(await refusalOf(await http.get(`${path}?${owner}`))).toEqual([404, "WORKER_NOT_FOUND"]);
});

test("a pool is created, changed, listed and removed", async () => {
  const { worker } = schemas.registerAnswer.parse(await membersOf(await http.post("/v1/workers", described)));
  const wanted = { tenantId: "acme", applicationId: "shop", name: "presses", maxConcurrency: 1 };
  const { poolId } = await answered(http.post("/v1/pools", wanted), 201, schemas.pool);
  expect(await refusalOf(await http.post("/v1/pools", wanted))).toEqual([409, "WORKER_POOL_EXISTS"]);
  const path = `/v1/pools/${poolId}`;
  const changed = await answered(http.post(`${path}/members?${owner}`, { add: [worker.workerId] }), 200, schemas.pool);
  expect(changed.workerIds).toEqual([worker.workerId]);
  expect(await answered(http.get(`${path}?${owner}`), 200, schemas.pool)).toEqual(changed);
  expect((await answered(http.get(`/v1/pools?${owner}`), 200, schemas.poolsAnswer)).pools).toEqual([changed]);
  await answered(http.post(`${path}/remove?${owner}`), 200, schemas.pool);
  expect(await refusalOf(await http.get(`${path}?${owner}`))).toEqual([404, "WORKER_POOL_NOT_FOUND"]);
});

test("it is told who should run a workload, or why nobody may, and whether a claim counts", async () => {
  const admitted = await membersOf(await http.post("/v1/workloads", admission({ capabilities: ["gpu"] })));
  const { workloadId } = admitted["workload"] as { readonly workloadId: string };
  const path = `/v1/workloads/${workloadId}/placement?${owner}`;
  expect(await refusalOf(await http.get(path))).toEqual([409, "MESH_NO_ELIGIBLE_WORKER"]);
  const { worker } = schemas.registerAnswer.parse(await membersOf(await http.post("/v1/workers", described)));
  await http.post(`/v1/workers/${worker.workerId}/heartbeat?${owner}`, { ...told, health: "HEALTHY" });
  expect((await answered(http.get(path), 200, schemas.placementAnswer)).selectedWorker).toBe(worker.workerId);
  const [node] = http.cluster.nodes;
  const scope = { tenantId: "acme", applicationId: "shop" };
  const claim = await node?.placeAndClaim({ ...scope, workloadId, workerId: worker.workerId, leaseMs: 1000 });
  await answered(http.post("/v1/claims/validate", { ...scope, ...claim }), 200, schemas.validAnswer);
  const stale = await http.post("/v1/claims/validate", { ...scope, ...claim, fencingToken: 7 });
  expect(await refusalOf(stale)).toEqual([409, "MESH_STALE_FENCE"]);
});

test.each([
  ["POST", "/v1/workers", { ...described, runtime: "vm" }, ["runtime"]],
  ["POST", "/v1/workers", { ...described, concurrency: 0 }, ["concurrency"]],
  ["POST", "/v1/workers", { ...described, labels: { zone: 7 } }, ["labels.zone"]],
  ["POST", "/v1/workers", { ...described, colour: "red" }, ["colour"]],
  ["POST", `/v1/workers/worker_0/heartbeat?${owner}`, { ...told, health: "FINE" }, ["health"]],
  ["POST", "/v1/workers/worker_0/drain", {}, ["tenantId", "applicationId"]],
  ["POST", "/v1/pools", { tenantId: "acme", name: "p", maxConcurrency: 1 }, ["applicationId"]],
  ["GET", "/v1/workers?tenantId=acme", undefined, ["applicationId"]],
])("%s %s names what is wrong", async (method, path, body, paths) => {
  const response = await (method === "GET" ? http.get(path) : http.post(path, body));
  expect(await refusalOf(response)).toEqual([400, "WORKER_INVALID", paths]);
});
