import { MandateError } from "../core/errors.ts";
import type { Subject } from "../core/subject.ts";
import { persist, type TryOutcome } from "./persistence.ts";
import { errorOfProblem, isUntrusted } from "./problem.ts";

export interface HttpTransportOptions {
  /** Base addresses of nodes or of what stands in front of them, such as `http://127.0.0.1:7700`. At least one. */
  readonly urls: readonly string[];
  readonly token?: string | undefined;
  readonly subject?: Subject | undefined;
  /** How long a call is repeated before it is given up, ms. */
  readonly deadlineMs: number;
  /** How long one try may take, beside what the call itself waits for, ms. */
  readonly tryTimeoutMs: number;
}

export interface HttpCall {
  readonly method: "GET" | "POST";
  /** From the root, already encoded. */
  readonly path: string;
  readonly query?: URLSearchParams | undefined;
  /** JSON; see exact-json.ts. */
  readonly body?: unknown;
  readonly headers?: { readonly [name: string]: string };
  /** How long the server itself may hold the answer back, ms. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** An answer, with the headers that came with it. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Errors that a connection makes before anything was sent. */
const UNSENT_CODES = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "EHOSTUNREACH"]);

function systemCodes(thrown: unknown): readonly string[] {
  const codes: string[] = [];
  for (let error = thrown; error instanceof Error && codes.length < 8; error = error.cause) {
    if ("code" in error && typeof error.code === "string") codes.push(error.code);
    if (error instanceof AggregateError) codes.push(...error.errors.flatMap(systemCodes));
  }
  return codes;
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Seconds or a date, as RFC 9110 has it; ms. */
function retryAfterMs(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const seconds = Number(value);
  const delayMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(delayMs) ? Math.min(30_000, Math.max(0, delayMs)) : undefined;
}

/** A header can't carry every character; anything beyond printable ASCII, and `%`, is percent-encoded. */
const headerText = (text: string): string => text.replaceAll(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);

/**
 * HTTP to any of several nodes. It stays with one that answers and moves on from one that can't be reached or is not
 * ready. Connections are kept and reused by fetch.
 */
export class HttpTransport {
  readonly #options: HttpTransportOptions;
  readonly #urls: readonly string[];
  #token: string | undefined;
  #current = 0;

  /** @throws MandateError `WORKLOAD_INVALID` when an address is no http(s) URL. */
  constructor(options: HttpTransportOptions) {
    this.#options = options;
    this.#token = options.token;
    this.#urls = options.urls.map((url) => {
      const parsed = URL.parse?.(url) ?? (URL.canParse(url) ? new URL(url) : null);
      if (parsed === null || !/^https?:$/.test(parsed.protocol))
        throw new MandateError("WORKLOAD_INVALID", `${JSON.stringify(url)} is not an http(s) address`, {
          details: { paths: ["servers"] },
        });
      return parsed.href.replace(/\/+$/, "");
    });
    if (this.#urls.length === 0)
      throw new MandateError("WORKLOAD_INVALID", "no server is named", { details: { paths: ["servers"] } });
  }

  /** The grant that goes with every call from now on, repeats of earlier ones too. */
  useToken(token: string): void {
    this.#token = token;
  }

  /** Makes the call, again and again until it is definite (see {@link persist}). */
  call(call: HttpCall): Promise<HttpAnswer> {
    const text = call.body === undefined ? undefined : JSON.stringify(call.body);
    return persist((_place) => this.#try(call, text), {
      deadlineMs: this.#options.deadlineMs + (call.waitMs ?? 0),
      changes: call.method !== "GET",
      alternatives: this.#urls.length - 1,
      signal: call.signal,
    });
  }

  /** Opens a stream; answers when its headers are there. Tried like a call. */
  stream(call: HttpCall): Promise<Response> {
    return persist(
      async (): Promise<TryOutcome<Response>> => {
        const place = this.#current;
        const token = this.#token;
        try {
          const response = await fetch(this.#url(call, place), {
            headers: this.#headers(call),
            ...(call.signal === undefined ? {} : { signal: call.signal }),
          });
          if (response.ok) return { kind: "answered", answer: response };
          return this.#refused(response, await response.text(), { place, token });
        } catch (thrown) {
          return this.#lost(thrown, place);
        }
      },
      {
        deadlineMs: this.#options.deadlineMs,
        changes: false,
        alternatives: this.#urls.length - 1,
        signal: call.signal,
      },
    );
  }

  async #try(call: HttpCall, text: string | undefined): Promise<TryOutcome<HttpAnswer>> {
    const place = this.#current;
    const token = this.#token;
    const timeout = AbortSignal.timeout(this.#options.tryTimeoutMs + (call.waitMs ?? 0));
    try {
      const response = await fetch(this.#url(call, place), {
        method: call.method,
        headers: { ...this.#headers(call), ...(text === undefined ? {} : { "content-type": "application/json" }) },
        signal: call.signal === undefined ? timeout : AbortSignal.any([timeout, call.signal]),
        ...(text === undefined ? {} : { body: text }),
      });
      const answer = await response.text();
      if (!response.ok) return this.#refused(response, answer, { place, token });
      return {
        kind: "answered",
        answer: { status: response.status, headers: response.headers, body: parseBody(answer) },
      };
    } catch (thrown) {
      return this.#lost(thrown, place);
    }
  }

  #url(call: HttpCall, place: number): string {
    const query = call.query === undefined || call.query.size === 0 ? "" : `?${call.query.toString()}`;
    return `${this.#urls[place % this.#urls.length] ?? ""}${call.path}${query}`;
  }

  #headers(call: HttpCall): { [name: string]: string } {
    const { subject } = this.#options;
    const token = this.#token;
    return {
      accept: "application/json, application/problem+json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(subject === undefined ? {} : { "x-mandate-subject": headerText(`${subject.kind}:${subject.id}`) }),
      ...call.headers,
    };
  }

  #refused(
    response: Response,
    text: string,
    { place, token }: { readonly place: number; readonly token: string | undefined },
  ): TryOutcome<never> {
    const error = errorOfProblem(response.status, parseBody(text));
    // A grant that was replaced meanwhile: the next try has the one that is good.
    if (token !== this.#token && error.code.startsWith("GRANT_")) return { kind: "lost", sent: false, cause: error };
    if (response.status >= 500 || response.status === 429) this.#moveOn(place);
    return { kind: "refused", error, retryAfterMs: retryAfterMs(response.headers) };
  }

  #lost(thrown: unknown, place: number): TryOutcome<never> {
    this.#moveOn(place);
    const reason = systemCodes(thrown).find((code) => UNSENT_CODES.has(code) || isUntrusted(code));
    return { kind: "lost", sent: reason === undefined, reason, cause: thrown };
  }

  /** Calls that fail together leave a server once, not once each. */
  #moveOn(from: number): void {
    if (this.#current === from) this.#current += 1;
  }
}
