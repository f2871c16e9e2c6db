/**
 * Goal: what only a real connection shows: the address that a request comes from, a grant of full size, a client that is
 * given another, and an address other than this machine's own.
 * Method: the HTTP server over an authority in this process, asked over sockets.
 */
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { assert } from "../../src/base/assert.ts";
import { silentLog } from "../../src/base/log.ts";
import type { MandateError } from "../../src/core/errors.ts";
import type { Grant } from "../../src/core/grant/grant.ts";
import { issueGrant } from "../../src/grants/sign-token.ts";
import { TOKEN_BYTES_MAX } from "../../src/grants/token-format.ts";
import { verifyToken } from "../../src/grants/verify-token.ts";
import { startHttpServer, type HttpServer } from "../../src/http/server.ts";
import { connect } from "../../src/sdk/client.ts";
import { createTestCluster, type TestCluster } from "../../src/testing.ts";
import { grantOf, NOW } from "../unit/grant/grant-fixtures.ts";
import { makeKey, type TestKey } from "../unit/grant/token-fixtures.ts";

let cluster: TestCluster;
let server: HttpServer;
let key: TestKey;

const serverOptions = () => {
  const [authority] = cluster.nodes;
  assert(authority !== undefined, "a cluster has a node");
  return { authority, log: silentLog, metrics: new Registry(), port: 0 };
};
const grants = {
  verify: (token: string) => verifyToken(token, (kid) => (kid === key.kid ? key.signing.publicKey : undefined)),
  jwks: () => '{"keys":[]}',
};

beforeAll(async () => {
  key = await makeKey();
  cluster = await createTestCluster({ now: NOW });
  server = await startHttpServer({ ...serverOptions(), grants });
});
afterAll(async () => {
  await server.stop();
  await cluster.close();
});

const tokenOf = async (changes: Partial<Grant>): Promise<string> => {
  const token = await issueGrant(grantOf(changes), key.signing);
  assert(token.ok, token.ok ? "" : token.error.message);
  return token.value;
};

async function ask(token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${server.url}/v1/workloads/workload_0123456789abcdef01234567`, { headers });
  const { code } = (await response.json()) as { readonly code: string };
  return `${response.status} ${code}`;
}

it("takes a client's next grant from the call on in which it is told it", async () => {
  const client = connect({ url: server.url, token: await tokenOf({ expiresAt: NOW - 1 }), deadlineMs: 0 });
  const code = (): Promise<string> =>
    client.get("workload_0123456789abcdef01234567").then(
      () => "",
      (thrown: unknown) => (thrown as MandateError).code,
    );
  expect(await code()).toBe("GRANT_EXPIRED");
  expect(() => client.useToken("no grant\r\n")).toThrow(/token is no grant/);
  expect(() => connect({ url: server.url, token: "" })).toThrow(/token is no grant/);
  client.useToken(await tokenOf({}));
  expect(await code()).toBe("WORKLOAD_NOT_FOUND");
});

it.each([
  ["127.0.0.0/8", "404 WORKLOAD_NOT_FOUND"],
  ["127.0.0.1", "404 WORKLOAD_NOT_FOUND"],
  ["10.0.0.0/8", "403 GRANT_SCOPE_DENIED"],
  ["::/0", "403 GRANT_SCOPE_DENIED"],
])("a grant for the network %s: %s", async (network, expected) => {
  expect(await ask(await tokenOf({ constraints: { network } }))).toBe(expected);
});

it("a grant of full size reaches the node, and a larger one is refused in due form", async () => {
  const contextAttributes = Object.fromEntries(Array.from({ length: 96 }, (_, at) => [`name${at}`, "x".repeat(100)]));
  const token = await tokenOf({ constraints: { contextAttributes } });
  expect(token.length).toBeGreaterThan(TOKEN_BYTES_MAX * 0.9);
  expect(await ask(token)).toBe("403 GRANT_SCOPE_DENIED");
  expect(await ask(`${token}${"x".repeat(TOKEN_BYTES_MAX - token.length)}`)).toBe("401 GRANT_INVALID");
  expect(await ask("x".repeat(TOKEN_BYTES_MAX + 1))).toBe("401 GRANT_INVALID");
});

it("with keys a node listens where it is told, and without on this machine alone", async () => {
  const open = startHttpServer({ ...serverOptions(), host: "0.0.0.0" });
  await expect(open).rejects.toMatchObject({ code: "WORKLOAD_INVALID", details: { paths: ["host"] } });
  const other = await startHttpServer({ ...serverOptions(), grants, host: "localhost" });
  expect(other.url).toBe(`http://localhost:${other.port}`);
  const live = await fetch(`${other.url}/livez`);
  expect(await live.json()).toMatchObject({ mode: "secure" });
  await other.stop();
});
