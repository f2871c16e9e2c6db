/**
 * Goal: every route asks for the capability of contract 4.1 on the resource that it is about, and lets nobody else in:
 * 401 without a valid grant, 403 with one that does not reach (contract 4.3).
 * Method: the table of all routes, written out; each is knocked at with every kind of grant.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { capabilities, type Capability } from "../../../src/core/grant/capabilities.ts";
import type { Grant, GrantResource } from "../../../src/core/grant/grant.ts";
import { makeRoutes } from "../../../src/http/routes.ts";
import { grantOf, NOW } from "./grant-fixtures.ts";
import { makeKey } from "./token-fixtures.ts";
import { admittedOf, openSecureHttp, verdictOf, work, type SecureHttp } from "./secure-http.ts";
import { issueGrant } from "../../../src/grants/sign-token.ts";

let secure: SecureHttp;
let workloadId: string;
beforeAll(async () => {
  secure = await openSecureHttp();
  const admitted = await secure.ask("/v1/workloads", { token: await secure.issue(), body: work() });
  ({ workloadId } = await admittedOf(admitted));
});
afterAll(() => secure.close());

/** Route → what its grant must have, and on what; `{id}` stands for the workload or the worker. */
const needs: Readonly<Record<string, readonly [Capability, string] | "public">> = {
  "POST /v1/workloads": ["workload:create", "flow://shop/workloads"],
  "POST /v1/workloads/batch": ["workload:create", "flow://shop/workloads"],
  "GET /v1/workloads": ["workload:read", "flow://shop/workloads/{id}"],
  "GET /v1/workloads/{id}": ["workload:read", "flow://shop/workloads/{id}"],
  "GET /v1/workloads/{id}/result": ["workload:read", "flow://shop/workloads/{id}"],
  "GET /v1/workloads/{id}/explain": ["workload:read", "flow://shop/workloads/{id}"],
  "GET /v1/workloads/{id}/placement": ["workload:read", "flow://shop/workloads/{id}"],
  "POST /v1/workloads/{id}/decision": ["workload:approve", "flow://shop/workloads/{id}"],
  "POST /v1/workloads/{id}/cancel": ["workload:cancel", "flow://shop/workloads/{id}"],
  "POST /v1/workloads/{id}/timeout": ["workload:cancel", "flow://shop/workloads/{id}"],
  "POST /v1/workloads/{id}/retry": ["workload:retry", "flow://shop/workloads/{id}"],
  "GET /v1/approvals": ["workload:approve", "flow://shop/workloads/{id}"],
  "GET /v1/events": ["workload:read", "flow://shop/workloads/{id}"],
  "POST /v1/grants/revocations": ["authorization:revoke", "flow://shop/grants"],
  "POST /v1/workers": ["worker:register", "flow://shop/workers"],
  "GET /v1/workers": ["worker:read", "flow://shop/workers/*"],
  "GET /v1/workers/{id}": ["worker:read", "flow://shop/workers/{id}"],
  "POST /v1/workers/{id}/heartbeat": ["worker:heartbeat", "flow://shop/workers/{id}"],
  "POST /v1/workers/{id}/reconcile": ["worker:heartbeat", "flow://shop/workers/{id}"],
  "POST /v1/workers/{id}/drain": ["worker:manage", "flow://shop/workers/{id}"],
  "POST /v1/workers/{id}/recover": ["worker:manage", "flow://shop/workers/{id}"],
  "POST /v1/workers/{id}/remove": ["worker:manage", "flow://shop/workers/{id}"],
  "POST /v1/pools": ["pool:manage", "flow://shop/worker-pools"],
  "GET /v1/pools": ["pool:manage", "flow://shop/worker-pools"],
  "GET /v1/pools/{id}": ["pool:manage", "flow://shop/worker-pools"],
  "POST /v1/pools/{id}/members": ["pool:manage", "flow://shop/worker-pools"],
  "POST /v1/pools/{id}/remove": ["pool:manage", "flow://shop/worker-pools"],
  "POST /v1/claims/validate": ["workload:read", "flow://shop/workloads/{id}"],
  "GET /livez": "public",
  "GET /readyz": "public",
  "GET /metrics": "public",
  "GET /openapi.json": "public",
  "GET /.well-known/jwks.json": "public",
};

/** Routes that show or do several things: without a thing that the grant reaches they show nothing, and do not refuse. */
const perItem = ["GET /v1/workloads", "GET /v1/approvals", "GET /v1/events", "POST /v1/workloads/batch"];

const idOf = (route: string): string => (route.includes("/workers/") ? "worker_0123456789abcdef01234567" : workloadId);

async function knock(route: string, token: string | undefined): Promise<string> {
  const [method, path = ""] = route.split(" ");
  const id = idOf(route);
  const bodies: Readonly<Record<string, unknown>> = {
    "POST /v1/workloads": work(),
    "POST /v1/workloads/batch": [work()],
    "POST /v1/claims/validate": { workloadId: id },
  };
  const response = await secure.ask(path.replace("{id}", id), {
    token,
    method: method === "POST" ? "POST" : "GET",
    ...(method === "POST" ? { body: bodies[route] ?? {} } : {}),
  });
  if (route === "GET /v1/events" && response.status === 200) {
    await response.body?.cancel();
    return "200";
  }
  return verdictOf(response);
}

