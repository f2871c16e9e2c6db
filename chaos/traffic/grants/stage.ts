import { headers, RequestError, type NatsConnection } from "@nats-io/nats-core";
import { pause } from "../../../src/sdk/backoff.ts";
import { workSubject, type WorkVerb } from "../../../src/wire/subjects.ts";
import type { Draw } from "../../draw.ts";
import type { Outcome } from "../../history.ts";
import { APPLICATIONS, RAW_CAPABILITY } from "../../system/setting.ts";
import type { HttpCall, HttpCaller } from "../http-caller.ts";
import type { RawReply } from "../raw-worker.ts";
import type { Targets } from "../targets.ts";
import type { Admitted, Holder, Party } from "./party.ts";

const TIMEOUT_MS = 4_000;

export interface GrantStageOptions {
  readonly name: string;
  readonly draw: Draw;
  readonly http: HttpCaller;
  readonly targets: Targets;
  readonly nats: readonly NatsConnection[];
  readonly own: Party;
  readonly other: Party;
  readonly ending: AbortSignal;
}

/** What to ask over HTTP, and as what it is recorded. */
export interface Question {
  readonly call: string;
  readonly path: string;
  /** Absent: it is a GET. */
  readonly body?: object;
  /** Beside the body. */
  readonly about?: object;
  readonly minRevision?: string | undefined;
}

/** What a play under grants has at hand: both tenants, and ways to ask as anybody. */
export class GrantStage {
  readonly draw: Draw;
  readonly own: Party;
  readonly other: Party;
  readonly ending: AbortSignal;
  readonly http: HttpCaller;
  readonly targets: Targets;
  readonly #name: string;
  readonly #nats: readonly NatsConnection[];
  #names = 0;

  constructor(options: GrantStageOptions) {
    this.draw = options.draw;
    this.own = options.own;
    this.other = options.other;
    this.ending = options.ending;
    this.http = options.http;
    this.targets = options.targets;
    this.#name = options.name;
    this.#nats = options.nats;
  }

  /** A name that no other play uses. */
  name(): string {
    return `${this.#name}-${++this.#names}`;
  }

  requestId(): string {
    return `${this.name()}-${this.draw.word()}`;
  }

  application(): string {
    return this.draw.pick(APPLICATIONS);
  }

  pause(ms: number): Promise<void> {
    return pause(ms, this.ending);
  }

  question({ subject, token }: Holder, { call, path, body, about, minRevision }: Question): HttpCall {
    const sent = body === undefined ? undefined : { ...body, requestId: this.requestId() };
    return {
      ...{ call, subject, token, path, timeoutMs: TIMEOUT_MS },
      method: sent === undefined ? "GET" : "POST",
      arguments: { ...about, ...sent, ...(minRevision === undefined ? {} : { minRevision }) },
      ...(sent === undefined ? {} : { body: sent }),
      ...(minRevision === undefined ? {} : { headers: { "mandate-min-revision": minRevision } }),
    };
  }

  /** Asks at any node, once. */
  once(holder: Holder, question: Question): Promise<Outcome> {
    return this.http.call(this.question(holder, question), this.targets.any());
  }

  /** Asks until the outcome is final. */
  settle(holder: Holder, question: Question): Promise<Outcome> {
    return this.targets.settle(this.question(holder, question));
  }

  /** Who asks for work: of equal name in both tenants. */
  requester(applicationId = this.application()): Holder {
    const id = this.draw.pick(["orders", "billing"] as const);
    return this.own.holder("requester", { kind: "service", id }, applicationId);
  }

  /** A request to admit work; everything that may hold one holds the tenant's mark. */
  admission(holder: Holder, changes: object = {}): Question {
    const { draw, own } = this;
    const { tenantId, applicationId, subject } = holder;
    const body = {
      ...{ tenantId, applicationId, requestedBy: subject },
      environment: "test",
      definitionId: "invoice",
      definitionRevision: "1",
      trigger: own.mark,
      input: { act: draw.chance(0.3) ? "steps" : "finish", ms: draw.whole(0, 150), steps: 1, note: own.mark },
      idempotencyKey: draw.chance(0.5) ? own.key() : `${own.mark}-${this.name()}`,
      capabilities: [],
      retryPolicy: { maxAttempts: 2, initialDelayMs: 0, maxDelayMs: 200, backoff: "fixed" },
      ...changes,
    };
    return { call: "admit", path: "/v1/workloads", body };
  }

  /** Admits, and remembers what was admitted. */
  async admit(holder: Holder, changes: object = {}): Promise<Admitted | undefined> {
    const outcome = await this.settle(holder, this.admission(holder, changes));
    return this.noteAdmitted(outcome);
  }

  noteAdmitted(outcome: Outcome): Admitted | undefined {
    if (outcome.kind !== "acknowledged") return undefined;
    const { workload } = outcome.answer as { readonly workload: Omit<Admitted, "revision"> };
    const { workloadId, applicationId, inputHash } = workload;
    const admitted = { workloadId, applicationId, inputHash, revision: outcome.revision };
    this.own.remember(admitted);
    return admitted;
  }

  /** Ends a grant, or all of its subject's. */
  revoke(holder: Holder, what: "grant" | "subject"): Promise<Outcome> {
    const { applicationId, grantId, subject } = holder;
    const warden = this.own.holder("warden", { kind: "human", id: "warden" }, applicationId);
    const target = what === "grant" ? { kind: what, grantId } : { kind: what, subject };
    const body = { target, reason: this.own.mark };
    return this.settle(warden, { call: "revoke", path: "/v1/grants/revocations", body });
  }

  /** A worker whose name others may bear in the other tenant. */
  worker(applicationId: string, id = this.name()): Holder {
    return this.own.holder("worker", { kind: "worker", id }, applicationId);
  }

  /** One call of a worker over NATS, on the subjects of its own tenant unless another is named. */
  async work(holder: Holder, verb: WorkVerb, members: object, tenantId = holder.tenantId): Promise<RawReply> {
    const [nats] = this.draw.shuffled(this.#nats);
    if (nats === undefined) return { code: "LOST", body: undefined };
    const carried = headers();
    carried.set("Mandate-Grant", holder.token);
    const subject = workSubject({ tenantId, applicationId: holder.applicationId }, verb);
    const request = { workerId: holder.subject.id, ...members, requestId: this.requestId() };
    try {
      const answer = await nats.request(subject, JSON.stringify(request), { timeout: 3_000, headers: carried });
      const code = answer.headers?.get("Nats-Service-Error") ?? "";
      return { code, body: answer.data.length === 0 ? undefined : answer.json() };
    } catch (thrown) {
      const unsent = thrown instanceof RequestError && thrown.isNoResponders();
      return { code: unsent ? "LOST_UNSENT" : "LOST", body: undefined };
    }
  }

  /** Tries to claim work that only workers of this traffic take, for a while. */
  async claim(holder: Holder, workloadId: string): Promise<RawReply> {
    for (let tries = 0; ; tries++) {
      const asked = { workloadId, leaseMs: 1_800, start: true, capabilities: [RAW_CAPABILITY] };
      const reply = await this.work(holder, "work.claim", asked);
      if (!/^(LOST|AUTHORITY_)/.test(reply.code) || tries >= 8 || this.ending.aborted) return reply;
      await this.pause(200);
    }
  }
}

export type GrantPlay = (stage: GrantStage) => Promise<void>;
