import { headers, type Msg, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import type { Registry } from "prom-client";
import type { Bearer } from "../authority/access.ts";
import { monotonicMs } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Result } from "../base/result.ts";
import { errorRegistry, MandateError, type Refusal } from "../core/errors.ts";
import { problemOf } from "../wire/problem.ts";
import { END_POLL_VERB, parseWorkSubject, WORK_QUEUE, workPattern } from "../wire/subjects.ts";
import { PROTOCOL_VERSION } from "../wire/version.ts";
import type { WorkerAuthority } from "./authority-port.ts";
import { Discovery } from "./discovery.ts";
import { longPollKey, LongPolls } from "./long-polls.ts";
import { WorkerMeters } from "./meters.ts";
import { notationOf, type Notation } from "./notation.ts";
import { mayBeAnswered } from "./reply.ts";
import { isLongPoll, isReading, isServedVerb, makeCall, servedVerbs } from "./verbs.ts";

/** Bounds of the NATS door. */
export interface WorkerServiceLimits {
  /** Most requests that this node works on at a time, long polls not counted; more are refused with 429. */
  readonly inFlightMax: number;
  /** Most long polls at a time. */
  readonly waitersMax: number;
}

export const defaultWorkerServiceLimits: WorkerServiceLimits = { inFlightMax: 2048, waitersMax: 10_000 };

/** What this door needs to know grants by. */
export interface WorkerGrants {
  /** The grant of a token whose signatures are good; never rejects. What is good is remembered by its digest. */
  verify(token: string): Promise<Result<Bearer, Refusal>>;
}

/** The header that carries the grant (contract 4.3). */
const GRANT_HEADER = "Mandate-Grant";

export interface WorkerServiceOptions {
  /** Stays the caller's: the service never closes it. */
  readonly connection: NatsConnection;
  readonly authority: WorkerAuthority;
  readonly log: Log;
  /** Where the door's measures go. One service to a registry. */
  readonly metrics: Registry;
  readonly limits?: Partial<WorkerServiceLimits>;
  /** Given: every request needs a grant in the header `Mandate-Grant`. Absent: the node runs in open mode. */
  readonly grants?: WorkerGrants;
  /** The program's version, `x.y.z`, for whoever lists services. */
  readonly version?: string;
}

export interface WorkerService {
  /**
   * Takes no more requests, ends long polls, and waits until every request under way is answered, for `graceMs` at
   * most.
   */
  stop(graceMs?: number): Promise<void>;
}

/** All subjects of this version: one subscription sees also what it does not know, and can say so. */
const EVERYTHING = `mandate.v${PROTOCOL_VERSION}.*.*.>`;

/** Used until the server has said what it takes. */
const PAYLOAD_BYTES_MAX = 1024 * 1024;
/** Room for the headers of an answer. */
const HEADER_BYTES = 512;

/** A request as its subject tells it. */
interface Address {
  readonly verb: string;
  readonly scope: { readonly tenantId: string; readonly applicationId: string } | undefined;
  /** The encoded `<tenant>/<application>`. */
  readonly prefix: string;
}

function addressOf(subject: string): Address {
  const [, , tenant = "", application = "", ...verb] = subject.split(".");
  return { verb: verb.join("."), scope: parseWorkSubject(subject), prefix: `${tenant}/${application}` };
}

class Service implements WorkerService {
  readonly #options: WorkerServiceOptions;
  readonly #limits: WorkerServiceLimits;
  readonly #meters: WorkerMeters;
  readonly #discovery: Discovery;
  readonly #polls = new LongPolls();
  #subscription: Subscription | undefined;
  #endings: Subscription | undefined;
  #working = 0;
  #waiting = 0;
  #idle: (() => void) | undefined;

