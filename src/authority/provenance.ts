import type { Change } from "../core/workload/decision.ts";
import type { CallContext } from "./api.ts";

/** Who calls, as stored messages tell it: the subject, and under which grant of whose (contract 4.3). */
export function whoOf({ subject, sessionId, grant }: CallContext): Readonly<Record<string, string>> {
  return {
    ...(subject === undefined ? {} : { subject: `${subject.kind}:${subject.id}` }),
    ...(grant === undefined ? {} : { issuer: `${grant.issuer.kind}:${grant.issuer.id}`, grant: grant.grantId }),
    ...(sessionId === undefined ? {} : { session: sessionId }),
  };
}

/** Who did what, kept with every stored message (contract 5.2). Never a payload, never a token. */
export function provenanceOf(
  change: Change,
  who: { readonly operationId: string; readonly context: CallContext; readonly nodeId: string },
): Readonly<Record<string, string>> {
  const { record, action } = change;
  const attempt = record.attempts.at(-1);
  const provenance: Record<string, string> = {
    action,
    node: who.nodeId,
    tenant: record.tenantId,
    application: record.applicationId,
    workload: record.workloadId,
    ...whoOf(who.context),
  };
  if (action === "admit") {
    const { issuer, grantId } = record.authorization;
    provenance["subject"] = `${record.requestedBy.kind}:${record.requestedBy.id}`;
    provenance["issuer"] = `${issuer.kind}:${issuer.id}`;
    provenance["grant"] = grantId;
  }
  if (action === "admit" && record.sessionId !== undefined) provenance["session"] ??= record.sessionId;
  if (attempt !== undefined) {
    provenance["attempt"] = attempt.attemptId;
    provenance["worker"] = attempt.workerId;
  }
  return provenance;
}
