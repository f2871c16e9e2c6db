import { Registry } from "prom-client";
import type { Hono } from "hono";
import { silentLog } from "../../src/base/log.ts";
import { createHttpApp, type HttpAppOptions } from "../../src/http/app.ts";
import type { HttpEnvironment } from "../../src/http/context.ts";
import { createTestCluster, type TestCluster, type TestClusterOptions } from "../../src/testing.ts";
import { assert } from "../../src/base/assert.ts";

/** An HTTP door over an authority in this process, and how to knock. */
export interface HttpSetting {
  readonly cluster: TestCluster;
  readonly app: Hono<HttpEnvironment>;
  readonly registry: Registry;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** A body exactly as it is given. */
  send(path: string, body: string | Uint8Array, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

export const alice = { kind: "human", id: "alice" } as const;
export const bob = { kind: "human", id: "bob" } as const;
const asAlice = { "X-Mandate-Subject": "human:alice" };

export async function openHttp(
  options: TestClusterOptions & Pick<HttpAppOptions, "config" | "stopping"> = {},
): Promise<HttpSetting> {
  const cluster = await createTestCluster({ now: 10_000, ...options });
  const registry = new Registry();
  const [authority] = cluster.nodes;
  assert(authority !== undefined, "a cluster has a node");
  const { config, stopping } = options;
  const app = createHttpApp({
    authority,
    log: silentLog,
    metrics: registry,
    ...(config === undefined ? {} : { config }),
    ...(stopping === undefined ? {} : { stopping }),
  });
  const send: HttpSetting["send"] = async (path, body, headers = {}) =>
    app.request(path, {
      method: "POST",
      headers: { ...asAlice, "content-type": "application/json", ...headers },
      body,
    });
  return {
    cluster,
    app,
    registry,
    get: async (path, headers = {}) => app.request(path, { headers: { ...asAlice, ...headers } }),
    post: (path, body, headers) => send(path, JSON.stringify(body ?? {}), headers),
    send,
    close: () => cluster.close(),
  };
}

/** A request to admit work, as alice would send it. */
export const admission = (changes: object = {}): Record<string, unknown> => ({
  tenantId: "acme",
  applicationId: "shop",
  environment: "test",
  definitionId: "resize",
  definitionRevision: "1",
  trigger: "test",
  input: { size: 3 },
  idempotencyKey: "key-1",
  ...changes,
});

/** The body of an answer as an object whose members are looked at one by one. */
export const membersOf = async (response: Response): Promise<Record<string, unknown>> =>
  (await response.json()) as Record<string, unknown>;

/** Status, code and paths of a refusal. */
export async function refusalOf(response: Response): Promise<readonly [number, unknown, unknown?]> {
  const body = (await response.json()) as { code?: unknown; details?: { paths?: unknown } };
  return body.details?.paths === undefined
    ? [response.status, body.code]
    : [response.status, body.code, body.details.paths];
}
