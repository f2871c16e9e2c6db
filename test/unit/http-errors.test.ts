/**
 * Goal: each code of the registry has one status, and what a client is told about an error is what the registry says.
 * Method: every code is rendered; no code and no status is left out in either direction.
 */
import { describe, expect, test } from "vitest";
import { errorRegistry, MandateError, type ErrorCode } from "../../src/core/errors.ts";
import { answerProblem, type HttpAnswer } from "../../src/http/answer.ts";
import { problem } from "../../src/http/schemas.ts";
import { problemOf, renderItem } from "../../src/wire/problem.ts";

const textOf = ({ body }: HttpAnswer): string => (typeof body === "string" ? body : "");

const codes = Object.keys(errorRegistry) as ErrorCode[];

/** Contract 6.2: which statuses there are, and the codes of those that few have. */
const codesByStatus: Readonly<Record<number, readonly ErrorCode[] | "conflicts">> = {
  400: ["WORKLOAD_INVALID", "WORKER_INVALID"],
  401: ["SUBJECT_REQUIRED", "GRANT_INVALID", "GRANT_EXPIRED", "GRANT_REVOKED"],
  403: [
    "WORKLOAD_UNAUTHORIZED",
    "WORKLOAD_CAPABILITY_DENIED",
    "WORKLOAD_APPROVER_NOT_PERMITTED",
    "WORKER_UNAUTHORIZED",
    "MESH_CLAIM_SCOPE_DENIED",
    "MESH_CAPABILITY_DENIED",
    "GRANT_SCOPE_DENIED",
    "GRANT_DELEGATION_INVALID",
  ],
  404: ["WORKLOAD_NOT_FOUND", "WORKER_NOT_FOUND", "WORKER_POOL_NOT_FOUND", "ROUTE_NOT_FOUND"],
  405: ["METHOD_NOT_ALLOWED"],
  409: "conflicts",
  413: ["WORKLOAD_TOO_LARGE"],
  422: ["WORKLOAD_SECRET_REJECTED"],
  429: ["AUTHORITY_OVERLOADED"],
  500: ["INTERNAL_ERROR"],
  503: ["WORKLOAD_OUTCOME_UNKNOWN", "WORKLOAD_STORAGE_FAILURE", "AUTHORITY_NOT_READY"],
};

describe("the registry", () => {
  test("has for every status the codes that the contract gives it, and no other status", () => {
    const found = new Map<number, ErrorCode[]>();
    for (const code of codes) {
      const { httpStatus } = errorRegistry[code];
      found.set(httpStatus, [...(found.get(httpStatus) ?? []), code]);
    }
    expect(new Set(found.keys())).toEqual(new Set(Object.keys(codesByStatus).map(Number)));
    for (const [status, expected] of Object.entries(codesByStatus))
      if (expected !== "conflicts") expect(found.get(Number(status))?.sort()).toEqual([...expected].sort());
  });
});

describe.each(codes)("%s", (code) => {
  const traits = errorRegistry[code];
  const error = new MandateError(code, "what happened", { details: { paths: ["x"] }, cause: new TypeError("inner") });

  test("is rendered as the registry says, without its cause", () => {
    const answer = answerProblem(error);
    expect([answer.status, answer.contentType]).toEqual([traits.httpStatus, "application/problem+json"]);
    const body = problem.parse(JSON.parse(textOf(answer)));
    expect(body).toEqual({
      type: `urn:mandate:error:${code}`,
      title: traits.doc,
      status: traits.httpStatus,
      detail: "what happened",
      code,
      details: { paths: ["x"] },
      definite: traits.definite,
      retry: traits.retry,
    });
    expect(textOf(answer)).not.toContain("inner");
  });

  test("says when to come again exactly if its status does", () => {
    expect(answerProblem(error).headers?.["retry-after"]).toBe(
      [429, 503].includes(traits.httpStatus) ? "1" : undefined,
    );
  });

  test("is the same inside a batch", () => {
    expect(renderItem({ ok: false, error })).toEqual({ ok: false, error: problemOf(error) });
  });
});
