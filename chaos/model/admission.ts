import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import { workloadIdOf } from "./identities.ts";
import { same } from "./same.ts";
import { eventTypeOf } from "./states.ts";
import type { Breach } from "./step.ts";

/** What is wrong with the first version of a record (contract 1.3, 1.7). */
export function examineAdmission(record: WorkloadRecord): readonly Breach[] {
  const breaches: Breach[] = [];
  const require = (condition: boolean, message: string): void => {
    if (!condition) breaches.push({ rule: "succession", message });
  };
  const { approval, history, authorization, notBefore } = record;
  const state = approval === undefined ? "READY" : "AWAITING_APPROVAL";
  const event = history[0];
  require(record.workloadId === workloadIdOf(record), "the workload's id is not that of its idempotency scope");
  require(record.state === state, `it begins in ${record.state}, not ${state}`);
  require(history.length === 1 && event !== undefined, `it begins with ${history.length} events`);
  if (event !== undefined) {
    const begun = event.sequence === 1 && event.from === "CREATED" && event.to === state;
    require(begun && event.type === eventTypeOf(state), "its first event is not that of an admission");
    require(event.actor === "authority", `it was admitted by ${event.actor}`);
    require(event.at === record.createdAt, "its first event is not at createdAt");
    if (approval !== undefined) require(event.evidence["approval"] === "required", "evidence approval is missing");
    if (notBefore !== undefined) require(event.evidence["notBefore"] !== undefined, "evidence notBefore is missing");
  }
  require(record.nextAttemptAt === notBefore, "nextAttemptAt is not notBefore");
  require(record.fencingToken === 0 && record.attemptCount === 0 && record.retryCount === 0, "it begins with counts");
  const empty = record.attempts.length === 0 && record.checkpoints.length === 0;
  require(empty && record.result === undefined && record.currentClaim === undefined, "it begins with work done");
  require(approval?.decision === undefined && (approval?.given ?? []).length === 0, "it begins with a decision");
  const bound =
    same(authorization.subject, record.requestedBy) &&
    authorization.tenantId === record.tenantId &&
    authorization.applicationId === record.applicationId;
  require(bound, "the grant does not bind the requester, the tenant and the application");
  return breaches;
}
