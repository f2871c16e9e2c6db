import type { CallContext } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import { sameSubject, type Subject } from "../core/subject.ts";
import { parseShape } from "../wire/parse.ts";
import { identifier, subject as subjectShape } from "../wire/shapes.ts";
import { invalidAt } from "./answer.ts";

/** Members that the route or the headers settle. A body may repeat them, and may not contradict them. */

export type Members = Readonly<Record<string, unknown>>;

/** A JSON object; anything else is left to the shapes, which name it. */
export const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** How the operation's id tells callers apart: the kind has no colon, so no two subjects coincide. */
export const callerOf = (subject: Subject): string => `${subject.kind}:${subject.id}`;

/** The context of a call by a subject. */
export const contextOf = (subject: Subject, scope?: CallContext["scope"]): CallContext => ({
  caller: callerOf(subject),
  subject,
  ...(scope === undefined ? {} : { scope }),
});

/**
 * The subject of the header, in the place of a member that should name it. A malformed member stays: the shape names it.
 *
 * @throws MandateError `WORKLOAD_UNAUTHORIZED` when the member names another subject.
 */
export function bindSubject(name: string, given: unknown, subject: Subject): unknown {
  if (given === undefined) return subject;
  const parsed = parseShape(subjectShape, given);
  if (!parsed.ok) return given;
  if (sameSubject(parsed.value, subject)) return subject;
  throw new MandateError("WORKLOAD_UNAUTHORIZED", `${name} is not the subject that asks`, {
    details: { paths: [name] },
  });
}

/**
 * The subject's id, in the place of a member that may name it by id or as a subject.
 *
 * @throws MandateError `WORKLOAD_UNAUTHORIZED` when the member names another subject.
 */
export function bindActor(given: unknown, subject: Subject): unknown {
  if (typeof given !== "string")
    return isMembers(given) ? toId(bindSubject("actor", given, subject)) : (given ?? subject.id);
  if (given === subject.id) return given;
  throw new MandateError("WORKLOAD_UNAUTHORIZED", "actor is not the subject that asks", {
    details: { paths: ["actor"] },
  });
}

const toId = (bound: unknown): unknown => (isMembers(bound) && typeof bound["id"] === "string" ? bound["id"] : bound);

/** The workload of the path, in the place of a member that should name it. */
export function bindWorkloadId(given: unknown, workloadId: string): string {
  if (given === undefined || given === workloadId) return workloadId;
  throw invalidAt("workloadId", "is not the workload of the path");
}

/** The requestId of the body or of the header; both only if they agree. */
export function bindRequestId(given: unknown, header: string | undefined): unknown {
  if (given === undefined || header === undefined) return given ?? header;
  if (given === header) return given;
  throw invalidAt("requestId", "is not the one of the header Mandate-Request-Id");
}

/** An optional body that stands for no member at all when it is absent. */
export function optionalMembers(body: unknown): Members {
  if (body === undefined) return {};
  if (isMembers(body)) return body;
  throw invalidAt("", "the body is not a JSON object");
}

const scopePart = (given: unknown): string => (identifier.safeParse(given).success ? String(given) : "unknown");

/** What stands for a grant while the node runs in open mode (contract 4.3): the subject's word. */
const openGrant = (request: Members, subject: Subject): object => ({
  grantId: "open",
  issuer: { kind: "service", id: "open-mode" },
  subject,
  tenantId: scopePart(request["tenantId"]),
  applicationId: scopePart(request["applicationId"]),
  capabilities: [],
});

/**
 * A request to admit work with what open mode fills in: the requester, and a grant where none is given.
 *
 * @throws MandateError `WORKLOAD_UNAUTHORIZED` when the request names another requester.
 */
export function fillAdmission(request: unknown, subject: Subject, requestId: string | undefined): unknown {
  if (!isMembers(request)) return request;
  const bound = bindRequestId(request["requestId"], requestId);
  return {
    ...request,
    requestedBy: bindSubject("requestedBy", request["requestedBy"], subject),
    authorization: request["authorization"] === undefined ? openGrant(request, subject) : request["authorization"],
    ...(bound === undefined ? {} : { requestId: bound }),
  };
}
