import { isErrorCode, MandateError, type ErrorCode, type ErrorDetails } from "../core/errors.ts";

/** What stands for an answer that bears no code of ours: a proxy's own page, say, or a newer server's new code. */
const codeByStatus: { readonly [status: number]: ErrorCode } = {
  401: "SUBJECT_REQUIRED",
  404: "ROUTE_NOT_FOUND",
  405: "METHOD_NOT_ALLOWED",
  413: "WORKLOAD_TOO_LARGE",
  429: "AUTHORITY_OVERLOADED",
  502: "WORKLOAD_OUTCOME_UNKNOWN",
  503: "AUTHORITY_NOT_READY",
  504: "WORKLOAD_OUTCOME_UNKNOWN",
};

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const firstText = (...candidates: readonly unknown[]): string | undefined =>
  candidates.find((candidate): candidate is string => typeof candidate === "string" && candidate !== "");

/** The error that a refusal's body tells (RFC 9457 with `code` and `details`), the same as the server threw. */
export function errorOfProblem(status: number, body: unknown): MandateError {
  const problem = isObject(body) ? body : {};
  const { code, details } = problem;
  const message = firstText(problem["detail"], problem["message"], problem["title"]) ?? `the answer was ${status}`;
  if (isErrorCode(code)) return new MandateError(code, message, isObject(details) ? { details } : {});
  const known: ErrorDetails = { status, ...(typeof code === "string" ? { code } : {}) };
  return new MandateError(codeByStatus[status] ?? "INTERNAL_ERROR", message, { details: known });
}

/** Repeating the same call at once or a little later may help, and is safe when it carries a requestId. */
export const isPassing = (error: MandateError): boolean =>
  error.code === "AUTHORITY_NOT_READY" ||
  error.code === "AUTHORITY_OVERLOADED" ||
  error.code === "WORKLOAD_STORAGE_FAILURE" ||
  error.code === "WORKLOAD_OUTCOME_UNKNOWN" ||
  error.code === "WORKLOAD_CONFLICT" ||
  error.code === "INTERNAL_ERROR";

const UNTRUSTED =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|CERT_[A-Z_]+|ERR_TLS_CERT_ALTNAME_INVALID)$/;

/** Whether a code of Node's says that a server's certificate is not trusted: then nothing was said to that server. */
export const isUntrusted = (code: string): boolean => UNTRUSTED.test(code);
