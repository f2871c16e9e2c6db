import { headers, RequestError, type NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { workSubject, type WorkVerb } from "../../src/wire/subjects.ts";
import type { Draw } from "../draw.ts";
import { pause } from "../../src/sdk/backoff.ts";
import type { Recorder } from "../recorder.ts";
import { AttemptNotes } from "../workers/attempt.ts";

/** What names a worker's hold on a workload (contract 1.8). */
export interface Fence {
  readonly workloadId: string;
  readonly claimId: string;
  readonly workerId: string;
  readonly fencingToken: number;
}

export interface RawClaim extends Fence {
  readonly expiresAt: number;
}

/** A claim, and until when its holder may trust it: counted from before it asked. */
export interface HeldClaim extends RawClaim {
  readonly trustedUntil: number;
}

/** How a call went: `code` is empty when it was carried out, `LOST` when no answer came. */
export interface RawReply {
  readonly code: string;
  readonly body: unknown;
}

const PASSING = /^(LOST|AUTHORITY_|WORKLOAD_OUTCOME_UNKNOWN|WORKLOAD_STORAGE_FAILURE|WORKLOAD_CONFLICT|INTERNAL_ERROR)/;
const SETTLE_MS = 20_000;

export interface RawWorkerOptions {
  readonly name: string;
  readonly servers: readonly string[];
  readonly tenantId: string;
  readonly draw: Draw;
  readonly recorder: Recorder;
  readonly ending: AbortSignal;
}

/** A connection to NATS that never gives up. */
export const connectRaw = ({ name, servers }: Pick<RawWorkerOptions, "name" | "servers">): Promise<NatsConnection> =>
  connect({
    servers: [...servers],
    name,
    ignoreClusterUpdates: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 150,
    pingInterval: 3_000,
    waitOnFirstConnect: true,
    noAsyncTraces: true,
    timeout: 2_000,
  });

/**
 * A worker that the traffic drives by hand over NATS, call by call, with whatever fence it likes: its link records the
 * calls. It has no manners: it claims what others hold and reports what is no longer its own.
 */
export class RawWorker {
  readonly name: string;
  readonly workerId: string;
  readonly #notes: AttemptNotes;
  readonly #nats: NatsConnection;
  readonly #options: RawWorkerOptions;
  #requests = 0;

  private constructor(nats: NatsConnection, options: RawWorkerOptions) {
    this.#nats = nats;
    this.#options = options;
    this.name = options.name;
    this.workerId = `raw-${options.name}`;
    this.#notes = new AttemptNotes(options.recorder, options.name);
  }

  static async open(options: RawWorkerOptions): Promise<RawWorker> {
    return new RawWorker(await connectRaw(options), options);
  }

  /** A requestId that no other call has. */
  requestId(): string {
    return `${this.name}-${process.pid}-${++this.#requests}-${this.#options.draw.word()}`;
  }

  /** One try. */
  async once(applicationId: string, verb: WorkVerb, members: object, timeoutMs = 3_000): Promise<RawReply> {
    const subject = workSubject({ tenantId: this.#options.tenantId, applicationId }, verb);
    try {
      const answer = await this.#nats.request(subject, JSON.stringify(members), {
        timeout: timeoutMs,
        headers: headers(),
      });
      const code = answer.headers?.get("Nats-Service-Error") ?? "";
      return { code, body: answer.data.length === 0 ? undefined : answer.json() };
    } catch (thrown) {
      return {
        code: thrown instanceof RequestError && thrown.isNoResponders() ? "LOST_UNSENT" : "LOST",
        body: undefined,
      };
    }
  }

  /** Repeats a call with one requestId until its outcome is final, the time is up or the traffic ends. */
  async settle(
    applicationId: string,
    verb: WorkVerb,
    members: object,
    how: { readonly requestId?: string; readonly forMs?: number } = {},
  ): Promise<RawReply> {
    const request = { ...members, requestId: how.requestId ?? this.requestId() };
    const deadline = performance.now() + (how.forMs ?? SETTLE_MS);
    for (let tries = 0; ; tries++) {
      const reply = await this.once(applicationId, verb, request);
      if (!PASSING.test(reply.code) || performance.now() > deadline || this.#options.ending.aborted) return reply;
      await pause(Math.min(1_000, 30 * 2 ** tries) * (0.5 + this.#options.draw.share()), this.#options.ending);
    }
  }

  /** Claims one workload; `undefined` when that was refused or is not known. */
  async claim(
    applicationId: string,
    workloadId: string,
    how: { readonly leaseMs: number; readonly start?: boolean; readonly capabilities: readonly string[] },
  ): Promise<HeldClaim | undefined> {
    const trustedUntil = this.#options.recorder.clock.now() + how.leaseMs;
    const reply = await this.settle(applicationId, "work.claim", { workloadId, workerId: this.workerId, ...how });
    if (reply.code !== "") return undefined;
    const claim = { ...(reply.body as RawClaim), trustedUntil };
    this.#notes.note("handed", claim);
    return claim;
  }

  /** Asks for any work of a queue; both requests of a pair carry one requestId and must get the same. */
  async claimNext(
    applicationId: string,
    ask: { readonly leaseMs: number; readonly [name: string]: unknown },
    tries: 1 | 2,
  ): Promise<readonly HeldClaim[]> {
    const trustedUntil = this.#options.recorder.clock.now() + ask.leaseMs;
    const requestId = this.requestId();
    const request = { ...ask, workerId: this.workerId };
    const replies = await Promise.all(
      Array.from({ length: tries }, () =>
        this.settle(applicationId, "work.next", request, { requestId, forMs: 6_000 }),
      ),
    );
    const [reply] = replies.filter(({ code }) => code === "");
    const claims = ((reply?.body ?? []) as readonly RawClaim[]).map((claim) => ({ ...claim, trustedUntil }));
    for (const claim of claims) this.#notes.note("handed", claim);
    return claims;
  }

  /** A claim was handed to whomever it speaks for. */
  hand(claim: RawClaim): void {
    this.#notes.note("handed", claim);
  }

  /** Does the work, which takes no time; not on a lease that can't be trusted any more. */
  run(claim: HeldClaim): void {
    if (this.#options.recorder.clock.now() >= claim.trustedUntil) return;
    this.#notes.note("began", claim);
    this.#notes.note("ended", claim);
  }

  close(): Promise<void> {
    return this.#nats.close();
  }
}
