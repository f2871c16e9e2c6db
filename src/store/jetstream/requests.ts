import type { Msg, MsgHdrs, NatsConnection, Subscription } from "@nats-io/nats-core";
import { monotonicMs } from "../../base/clock.ts";

/** Why a request has no answer. Only the first two say that no server took it. */
export type RequestFailureReason = "not-sent" | "no-responders" | "timeout" | "disconnected";

/** A request that was not answered. */
export class RequestFailure extends Error {
  override readonly name = "RequestFailure";
  readonly reason: RequestFailureReason;

  constructor(reason: RequestFailureReason, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

export interface RequestOptions {
  readonly headers?: MsgHdrs | undefined;
  readonly timeoutMs: number;
}

interface Pending {
  /** Of the answers so far, when more than one is expected. */
  readonly answers: Msg[] | undefined;
  readonly sentAt: number;
  readonly expiresAt: number;
  resolve(answer: Msg | Msg[]): void;
  reject(failure: RequestFailure): void;
}

const SWEEP_MS = 40;
/** A sweep this late means that the process itself was busy, and answers may lie unread in the socket. */
const SWEEP_LATE_MS = 400;
const NO_RESPONDERS = 503;

/**
 * Requests over one connection, sharing one subscription and one timer. Beside being cheap it does what the client's own
 * requests don't: when the connection breaks, all that wait fail at once instead of sitting out their time-out, so that
 * a commit whose answer was lost is resolved as soon as the connection is back.
 */
export class Requests {
  readonly #connection: NatsConnection;
  readonly #prefix: string;
  readonly #subscription: Subscription;
  readonly #onSilence: () => void;
  readonly #pending = new Map<string, Pending>();
  #counter = 0;
  #timer: NodeJS.Timeout | undefined;
  #lastSignAt = 0;
  #sweepDueAt = 0;
  #closed = false;

  /**
   * Answers arrive below `inbox`. `onSilence` is called when a request timed out and there has been no sign of life since
   * it was sent: no answer to any request, and no {@link noteLife}.
   */
  constructor(
    connection: NatsConnection,
    { inbox, onSilence }: { readonly inbox: string; readonly onSilence: () => void },
  ) {
    this.#connection = connection;
    this.#onSilence = onSilence;
    this.#prefix = `${inbox}.`;
    this.#subscription = connection.subscribe(`${inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#onAnswer(message);
        else this.failAll("disconnected", error);
      },
    });
  }

  /**
   * Sends a request and waits for its answer.
   *
   * @throws RequestFailure when there is none.
   */
  one(subject: string, data: Uint8Array | string, options: RequestOptions): Promise<Msg> {
    return new Promise<Msg>((resolve, reject) => {
      const waiting = (answer: Msg | Msg[]): void => {
        if (!Array.isArray(answer)) resolve(answer);
      };
      this.#send(subject, data, { ...options, answers: undefined, resolve: waiting, reject });
    });
  }

  /**
   * Sends a request that is answered by any number of messages and a closing status, which is the last of the result.
   *
   * @throws RequestFailure when the closing status does not come.
   */
  many(subject: string, data: string, options: RequestOptions): Promise<readonly Msg[]> {
    return new Promise<readonly Msg[]>((resolve, reject) => {
      const waiting = (answer: Msg | Msg[]): void => {
        if (Array.isArray(answer)) resolve(answer);
      };
      this.#send(subject, data, { ...options, answers: [], resolve: waiting, reject });
    });
  }

  /** Answers may queue behind something else that the server sends: then their lack is no silence. */
  noteLife(): void {
    this.#lastSignAt = monotonicMs();
  }

  /** Fails everything that waits: whether it was taken is not known. */
  failAll(reason: RequestFailureReason, cause?: unknown): void {
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    for (const pending of waiting) pending.reject(new RequestFailure(reason, cause));
  }

  /** Ends all that waits, and takes nothing more. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.failAll("disconnected");
    this.#subscription.unsubscribe();
  }

  #send(
    subject: string,
    data: Uint8Array | string,
    request: RequestOptions & Pick<Pending, "answers" | "resolve" | "reject">,
  ): void {
    if (this.#closed) {
      request.reject(new RequestFailure("not-sent"));
      return;
    }
    const token = (this.#counter++).toString(36);
    const sentAt = monotonicMs();
    this.#pending.set(token, {
      answers: request.answers,
      resolve: request.resolve,
      reject: request.reject,
      sentAt,
      expiresAt: sentAt + request.timeoutMs,
    });
    const reply = this.#prefix + token;
    try {
      if (request.headers === undefined) this.#connection.publish(subject, data, { reply });
      else this.#connection.publish(subject, data, { reply, headers: request.headers });
    } catch (thrown) {
      this.#pending.delete(token);
      request.reject(new RequestFailure("not-sent", thrown));
      return;
    }
    if (this.#timer === undefined) this.#planSweep();
  }

  #planSweep(): void {
    this.#sweepDueAt = monotonicMs() + SWEEP_MS;
    this.#timer = setTimeout(this.#sweep, SWEEP_MS);
  }

  #onAnswer(message: Msg): void {
    const token = message.subject.slice(this.#prefix.length);
    const pending = this.#pending.get(token);
    if (pending === undefined) return;
    this.#lastSignAt = monotonicMs();
    const status = message.data.length === 0 ? (message.headers?.code ?? 0) : 0;
    if (status === NO_RESPONDERS) {
      this.#pending.delete(token);
      pending.reject(new RequestFailure("no-responders"));
    } else if (pending.answers === undefined) {
      this.#pending.delete(token);
      pending.resolve(message);
    } else {
      pending.answers.push(message);
      if (status === 0) return;
      this.#pending.delete(token);
      pending.resolve(pending.answers);
    }
  }

  readonly #sweep = (): void => {
    this.#timer = undefined;
    const now = monotonicMs();
    if (now - this.#sweepDueAt > SWEEP_LATE_MS) {
      this.#planSweep();
      return;
    }
    let silent = false;
    for (const [token, pending] of this.#pending) {
      if (pending.expiresAt > now) continue;
      this.#pending.delete(token);
      silent ||= pending.sentAt > this.#lastSignAt;
      pending.reject(new RequestFailure("timeout"));
    }
    if (silent) this.#onSilence();
    if (this.#pending.size > 0) this.#planSweep();
  };
}
