import { decodeToken, encodeToken } from "../base/token.ts";
import { PROTOCOL_VERSION } from "./version.ts";

/** What a worker may ask over NATS (contract 6.3). */
export const workVerbs = [
  "worker.register",
  "worker.heartbeat",
  "worker.drain",
  "worker.reconcile",
  "work.next",
  "work.claim",
  "work.start",
  "work.heartbeat",
  "work.context",
  "work.checkpoint",
  "work.complete",
  "work.fail",
  "work.confirm-cancel",
  "claim.validate",
] as const;
export type WorkVerb = (typeof workVerbs)[number];

/**
 * Published, without a reply, by a worker that stops waiting for work: every node ends the long poll with that workerId
 * and requestId, which is then answered at once. An addition to contract 6.3: without it a poll ends by its own time.
 */
export const END_POLL_VERB = "work.end-next";

/** The queue group that every node joins, so that any of them answers. */
export const WORK_QUEUE = "mandate";

const prefix = `mandate.v${PROTOCOL_VERSION}`;

/** The subject of a call (contract 6.3). Neither identifier may be empty. */
export const workSubject = (
  scope: { readonly tenantId: string; readonly applicationId: string },
  verb: WorkVerb | typeof END_POLL_VERB,
): string => `${prefix}.${encodeToken(scope.tenantId)}.${encodeToken(scope.applicationId)}.${verb}`;

/** What a node subscribes to for one verb, whatever the tenant and the application. */
export const workPattern = (verb: WorkVerb | typeof END_POLL_VERB): string => `${prefix}.*.*.${verb}`;

/** Undoes {@link workSubject}: whose call it is; `undefined` when a token is not one that it makes. */
export function parseWorkSubject(
  subject: string,
): { readonly tenantId: string; readonly applicationId: string } | undefined {
  const [, , tenant, application] = subject.split(".");
  const tenantId = decodeToken(tenant ?? "");
  const applicationId = decodeToken(application ?? "");
  return tenantId === undefined || applicationId === undefined ? undefined : { tenantId, applicationId };
}
