import { errorRegistry, MandateError } from "../core/errors.ts";
import { PROBLEM_MEDIA_TYPE, problemOf } from "../wire/problem.ts";

/** What a handler answers, before it is an HTTP response. */
export interface HttpAnswer {
  readonly status: number;
  readonly body?: string | ReadableStream<Uint8Array>;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How soon a client that was told to come again should, seconds. */
const RETRY_AFTER_SECONDS = "1";
const PLEASE_RETRY = new Set([429, 503]);

/** A JSON answer. */
export const answerJson = (
  value: unknown,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> | undefined } = {},
): HttpAnswer => ({
  status: options.status ?? 200,
  body: JSON.stringify(value),
  contentType: "application/json",
  ...(options.headers === undefined ? {} : { headers: options.headers }),
});

/** What the status of an answer asks of its headers (contract 6.2). */
export const headersOfStatus = (status: number): Readonly<Record<string, string>> =>
  PLEASE_RETRY.has(status) ? { "retry-after": RETRY_AFTER_SECONDS } : {};

/** RFC 9110 wants every 401 to say how the subject is named: by itself in open mode, else by a grant (RFC 6750). */
function challengeOf(error: MandateError, status: number): Readonly<Record<string, string>> {
  if (status !== 401) return {};
  return { "www-authenticate": error.code === "SUBJECT_REQUIRED" ? "X-Mandate-Subject" : "Bearer" };
}

/** A refusal (RFC 9457). */
export function answerProblem(error: MandateError, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  const status = errorRegistry[error.code].httpStatus;
  return {
    status,
    body: JSON.stringify(problemOf(error)),
    contentType: PROBLEM_MEDIA_TYPE,
    headers: { ...headersOfStatus(status), ...challengeOf(error, status), ...headers },
  };
}

/** The refusal of one value of a request, naming its place. */
export const invalidAt = (path: string, rule: string): MandateError =>
  new MandateError("WORKLOAD_INVALID", `${path}: ${rule}`.toWellFormed(), {
    details: { paths: [path], issues: [{ path, message: rule }] },
  });
