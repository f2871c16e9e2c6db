import { headers, InvalidArgumentError, PermissionViolationError, RequestError } from "@nats-io/nats-core";
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import { MandateError } from "../core/errors.ts";
import { packValue, unpackValue } from "../wire/codec.ts";
import { END_POLL_VERB, workSubject, type WorkVerb } from "../wire/subjects.ts";
import { backoffDelayMs, pause } from "./backoff.ts";
import { loginOptions, refusalOfDial, type NatsLogin } from "./nats-login.ts";
import { persist, type TryOutcome } from "./persistence.ts";
import { errorOfProblem } from "./problem.ts";

/** How to reach NATS: plain data, since a second thread opens a connection of its own with it. */
export interface WorkConnectionOptions {
  /** NATS addresses, such as `nats://127.0.0.1:4222`. At least one; the client finds the rest of the cluster. */
  readonly servers: readonly string[];
  readonly tenantId: string;
  readonly applicationId: string;
  /** The worker's. */
  readonly name: string;
  readonly encoding: "json" | "msgpack";
  /** Shown by the server's monitoring. */
  readonly clientName: string;
  readonly login?: NatsLogin | undefined;
  /** The grant that goes with every call; not needed in open mode. */
  readonly token?: string | undefined;
}

/** Whether a worker has a connection to NATS. */
export type ConnectionState = "connected" | "disconnected";

export interface OpenOptions {
  /** Ends the attempt to connect. */
  readonly signal?: AbortSignal | undefined;
  /** Told once for each change, the first one when it is connected, or when the first try has failed. */
  readonly onState?: ((state: ConnectionState) => void) | undefined;
}

export interface WorkCallOptions {
  /** How long to repeat the call, ms. */
  readonly deadlineMs: number;
  /** How long the server may hold the answer back, ms. */
  readonly waitMs?: number;
  /** How long one try may take beside that, ms. Default 5,000. */
  readonly tryTimeoutMs?: number;
  readonly signal?: AbortSignal;
  /** A grant for this call alone. */
  readonly token?: string | undefined;
}

const TRY_TIMEOUT_MS = 5_000;
const RECONNECT_WAIT_MS = 1_000;
const MSGPACK = "application/msgpack";

/** A worker's calls to the authority over NATS request/reply (contract 6.3). */
export class WorkConnection {
  readonly #nats: NatsConnection;
  readonly #options: WorkConnectionOptions;
  #token: string | undefined;

  /** Called when the connection breaks: what waits for an answer will get none. */
  readonly #onBreak = new Set<(lost: TryOutcome<never>) => void>();
  /** Called when it is back, or gone for good. */
  readonly #onBack = new Set<() => void>();
  readonly #onState: (state: ConnectionState) => void;
  #connected = true;

  private constructor(
    nats: NatsConnection,
    options: WorkConnectionOptions,
    onState: (state: ConnectionState) => void = () => undefined,
  ) {
    this.#nats = nats;
    this.#options = options;
    this.#token = options.token;
    this.#onState = onState;
    onState("connected");
    void this.#watch();
  }

  /**
   * Connects, however long it takes; later the connection comes back by itself whenever it is lost.
   *
   * @throws MandateError `WORKLOAD_UNAUTHORIZED` when NATS does not take the credentials, or is not trusted. An abort
   * throws the signal's reason.
   */
  static async open(options: WorkConnectionOptions, { signal, onState }: OpenOptions = {}): Promise<WorkConnection> {
    for (let place = 0; ; place++) {
      signal?.throwIfAborted();
      try {
        return new WorkConnection(await dial(options), options, onState);
      } catch (thrown) {
        const refusal = refusalOfDial(thrown);
        if (refusal !== undefined) throw refusal;
        if (place === 0) onState?.("disconnected");
        await pause(backoffDelayMs(place), signal);
      }
    }
  }

