import { Agent, request as sendRequest, type IncomingMessage } from "node:http";
import type { Subject } from "../../src/core/subject.ts";
import type { Outcome } from "../history.ts";
import { bearerOf } from "../network/bearer.ts";
import type { Recorder } from "../recorder.ts";

/** Where calls go: a node, or the front (which does not say which node answered). */
export interface HttpTarget {
  readonly node: string | undefined;
  readonly url: string;
}

export interface HttpCall {
  /** The name of the call as in contract 6.1. */
  readonly call: string;
  readonly subject: Subject;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: { readonly requestId?: string } | readonly unknown[];
  readonly headers?: { readonly [name: string]: string };
  /** Its grant, where nodes want one: then the subject is the grant's. */
  readonly token?: string;
  readonly timeoutMs: number;
  /** What the record says was asked for, when the path says a part of it. Default: the body. */
  readonly arguments?: unknown;
}

interface Answer {
  readonly status: number;
  readonly revision: string | undefined;
  readonly text: string;
}

type Members = { readonly [name: string]: unknown };
const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function outcomeOf({ status, revision, text }: Answer): Outcome {
  const body = parse(text);
  if (body === undefined) return { kind: "unknown", cause: `status ${status} without JSON` };
  if (status < 300) return { kind: "acknowledged", answer: body, ...(revision === undefined ? {} : { revision }) };
  const problem = isMembers(body) ? body : {};
  const { code, definite, details, detail } = problem;
  if (typeof code !== "string") return { kind: "unknown", cause: `status ${status} without a code` };
  const told = typeof detail === "string" ? { told: detail } : {};
  return { kind: "refused", code, definite: definite === true, ...(details === undefined ? {} : { details }), ...told };
}

const causeOf = (error: Error): string => {
  const code = "code" in error ? String(error.code) : error.name;
  return code === "ECONNREFUSED" ? `unsent: ${code}` : code;
};

const headersOf = ({ subject, token, headers }: HttpCall): { readonly [name: string]: string } => ({
  ...(token === undefined
    ? { "x-mandate-subject": `${subject.kind}:${subject.id}` }
    : { authorization: `Bearer ${token}` }),
  ...headers,
});

/** Makes calls over HTTP, one try each, and records every one. */
export class HttpCaller {
  readonly #recorder: Recorder;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64, maxFreeSockets: 16 });

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** Makes one try. */
  async call(call: HttpCall, target: HttpTarget): Promise<Outcome> {
    const finish = this.#begin(call, target);
    const outcome = await this.#send(call, target).then(outcomeOf, (thrown: unknown): Outcome => {
      return { kind: "unknown", cause: thrown instanceof Error ? causeOf(thrown) : String(thrown) };
    });
    finish(outcome);
    return outcome;
  }

  /** Takes in whatever an answer that may never end tells within a time, and records it as one text. */
  async listen(
    call: HttpCall,
    target: HttpTarget,
    how: { readonly forMs: number; readonly bytesMax: number },
  ): Promise<void> {
    const finish = this.#begin(call, target);
    let text = "";
    let status = 0;
    try {
      const response = await fetch(`${target.url}${call.path}`, {
        headers: headersOf(call),
        signal: AbortSignal.timeout(how.forMs),
      });
      ({ status } = response);
      const decoder = new TextDecoder();
      for await (const piece of response.body ?? []) {
        text += decoder.decode(piece as Uint8Array, { stream: true });
        if (text.length > how.bytesMax) break;
      }
    } catch {
      // What was told until now is what counts.
    }
    if (status === 200) finish({ kind: "acknowledged", answer: { text } });
    else if (status === 0) finish({ kind: "unknown", cause: "no answer" });
    else finish(outcomeOf({ status, revision: undefined, text }));
  }

  close(): void {
    this.#agent.destroy();
  }

  #begin(call: HttpCall, target: HttpTarget): (outcome: Outcome) => void {
    const { subject, body } = call;
    const requestId = body !== undefined && "requestId" in body ? body.requestId : undefined;
    const bearer = bearerOf(call.token);
    return this.#recorder.begin({
      caller: `${subject.kind}:${subject.id}`,
      surface: "http",
      call: call.call,
      arguments: call.arguments ?? body ?? {},
      ...(requestId === undefined ? {} : { requestId }),
      ...(target.node === undefined ? {} : { node: target.node }),
      ...(bearer === undefined ? {} : { bearer }),
    });
  }

  #send(call: HttpCall, target: HttpTarget): Promise<Answer> {
    const { method, path, timeoutMs } = call;
    const text = call.body === undefined ? undefined : JSON.stringify(call.body);
    return new Promise((resolve, reject) => {
      const take = (message: IncomingMessage): void => {
        const pieces: Buffer[] = [];
        message.on("data", (piece: Buffer) => pieces.push(piece));
        message.on("error", reject);
        message.on("aborted", () => reject(new Error("the answer broke off")));
        message.on("end", () => {
          const revision = message.headers["mandate-revision"];
          resolve({
            status: message.statusCode ?? 0,
            revision: typeof revision === "string" ? revision : undefined,
            text: Buffer.concat(pieces).toString("utf8"),
          });
        });
      };
      const request = sendRequest(`${target.url}${path}`, {
        method,
        agent: this.#agent,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          ...(text === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
          ...headersOf(call),
        },
      });
      request.on("response", take);
      request.on("error", reject);
      request.end(text);
    });
  }
}
