import { headers, type Msg, type NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { Registry } from "prom-client";
import { expect } from "vitest";
import { poll } from "../../cluster/poll.ts";
import { assert } from "../../src/base/assert.ts";
import { silentLog } from "../../src/base/log.ts";
import { errorRegistry, isErrorCode } from "../../src/core/errors.ts";
import {
  startWorkerService,
  type WorkerGrants,
  type WorkerService,
  type WorkerServiceOptions,
} from "../../src/nats/worker-service.ts";
import { Authority } from "../../src/testing.ts";
import { StoreSetting } from "./store-setting.ts";

export interface Reply {
  readonly status: string | undefined;
  readonly error: string | undefined;
  readonly body: Record<string, unknown>;
}

/** An answer in JSON, with what its headers say of an error. */
export const replyOf = (message: Msg): Reply => ({
  status: message.headers?.get("Nats-Service-Error-Code") || undefined,
  error: message.headers?.get("Nats-Service-Error") || undefined,
  body: message.json(),
});

/** What a refusal says, its headers and its body agreeing: the code, and the paths that it names. */
export async function refusalOf(reply: Reply | Promise<Reply>): Promise<readonly [string, unknown]> {
  const { status, error, body } = await reply;
  assert(isErrorCode(error), `a refusal has a code of the registry, not ${String(error)}`);
  expect(status).toBe(String(errorRegistry[error].httpStatus));
  expect(body).toMatchObject({
    code: error,
    status: errorRegistry[error].httpStatus,
    definite: errorRegistry[error].definite,
    retry: errorRegistry[error].retry,
  });
  return [error, (body["details"] as { paths?: unknown } | undefined)?.paths];
}

/** A nats-server with the store on it, an authority that serves workers, and a client. */
export class WorkerSetting {
  readonly #store: StoreSetting;
  readonly #closers: (() => Promise<void>)[] = [];
  readonly client: NatsConnection;
  readonly authority: Authority;
  readonly #metrics: Registry;
  #service: WorkerService;
  #admitted = 0;

  private constructor(parts: {
    readonly store: StoreSetting;
    readonly client: NatsConnection;
    readonly authority: Authority;
    readonly service: WorkerService;
    readonly metrics: Registry;
  }) {
    this.#store = parts.store;
    this.client = parts.client;
    this.authority = parts.authority;
    this.#service = parts.service;
    this.#metrics = parts.metrics;
  }

  static async start(metrics: Registry = new Registry(), grants?: WorkerGrants): Promise<WorkerSetting> {
    const store = await StoreSetting.start({ servers: 1 });
    const authority = await startAuthority(store, "node-1");
    const client = await connect({ servers: store.cluster.urls });
    const { service, connection } = await serve(store, authority, {
      metrics,
      ...(grants === undefined ? {} : { grants }),
    });
    const setting = new WorkerSetting({ store, client, authority, service, metrics });
    setting.onClose(() => connection.close());
    return setting;
  }

  get urls(): string[] {
    return [...this.#store.cluster.urls];
  }

  /** Another authority on the same store; `idle`: it does not begin to follow it. */
  async addAuthority(nodeId: string, how: "ready" | "idle" = "ready"): Promise<Authority> {
    const authority = await startAuthority(this.#store, nodeId, how);
    this.onClose(() => authority.close());
    return authority;
  }

  /** Another service. */
  async serve(
    authority: Authority,
    options: Partial<Pick<WorkerServiceOptions, "limits" | "metrics">> = {},
  ): Promise<WorkerService> {
    const { service, connection } = await serve(this.#store, authority, options);
    this.onClose(() => connection.close());
    return service;
  }

  /** Does something while the first service does not answer. */
  async withoutService(run: () => Promise<void>): Promise<void> {
    await this.#service.stop();
    try {
      await run();
    } finally {
      this.#metrics.clear();
      this.#service = await this.serve(this.authority, { metrics: this.#metrics });
    }
  }

  /** Admits work into an application of its own; its id, and the prefix of the subjects that reach it. */
  async admit(changes: object = {}): Promise<{ readonly workloadId: string; readonly prefix: string }> {
    const applicationId = `app${this.#admitted++}`;
    const alice = { kind: "human", id: "alice" } as const;
    const request = {
      tenantId: "acme",
      applicationId,
      environment: "test",
      definitionId: "resize",
      definitionRevision: "1",
      trigger: "test",
      input: { size: 3 },
      requestedBy: alice,
      idempotencyKey: "key",
      ...changes,
    };
    const scope = { tenantId: request.tenantId, applicationId: request.applicationId };
    const authorization = { ...scope, grantId: "g", issuer: "test", subject: alice };
    const { workload } = await this.authority.admit({ authorization, ...request });
    return { workloadId: workload.workloadId, prefix: `mandate.v1.acme.${applicationId}` };
  }

  async ask(subject: string, value: unknown): Promise<Reply> {
    return replyOf(await this.client.request(subject, JSON.stringify(value), { timeout: 10_000 }));
  }

  /** Asks under a grant. */
  async askWith(token: string, subject: string, value: unknown): Promise<Reply> {
    const made = headers();
    made.set("Mandate-Grant", token);
    const options = { headers: made, timeout: 70_000 };
    return replyOf(await this.client.request(subject, JSON.stringify(value), options));
  }

  /** Sends a payload as it is. */
  async send(subject: string, payload: string | Uint8Array, contentType?: string): Promise<Msg> {
    const made = headers();
    if (contentType !== undefined) made.set("Content-Type", contentType);
    return this.client.request(subject, payload, { headers: made, timeout: 10_000 });
  }

  onClose(closer: () => Promise<void>): void {
    this.#closers.push(closer);
  }

  async close(): Promise<void> {
    await this.#service.stop();
    for (const closer of this.#closers.toReversed()) await closer();
    await this.client.close();
    await this.authority.close();
    await this.#store.close();
  }
}

async function startAuthority(
  setting: StoreSetting,
  nodeId: string,
  how: "ready" | "idle" = "ready",
): Promise<Authority> {
  const store = await setting.open({ epoch: "worker", clientId: nodeId, storage: "memory" });
  const authority = new Authority({ store, nodeId, nonce: nodeId, log: silentLog });
  if (how === "idle") return authority;
  authority.open();
  expect(await poll(() => (authority.readiness().ready ? true : undefined), { timeoutMs: 30_000 })).toBe(true);
  return authority;
}

async function serve(
  setting: StoreSetting,
  authority: Authority,
  options: Partial<Pick<WorkerServiceOptions, "grants" | "limits" | "metrics">>,
): Promise<{ readonly service: WorkerService; readonly connection: NatsConnection }> {
  const connection = await connect({ servers: setting.cluster.urls, noAsyncTraces: true });
  const metrics = options.metrics ?? new Registry();
  const service = await startWorkerService({ connection, authority, log: silentLog, ...options, metrics });
  return { service, connection };
}
