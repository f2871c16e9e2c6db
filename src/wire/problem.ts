import { errorRegistry, type ErrorCode, type ErrorDetails, type MandateError } from "../core/errors.ts";

/** Media type of {@link Problem} (RFC 9457). */
export const PROBLEM_MEDIA_TYPE = "application/problem+json";

/** A refusal as the surfaces show it (RFC 9457; contract 6.2, 6.3). */
export interface Problem {
  readonly type: string;
  /** What the code means: the same at every occurrence. */
  readonly title: string;
  readonly status: number;
  /** What is wrong this time. */
  readonly detail: string;
  readonly code: ErrorCode;
  readonly details?: ErrorDetails;
  readonly definite: boolean;
  readonly retry: boolean;
}

/** Renders an error. Its cause and its stack never leave the node. */
export function problemOf(error: MandateError): Problem {
  const { code } = error;
  const traits = errorRegistry[code];
  return {
    type: `urn:mandate:error:${code}`,
    title: traits.doc,
    status: traits.httpStatus,
    detail: error.message,
    code,
    ...(error.details === undefined ? {} : { details: error.details }),
    definite: traits.definite,
    retry: traits.retry,
  };
}

/** One item of a batch's answer, its error rendered like an answer of its own. */
export const renderItem = (
  item: { readonly ok: true } | { readonly ok: false; readonly error: MandateError },
): object => (item.ok ? item : { ok: false, error: problemOf(item.error) });
