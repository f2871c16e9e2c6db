import type { NatsConnection } from "@nats-io/nats-core";
import { workSubject, type WorkVerb } from "../src/wire/subjects.ts";
import { HttpConnection } from "./http-client.ts";
import {
  admissionOf,
  claimNextOf,
  completionOf,
  fenceOf,
  leaseMs,
  requester,
  scope,
  type HeldClaim,
  firstBeatOf,
  registrationOf,
} from "./sample-work.ts";

/** How long a call may take beside what it waits for, ms. */
const TIMEOUT_MS = 15_000;

/** An answer that is not what the load expects. */
class Refused extends Error {
  override readonly name = "Refused";
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

export interface ClaimOptions {
  readonly waitMs?: number;
  readonly requestId?: string;
  readonly queue?: string;
}

/** The product from outside: a requester over HTTP, a worker over NATS. Nothing is repeated. */
export class ProductClient {
  readonly #nats: NatsConnection;
  readonly #connections: readonly HttpConnection[];

  private constructor(nats: NatsConnection, connections: readonly HttpConnection[]) {
    this.#nats = nats;
    this.#connections = connections;
  }

  /** Opens one HTTP connection a lane; lane i goes to node i modulo their number. */
  static async open(nats: NatsConnection, urls: readonly string[], lanes: number): Promise<ProductClient> {
    const opened = Array.from({ length: lanes }, (_, lane) => HttpConnection.open(urls[lane % urls.length] ?? ""));
    return new ProductClient(nats, await Promise.all(opened));
  }

  async admit(lane: number, idempotencyKey: string, queue?: string): Promise<void> {
    const connection = this.#connections[lane];
    if (connection === undefined) throw new RangeError(`no lane ${lane}`);
    const subject = `${requester.kind}:${requester.id}`;
    const { status, body } = await connection.post("/v1/workloads", admissionOf(idempotencyKey, queue), subject);
    if (status !== 201) throw new Refused(`HTTP ${status} ${body.slice(0, 200)}`);
  }

  /** Admits up to 1,000 pieces of work in one request. */
  async admitMany(lane: number, keys: readonly string[], queue?: string): Promise<void> {
    const connection = this.#connections[lane];
    if (connection === undefined) throw new RangeError(`no lane ${lane}`);
    const items = keys.map((key) => admissionOf(key, queue));
    const subject = `${requester.kind}:${requester.id}`;
    const { status, body } = await connection.post("/v1/workloads/batch", items, subject);
    const refused = status === 200 ? (JSON.parse(body) as { ok: boolean }[]).find(({ ok }) => !ok) : body;
    if (refused !== undefined) throw new Refused(`HTTP ${status} ${JSON.stringify(refused).slice(0, 200)}`);
  }

  /** Asks for one piece of work; `undefined` when there was none. */
  async claimNext(workerId: string, options: ClaimOptions = {}): Promise<HeldClaim | undefined> {
    const { queue, ...rest } = options;
    const claims = await this.#work("work.next", claimNextOf(workerId, rest), { waitMs: rest.waitMs, queue });
    return (claims as readonly HeldClaim[])[0];
  }

  /** Registers a worker and lets it be heard; answers its id. */
  async register(name: string): Promise<string> {
    const answer = await this.#work("worker.register", registrationOf(name));
    const { worker } = answer as { readonly worker: Parameters<typeof firstBeatOf>[0] };
    await this.#work("worker.heartbeat", firstBeatOf(worker));
    return worker.workerId;
  }

  async complete(claim: HeldClaim, queue?: string): Promise<void> {
    await this.#work("work.complete", completionOf(claim), { queue });
  }

  async heartbeat(claim: HeldClaim): Promise<void> {
    await this.#work("work.heartbeat", { ...fenceOf(claim), extendMs: leaseMs });
  }

  async heartbeatMany(claims: readonly HeldClaim[]): Promise<void> {
    const answers = await this.#work("work.heartbeat", {
      claims: claims.map((claim) => ({ ...fenceOf(claim), extendMs: leaseMs })),
    });
    if ((answers as { ok: boolean }[]).some(({ ok }) => !ok)) throw new Refused("a heartbeat was refused");
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  async #work(
    verb: WorkVerb,
    request: object,
    how: { readonly waitMs?: number | undefined; readonly queue?: string | undefined } = {},
  ): Promise<unknown> {
    const subject = workSubject({ ...scope, applicationId: how.queue ?? scope.applicationId }, verb);
    const timeout = TIMEOUT_MS + (how.waitMs ?? 0);
    const answer = await this.#nats.request(subject, JSON.stringify(request), { timeout });
    const code = answer.headers?.get("Nats-Service-Error") ?? "";
    if (code !== "") throw new Refused(code);
    return answer.json<unknown>();
  }
}
