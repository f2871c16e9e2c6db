import { isMembers, type Members } from "../base/members.ts";
import type { WorkloadTraits } from "../authority/access.ts";
import type { CallContext } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import { sameSubject, type Subject } from "../core/subject.ts";
import { admittedIdOf } from "../core/workload/admission.ts";
import { CONTRACT_VERSION, type GrantSnapshot } from "../core/workload/record.ts";
import { parseShape } from "../wire/parse.ts";
import { identifier, subject as subjectShape } from "../wire/shapes.ts";
import { invalidAt } from "./answer.ts";

/** Members that the route or the headers settle. A body may repeat them, and may not contradict them. */

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
 * What the body says of the grant, in the place of which the verified one comes.
 *
 * @throws MandateError `WORKLOAD_UNAUTHORIZED` when it names another.
 */
function bindGrant(given: unknown, grant: GrantSnapshot): GrantSnapshot {
  if (given === undefined || (isMembers(given) && given["grantId"] === grant.grantId)) return grant;
  throw new MandateError("WORKLOAD_UNAUTHORIZED", "authorization is not the grant of the request", {
    details: { paths: ["authorization"] },
  });
}

/**
 * A request to admit work with the requester and the grant of whoever asks; in open mode, which has no grants, what the
 * request says of one, or something that stands for it.
 *
 * @throws MandateError `WORKLOAD_UNAUTHORIZED` when the request names another requester, or another grant.
 */
export function fillAdmission(request: unknown, who: CallContext, requestId: string | undefined): unknown {
  const { subject, grant } = who;
  if (!isMembers(request) || subject === undefined) return request;
  const { authorization } = request;
  const bound = bindRequestId(request["requestId"], requestId);
  const openAuthorization = authorization === undefined ? openGrant(request, subject) : authorization;
  return {
    ...request,
    requestedBy: bindSubject("requestedBy", request["requestedBy"], subject),
    authorization: grant === undefined ? openAuthorization : bindGrant(authorization, grant),
    ...(bound === undefined ? {} : { requestId: bound }),
  };
}

/** The grant that a decision is taken under (contract 1.9): the request's, which a body may repeat. */
export function bindGrantId(given: unknown, grant: GrantSnapshot | undefined): unknown {
  if (grant === undefined) return given === undefined ? "open" : given;
  if (given === undefined || given === grant.grantId) return grant.grantId;
  throw new MandateError("WORKLOAD_UNAUTHORIZED", "grantId is not the grant of the request", {
    details: { paths: ["grantId"] },
  });
}

const texts = ["environment", "definitionId", "definitionRevision", "trigger", "idempotencyKey"] as const;

/**
 * What constraints may ask of a workload that is to be admitted. Members that are no texts are left empty: the shapes
 * refuse them by name before anything is admitted.
 */
export function traitsOfDraft(request: Members, who: Required<Pick<CallContext, "scope" | "subject">>): WorkloadTraits {
  const text = (name: (typeof texts)[number]): string => {
    const value = request[name];
    return typeof value === "string" ? value : "";
  };
  const { connectionScopes } = request;
  const identity = { ...who.scope, requestedBy: who.subject, idempotencyKey: text("idempotencyKey") };
  return {
    workloadId: admittedIdOf(identity),
    environment: text("environment"),
    connectionScopes: Array.isArray(connectionScopes) ? connectionScopes.map(String) : [],
    contractVersion: CONTRACT_VERSION,
    definitionId: text("definitionId"),
    definitionRevision: text("definitionRevision"),
    trigger: text("trigger"),
    requestedBy: who.subject,
  };
}