const isLetIn = (verdict: string): boolean => !/^(?:401|403) /.test(verdict);
const protectedRoutes = Object.entries(needs).flatMap(([route, need]) =>
  need === "public" ? [] : [[route, ...need] as const],
);
const all = (changes: Partial<Grant> = {}): Promise<string> =>
  secure.issue({ capabilities, resources: [{ kind: "APPLICATION", uri: "flow://shop" }], ...changes });

it("the table has every route there is", () => {
  expect(Object.keys(needs).sort()).toEqual(
    makeRoutes()
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
  );
});

describe.each(protectedRoutes)("%s", (route, capability, uri) => {
  const resourceOf = (text: string): GrantResource => ({
    kind: text.endsWith("/*") ? "COLLECTION" : "RESOURCE",
    uri: text.replace("{id}", idOf(route)),
  });

  it("refuses whoever has no valid grant with 401, and says what it wants", async () => {
    const { issuedAt } = grantOf();
    const stranger = await issueGrant(grantOf({ capabilities }), (await makeKey()).signing);
    const cases: [string, string | undefined, string][] = [
      ["none", undefined, "GRANT_INVALID"],
      ["no token", "x", "GRANT_INVALID"],
      ["a stranger's", stranger.ok ? stranger.value : "", "GRANT_INVALID"],
      ["changed", `${(await all()).slice(0, -3)}AAA`, "GRANT_INVALID"],
      ["expired", await all({ issuedAt, expiresAt: NOW }), "GRANT_EXPIRED"],
      ["early", await all({ issuedAt: NOW + 60_000 }), "GRANT_INVALID"],
      ["superseded", await all({ status: "SUPERSEDED" }), "GRANT_REVOKED"],
    ];
    for (const [what, token, code] of cases) expect([what, await knock(route, token)]).toEqual([what, `401 ${code}`]);
  });

  it(`lets ${capability} in, and nothing else`, async () => {
    const resources: Grant["resources"] = [{ kind: "APPLICATION", uri: "flow://shop" }];
    const extra = route === "GET /v1/approvals" ? ["workload:read"] : [];
    expect(isLetIn(await knock(route, await all({ capabilities: [capability, ...extra], resources })))).toBe(true);
    const others = capabilities.filter((name) => name !== capability);
    expect(await knock(route, await all({ capabilities: others }))).toBe("403 GRANT_SCOPE_DENIED");
  });

  it.skipIf(perItem.includes(route))(`lets a grant in that reaches ${uri}, and no other`, async () => {
    expect(isLetIn(await knock(route, await all({ resources: [resourceOf(uri)] })))).toBe(true);
    const elsewhere = [
      resourceOf(`${uri.replace("/*", "")}x`),
      resourceOf("flow://shop/other"),
      resourceOf("flow://shop"),
    ];
    expect(await knock(route, await all({ resources: elsewhere }))).toBe("403 GRANT_SCOPE_DENIED");
    expect(await knock(route, await all({ resources: [] }))).toBe("403 GRANT_SCOPE_DENIED");
  });

  it("refuses a delegated grant that is not within its parent", async () => {
    const verified = await secure.delegate({ capabilities }, {});
    expect(isLetIn(await knock(route, verified))).toBe(true);
    // The chain is cut off: the delegated grant's own token alone.
    const claims = JSON.parse(Buffer.from(verified.split(".")[1] ?? "", "base64url").toString()) as {
      readonly chain: readonly string[];
    };
    expect(await knock(route, claims.chain[0])).toBe("403 GRANT_DELEGATION_INVALID");
  });
});

describe("public routes", () => {
  it.each(Object.keys(needs).filter((route) => needs[route] === "public"))("%s answers whoever asks", async (route) => {
    expect(await knock(route, undefined)).toBe("200");
    expect(await knock(route, "nonsense")).toBe("200");
  });

  it("publish the keys, and never a private part", async () => {
    const response = await secure.ask("/.well-known/jwks.json");
    expect(response.headers.get("content-type")).toBe("application/jwk-set+json");
    expect(await response.json()).toEqual({ keys: [secure.key.signing.publicKey.jwk] });
  });
});

it("a refusal says how to ask, and in which mode the node runs", async () => {
  const response = await secure.ask("/v1/workloads");
  expect(response.headers.get("www-authenticate")).toBe("Bearer");
  expect(response.headers.get("mandate-mode")).toBe("secure");
  expect(await verdictOf(await secure.ask("/v1/workloads", { headers: { "X-Mandate-Subject": "human:ada" } }))).toBe(
    "401 GRANT_INVALID",
  );
  const basic = { authorization: `Basic ${await all()}` };
  expect(await verdictOf(await secure.ask("/v1/workloads", { headers: basic }))).toBe("401 GRANT_INVALID");
});

it("nothing that was logged holds a token, or a part of one", async () => {
  const token = await all();
  await knock("GET /v1/workloads", token);
  await knock("GET /v1/workloads", `${token}x`);
  const parts = token.split(".");
  expect(secure.logged.length).toBeGreaterThan(0);
  for (const line of secure.logged) for (const part of parts) expect(line).not.toContain(part.slice(0, 40));
});
