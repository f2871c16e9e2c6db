import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { assert } from "../../../src/base/assert.ts";
import type { Log } from "../../../src/base/log.ts";
import type { Grant } from "../../../src/core/grant/grant.ts";
import { GrantVerifier } from "../../../src/grants/grant-verifier.ts";
import { KeyRing } from "../../../src/grants/key-ring.ts";
import { delegateGrant, issueGrant } from "../../../src/grants/sign-token.ts";
import { createHttpApp } from "../../../src/http/app.ts";
import { createTestCluster, type TestCluster } from "../../../src/testing.ts";
import { childOf, grantOf, NOW } from "./grant-fixtures.ts";
import { makeKey, writeKey, type TestKey } from "./token-fixtures.ts";

/** Two nodes with keys, each with its HTTP door, and what was logged. */
export interface SecureHttp {
  readonly cluster: TestCluster;
  readonly key: TestKey;
  readonly ring: KeyRing;
  readonly verifier: GrantVerifier;
  readonly logged: string[];
  /** Signs a grant that reaches all of application `shop`, with what a test changes. */
  issue(changes?: Partial<Grant>): Promise<string>;
  /** Signs a grant that is delegated from the one of {@link SecureHttp.issue} with the same changes. */
  delegate(parent: Partial<Grant>, child: Partial<Grant>): Promise<string>;
  /** Asks a node, the first if none is named. */
  ask(path: string, how?: Asked): Promise<Response>;
  /** The key file is gone, and the nodes know it. */
  takeKeyAway(): Promise<void>;
  /** There is another key beside it, and the nodes know it. */
  addKey(): Promise<void>;
  close(): Promise<void>;
}

export interface Asked {
  readonly token?: string | undefined;
  /** Sent as JSON, by POST; a stream as it is. */
  readonly body?: unknown;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly node?: number;
}

/** Everything that a requester, an approver and an operator need. */
export const allCapabilities = [
  ...["workload:create", "workload:read", "workload:cancel", "workload:retry", "workload:approve"],
  ...["worker:register", "worker:read", "worker:heartbeat", "worker:manage", "pool:manage", "authorization:revoke"],
] as const;

async function signed(
  key: TestKey,
  grant: Grant,
  parent?: { readonly grant: Grant; readonly token: string },
): Promise<string> {
  const token =
    parent === undefined
      ? await issueGrant(grant, key.signing)
      : await delegateGrant(grant, {
          key: key.signing,
          parent: { grant: parent.grant, chain: [] },
          parentToken: parent.token,
        });
  assert(token.ok, token.ok ? "" : token.error.message);
  return token.value;
}

export async function openSecureHttp(): Promise<SecureHttp> {
  const folder = await mkdtemp(join(tmpdir(), "mandate-secure-"));
  const key = await makeKey();
  await writeKey(folder, "key.json", key.jwk);
  const logged: string[] = [];
  const line = (fields: object, message: string): void => void logged.push(JSON.stringify([fields, message]));
  const log: Log = { debug: line, info: line, warn: line, error: line };
  const ring = await KeyRing.open({ path: folder, log, everyMs: 3_600_000 });
  const verifier = new GrantVerifier(ring);
  const cluster = await createTestCluster({ now: NOW, nodes: 2 });
  const grants = { verify: (token: string) => verifier.verify(token), jwks: () => ring.jwks() };
  const apps = cluster.nodes.map((authority) => createHttpApp({ authority, log, metrics: new Registry(), grants }));
  const wide = (changes: Partial<Grant>): Grant => grantOf({ capabilities: allCapabilities, ...changes });
  return {
    cluster,
    key,
    ring,
    verifier,
    logged,
    issue: (changes = {}) => signed(key, wide(changes)),
    delegate: async (parent, child) => {
      const grant = wide(parent);
      return signed(key, childOf(grant, child), { grant, token: await signed(key, grant) });
    },
    ask: async (path, { token, body, method, headers = {}, node = 0 } = {}) => {
      const app = apps[node];
      assert(app !== undefined, "there is such a node");
      return app.request(path, {
        method: method ?? (body === undefined ? "GET" : "POST"),
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: body instanceof ReadableStream ? body : JSON.stringify(body) }),
        ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
      });
    },
    addKey: async () => {
      await writeKey(folder, "further.json", (await makeKey()).jwk);
      await ring.reload();
    },
    takeKeyAway: async () => {
      await rm(join(folder, "key.json"));
      await ring.reload();
    },
    close: async () => {
      ring.close();
      await cluster.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Whom the tests' grants are for. */
export const orders = { kind: "service", id: "orders" } as const;
export const ada = { kind: "human", id: "ada" } as const;
/** What makes a grant another tenant's. */
export const bank = { tenantId: "bank", resources: [{ kind: "APPLICATION" as const, uri: "flow://shop" }] };

/** A request to admit work, as a requester with a grant sends it. */
export const work = (changes: object = {}): Record<string, unknown> => ({
  environment: "test",
  definitionId: "resize",
  definitionRevision: "1",
  trigger: "test",
  input: { size: 3 },
  idempotencyKey: "key-1",
  ...changes,
});

/** Status and code of an answer. */
export async function verdictOf(response: Response): Promise<string> {
  const text = await response.text();
  const { code } = (text.startsWith("{") ? JSON.parse(text) : {}) as { readonly code?: string };
  return code === undefined ? String(response.status) : `${response.status} ${code}`;
}

/** The workload that was admitted. */
export async function admittedOf(
  response: Response,
): Promise<Record<string, unknown> & { readonly workloadId: string }> {
  assert(
    response.status === 201,
    `admitted with ${response.status}: ${response.status === 201 ? "" : await response.text()}`,
  );
  const { workload } = (await response.json()) as {
    readonly workload: Record<string, unknown> & { readonly workloadId: string };
  };
  return workload;
}
