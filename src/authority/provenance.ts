import type { Change } from "../core/workload/decision.ts";
import type { CallContext } from "./api.ts";

/** Who did what, kept with every stored message (contract 5.2). Never a payload, never a token. */
export function provenanceOf(
  change: Change,
  who: { readonly operationId: string; readonly context: CallContext; readonly nodeId: string },
): Readonly<Record<string, string>> {
  const { record, action } = change;
  const { subject, sessionId } = who.context;
  const attempt = record.attempts.at(-1);
  const provenance: Record<string, string> = {
    action,
    node: who.nodeId,
    tenant: record.tenantId,
    application: record.applicationId,
    workload: record.workloadId,
  };
  if (subject !== undefined) provenance["subject"] = `${subject.kind}:${subject.id}`;
  if (action === "admit") {
    const { issuer, grantId } = record.authorization;
    provenance["subject"] = `${record.requestedBy.kind}:${record.requestedBy.id}`;
    provenance["issuer"] = `${issuer.kind}:${issuer.id}`;
    provenance["grant"] = grantId;
  }
  const session = sessionId ?? (action === "admit" ? record.sessionId : undefined);
  if (session !== undefined) provenance["session"] = session;
  if (attempt !== undefined) {
    provenance["attempt"] = attempt.attemptId;
    provenance["worker"] = attempt.workerId;
  }
  return provenance;
}