  constructor(options: WorkerServiceOptions) {
    this.#options = options;
    this.#limits = { ...defaultWorkerServiceLimits, ...options.limits };
    this.#meters = new WorkerMeters(options.metrics, () => this.#working + this.#waiting);
    this.#discovery = new Discovery({
      version: options.version ?? `${PROTOCOL_VERSION}.0.0`,
      endpoints: servedVerbs.map((verb) => ({ name: verb.replace(".", "-"), subject: workPattern(verb) })),
      metadata: { node: options.authority.nodeId, mode: options.grants === undefined ? "open" : "secure" },
    });
  }

  async start(): Promise<void> {
    const { connection, log } = this.#options;
    this.#subscription = connection.subscribe(EVERYTHING, {
      queue: WORK_QUEUE,
      callback: (problem, message) => {
        if (problem === null) void this.#serve(message);
        else log.error({ err: problem }, "the subscription of worker requests failed");
      },
    });
    // Every node hears of it: nobody knows which one the poll is waiting at.
    this.#endings = connection.subscribe(workPattern(END_POLL_VERB), {
      callback: (problem, message) => {
        if (problem === null) this.#endPoll(message);
      },
    });
    this.#discovery.start(connection);
    await connection.flush();
    const how = this.#options.grants === undefined ? ", in open mode" : ", to workers with a grant";
    log.info({ subject: EVERYTHING }, `worker requests are answered over NATS${how}`);
  }

  async stop(graceMs = 5_000): Promise<void> {
    const { connection } = this.#options;
    this.#discovery.stop();
    // First no new requests, then no long polls: a worker whose poll ends asks again, and is to reach another node.
    if (!connection.isClosed()) await this.#subscription?.drain().catch(() => undefined);
    if (!connection.isClosed()) this.#endings?.unsubscribe();
    this.#polls.endAll();
    if (this.#working + this.#waiting > 0) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
        timer = setTimeout(resolve, graceMs);
      });
      clearTimeout(timer);
    }
    if (!connection.isClosed()) await connection.flush().catch(() => undefined);
  }

  /** Serves one request; never rejects. */
  async #serve(message: Msg): Promise<void> {
    // Nobody would learn of the answer, and whoever sends a request without a way back did not mean one.
    if (!mayBeAnswered(message)) return;
    const from = monotonicMs();
    const notation = notationOf(message.headers);
    const address = addressOf(message.subject);
    let failure: MandateError | undefined;
    try {
      const payload = notation.render(await this.#answer(message, notation, address));
      failure = this.#tooLarge(payload, address.verb);
      if (failure === undefined) message.respond(payload, headersOf(notation));
    } catch (thrown) {
      failure = this.#errorOf(thrown);
    }
    if (failure !== undefined) this.#refuse(message, notation, failure);
    this.#measure(address.verb, failure, monotonicMs() - from);
  }

  #measure(verb: string, failure: MandateError | undefined, tookMs: number): void {
    const known = isServedVerb(verb) ? verb : "unknown";
    this.#meters.answered(known, failure?.code, tookMs);
    this.#discovery.count(known.replace(".", "-"), tookMs, failure?.code);
    if (failure !== undefined) this.#options.log.debug({ verb: known, code: failure.code }, "refused over NATS");
  }

  async #answer(message: Msg, notation: Notation, { verb, scope, prefix }: Address): Promise<unknown> {
    if (!isServedVerb(verb))
      throw new MandateError("ROUTE_NOT_FOUND", `there is no call ${verb.slice(0, 100)}`.toWellFormed());
    if (scope === undefined)
      throw new MandateError("WORKLOAD_INVALID", "the subject's tenant or application is not encoded as it must be", {
        details: { paths: ["subject"] },
      });
    // A message without a payload has no members; what is missing is named like anywhere else.
    const parsed = notation.parse(
      message.data.length === 0 && notation.contentType === undefined ? EMPTY : message.data,
    );
    if (!parsed.ok) throw MandateError.of(parsed.error);
    const { authority } = this.#options;
    const longPoll = isLongPoll(verb, parsed.value);
    const leave = this.#enter(longPoll);
    let release: () => void = () => undefined;
    const poll = this.#polls.enter(longPollKey(prefix, parsed.value) ?? "");
    try {
      const bearer = await this.#bearerOf(message);
      // Nobody is given work any more whose grant ends while he waits for it.
      if (bearer !== undefined && longPoll) release = authority.access().onFallen(bearer, () => poll.end());
      const request = { verb, scope, value: parsed.value, signal: poll.signal, bearer };
      return await makeCall(authority, request, prefix);
    } finally {
      release();
      poll.leave();
      leave();
    }
  }

  /** @throws MandateError `GRANT_INVALID` when there is no grant, or its signature is not good. */
  async #bearerOf(message: Msg): Promise<Bearer | undefined> {
    const { grants } = this.#options;
    if (grants === undefined) return undefined;
    const token = message.headers?.get(GRANT_HEADER) ?? "";
    if (token === "") throw new MandateError("GRANT_INVALID", `the request has no header ${GRANT_HEADER}`);
    const verified = await grants.verify(token);
    if (!verified.ok) throw MandateError.of(verified.error);
    return verified.value;
  }

  /** A worker stops waiting. Whatever this says that is not understood ends nothing; there is no answer to it. */
  #endPoll(message: Msg): void {
    const parsed = notationOf(message.headers).parse(message.data);
    const key = parsed.ok ? longPollKey(addressOf(message.subject).prefix, parsed.value) : undefined;
    if (key !== undefined) this.#polls.end(key);
  }

  /** @throws MandateError `AUTHORITY_OVERLOADED`. */
  #enter(longPoll: boolean): () => void {
    const full = longPoll ? this.#waiting >= this.#limits.waitersMax : this.#working >= this.#limits.inFlightMax;
    if (full) throw new MandateError("AUTHORITY_OVERLOADED", "too many requests are under way");
    if (longPoll) this.#waiting += 1;
    else this.#working += 1;
    return () => {
      if (longPoll) this.#waiting -= 1;
      else this.#working -= 1;
      if (this.#working + this.#waiting === 0) this.#idle?.();
    };
  }

  /** An answer that no message can carry. What a changing call did, it did: the caller can't be told it did not. */
  #tooLarge(payload: Uint8Array, verb: string): MandateError | undefined {
    const bytesMax = (this.#options.connection.info?.max_payload ?? PAYLOAD_BYTES_MAX) - HEADER_BYTES;
    if (payload.length <= bytesMax) return undefined;
    const reading = isServedVerb(verb) && isReading(verb);
    return new MandateError(
      reading ? "WORKLOAD_TOO_LARGE" : "WORKLOAD_OUTCOME_UNKNOWN",
      "the answer is larger than a message may be",
      { details: { bytes: payload.length, bytesMax } },
    );
  }

  #errorOf(thrown: unknown): MandateError {
    if (thrown instanceof MandateError) return thrown;
    this.#options.log.error({ err: thrown }, "a worker request failed");
    return new MandateError("INTERNAL_ERROR", "the node failed; its log has the cause");
  }

  #refuse(message: Msg, notation: Notation, error: MandateError): void {
    const problem = problemOf(error);
    try {
      message.respond(notation.render(problem), headersOf(notation, error));
    } catch (thrown) {
      this.#options.log.warn({ err: thrown, code: error.code }, "a refusal could not be sent");
    }
  }
}

const EMPTY = new TextEncoder().encode("{}");

/** Headers of an answer (ADR-32); none where none are needed. */
function headersOf(notation: Notation, error?: MandateError): Parameters<Msg["respond"]>[1] {
  if (notation.contentType === undefined && error === undefined) return undefined;
  const made = headers();
  if (notation.contentType !== undefined) made.set("Content-Type", notation.contentType);
  if (error !== undefined) {
    made.set("Nats-Service-Error-Code", String(errorRegistry[error.code].httpStatus));
    made.set("Nats-Service-Error", error.code);
  }
  return { headers: made };
}

/**
 * Serves the worker calls of a node over NATS request and reply (contract 6.3). Every node joins one queue group, so any
 * of them answers; a request is answered by exactly one, in the notation that it came in, also when it is refused.
 * Requests do not wait for one another.
 */
export async function startWorkerService(options: WorkerServiceOptions): Promise<WorkerService> {
  const service = new Service(options);
  await service.start();
  return service;
}