  /**
   * Makes a call, again and again with the same arguments, until its outcome is definite.
   *
   * @throws MandateError the authority's refusal, or what {@link persist} throws at the deadline.
   */
  call(verb: WorkVerb, args: object, options: WorkCallOptions): Promise<unknown> {
    const payload = this.#options.encoding === "json" ? JSON.stringify(args) : packValue(args);
    const timeout = (options.tryTimeoutMs ?? TRY_TIMEOUT_MS) + (options.waitMs ?? 0);
    return persist(() => this.#tryConnected(verb, payload, { timeout, token: options.token }), {
      deadlineMs: options.deadlineMs + (options.waitMs ?? 0),
      changes: verb !== "work.context" && verb !== "claim.validate",
      signal: options.signal,
    });
  }

  /** The grant that goes with every call. */
  get token(): string | undefined {
    return this.#token;
  }

  /** The grant that goes with every call from now on, repeats of earlier ones too. */
  useToken(token: string): void {
    this.#token = token;
  }

  /** Has a poll for work answered now. Nothing answers this; when it gets lost, the poll ends by its own time. */
  endPoll(poll: { readonly workerId: string; readonly requestId: string }): void {
    if (this.#connected) this.#nats.publish(workSubject(this.#options, END_POLL_VERB), JSON.stringify(poll));
  }

  async #watch(): Promise<void> {
    for await (const status of this.#nats.status()) {
      if (status.type === "disconnect") {
        if (this.#connected) this.#onState("disconnected");
        this.#connected = false;
        for (const end of this.#onBreak) end({ kind: "lost", sent: true, cause: status });
        this.#onBreak.clear();
      } else if (status.type === "reconnect" || status.type === "close") {
        const back = status.type === "reconnect";
        if (back && !this.#connected) this.#onState("connected");
        this.#connected = back;
        for (const resume of this.#onBack) resume();
        this.#onBack.clear();
      }
    }
  }

  /**
   * The client would take a request while it is not connected, and lose it; and it leaves requests waiting for their
   * time-out when the connection breaks. This one does neither.
   */
  async #tryConnected(
    verb: WorkVerb,
    payload: string | Uint8Array,
    how: { readonly timeout: number; readonly token: string | undefined },
  ): Promise<TryOutcome<unknown>> {
    if (!this.#connected) await this.#whenBack();
    if (!this.#connected) return { kind: "lost", sent: false, cause: "not connected" };
    return new Promise((resolve) => {
      this.#onBreak.add(resolve);
      void this.#try(verb, payload, how).then((outcome) => {
        this.#onBreak.delete(resolve);
        resolve(outcome);
      });
    });
  }

  /** Waits for the connection to come back, but not for long: a caller's deadline must be seen. */
  #whenBack(): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#onBack.delete(end);
        resolve();
      };
      const timer = setTimeout(end, RECONNECT_WAIT_MS);
      this.#onBack.add(end);
    });
  }

  async #try(
    verb: WorkVerb,
    payload: string | Uint8Array,
    how: { readonly timeout: number; readonly token: string | undefined },
  ): Promise<TryOutcome<unknown>> {
    const subject = workSubject(this.#options, verb);
    const { timeout } = how;
    const current = this.#token;
    let answer: Msg;
    try {
      const sent = headersOf(payload, how.token ?? current);
      answer = await this.#nats.request(subject, payload, {
        timeout,
        ...(sent === undefined ? {} : { headers: sent }),
      });
    } catch (thrown) {
      return lostCall(thrown);
    }
    const code = answer.headers?.get("Nats-Service-Error-Code") ?? "";
    const body = decodeBody(answer);
    if (code === "") return { kind: "answered", answer: body };
    const error = errorOfProblem(Number(code), body);
    // A grant that was replaced meanwhile: the next try has the one that is good.
    if (how.token === undefined && this.#token !== current && error.code.startsWith("GRANT_"))
      return { kind: "lost", sent: false, cause: error };
    return { kind: "refused", error };
  }

  /** Ends the connection; calls that wait for an answer get none. */
  close(): Promise<void> {
    return this.#nats.close();
  }
}

const dialOptions = (options: WorkConnectionOptions): NodeConnectionOptions => ({
  ...loginOptions(options.login ?? {}, options),
  name: options.clientName,
  servers: [...options.servers],
  timeout: 2_000,
  noAsyncTraces: true,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 100,
  reconnectJitter: 100,
  pingInterval: 5_000,
  ignoreAuthErrorAbort: true,
});

/**
 * The client takes one refused login for a reason to give up, or none: then it never ends, since each server names the
 * others. The first is right for the first connection, the second for one that comes back while keys are changed.
 */
async function dial(options: WorkConnectionOptions): Promise<NatsConnection> {
  const probe = await connect({ ...dialOptions(options), ignoreAuthErrorAbort: false, reconnect: false });
  await probe.close();
  return connect(dialOptions(options));
}

/** What a request says beside its payload; nothing for JSON in open mode. */
function headersOf(payload: string | Uint8Array, token: string | undefined): ReturnType<typeof headers> | undefined {
  if (typeof payload === "string" && token === undefined) return undefined;
  const set = headers();
  if (typeof payload !== "string") set.set("Content-Type", MSGPACK);
  if (token !== undefined) set.set("Mandate-Grant", token);
  return set;
}

function decodeBody(answer: Msg): unknown {
  if (answer.data.length === 0) return undefined;
  return answer.headers?.get("Content-Type") === MSGPACK ? unpackValue(answer.data) : answer.json<unknown>();
}

function lostCall(thrown: unknown): TryOutcome<never> {
  if (thrown instanceof RequestError && thrown.isNoResponders()) return { kind: "lost", sent: false, cause: thrown };
  if (
    thrown instanceof PermissionViolationError ||
    (thrown instanceof RequestError && thrown.cause instanceof PermissionViolationError)
  )
    return {
      kind: "refused",
      error: new MandateError("WORKLOAD_UNAUTHORIZED", "NATS refuses this subject", { cause: thrown }),
    };
  if (thrown instanceof InvalidArgumentError)
    return {
      kind: "refused",
      error: new MandateError("WORKLOAD_TOO_LARGE", "the message is larger than NATS takes", { cause: thrown }),
    };
  return { kind: "lost", sent: true, cause: thrown };
}
