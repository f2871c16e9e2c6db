import type { Attempt, WorkloadRecord } from "./record.ts";
import { sameValue } from "./same-value.ts";
import { terminalStates, type WorkloadState } from "./states.ts";

/** Says what is wrong with a commit, or nothing. `before`: absent when it creates the record. */
type SuccessionCheck = (before: WorkloadRecord | undefined, after: WorkloadRecord) => string | undefined;

/** A check that has nothing to say about a creation. */
const between =
  (check: (before: WorkloadRecord, after: WorkloadRecord) => string | undefined): SuccessionCheck =>
  (before, after) =>
    before === undefined ? undefined : check(before, after);

const admittedFields = [
  "contractVersion",
  "workloadId",
  "tenantId",
  "applicationId",
  "environment",
  "definitionId",
  "definitionRevision",
  "trigger",
  "input",
  "inputHash",
  "requestedBy",
  "sessionId",
  "authorization",
  "reauthorize",
  "capabilities",
  "connectionScopes",
  "priority",
  "idempotencyKey",
  "notBefore",
  "createdAt",
  "retryPolicy",
  "timeouts",
  "dependencies",
  "placement",
] as const satisfies readonly (keyof WorkloadRecord)[];

const checkAdmitted = between((before, after) => {
  const changed = admittedFields.filter((field) => !sameValue(before[field], after[field]));
  if (changed.length > 0) return `${changed.join(", ")} changed`;
  return sameValue(before.approval?.policy, after.approval?.policy) ? undefined : "the approval policy changed";
});

const isPrefix = (before: readonly unknown[], after: readonly unknown[]): boolean =>
  before.length <= after.length && before.every((item, index) => sameValue(item, after[index]));

/** Parts of an attempt that are settled when it begins. */
const attemptIdentity = ({ attemptId, workloadId, workerId, claimId, fencingToken, inputHash }: Attempt): unknown => ({
  attemptId,
  workloadId,
  workerId,
  claimId,
  fencingToken,
  inputHash,
});

const checkGrowth = between((before, after) => {
  if (!isPrefix(before.history, after.history)) return "the history was rewritten";
  if (!isPrefix(before.checkpoints, after.checkpoints)) return "the checkpoints were rewritten";
  if (!isPrefix(before.attempts.slice(0, -1), after.attempts)) return "an earlier attempt changed";
  const last = before.attempts.at(-1);
  if (last === undefined) return undefined;
  const next = after.attempts[before.attempts.length - 1];
  if (next === undefined) return "an attempt is gone";
  if (last.endedAt !== undefined && !sameValue(last, next)) return `${last.attemptId} changed after its end`;
  if (last.startedAt !== undefined && last.startedAt !== next.startedAt) return `${last.attemptId} started again`;
  return sameValue(attemptIdentity(last), attemptIdentity(next)) ? undefined : `${last.attemptId} became another's`;
});

const checkTokens = between((before, after) => {
  const claims = after.history.slice(before.history.length).filter(({ to }) => to === "CLAIMED").length;
  if (claims > 1) return `${claims} claims in one commit`;
  if (after.fencingToken !== before.fencingToken + claims)
    return `${claims} claims took the token from ${before.fencingToken} to ${after.fencingToken}`;
  if (after.attemptCount !== before.attemptCount + claims) return `attemptCount became ${after.attemptCount}`;
  return after.retryCount < before.retryCount ? `retryCount fell to ${after.retryCount}` : undefined;
});

const checkClaim = between((before, after) => {
  const old = before.currentClaim;
  const now = after.currentClaim;
  if (now === undefined) return undefined;
  if (old === undefined || old.claimId !== now.claimId)
    return now.fencingToken > before.fencingToken ? undefined : `the claim ${now.claimId} came back`;
  const renewed = { ...old, expiresAt: now.expiresAt, lastHeartbeat: now.lastHeartbeat };
  return sameValue(renewed, now) ? undefined : `the claim ${now.claimId} changed`;
});

const checkUpdatedAt = between((before, after) =>
  after.updatedAt < before.updatedAt ? `updatedAt fell from ${before.updatedAt} to ${after.updatedAt}` : undefined,
);

const checkDecision = between((before, after) => {
  const decision = before.approval?.decision;
  if (decision !== undefined && !sameValue(decision, after.approval?.decision)) return "the decision changed";
  return isPrefix(before.approval?.given ?? [], after.approval?.given ?? []) ? undefined : "a given approval changed";
});

const checkResult = between((before, after) =>
  before.result === undefined || sameValue(before.result, after.result) ? undefined : "the result changed",
);

const checkEnd = between((before, after) => {
  if (terminalStates.includes(before.state))
    return sameValue(before, after) ? undefined : `a ${before.state} workload changed`;
  if (before.state !== "DEAD_LETTER") return undefined;
  const next = after.history[before.history.length];
  if (next === undefined) return sameValue(before, after) ? undefined : "a DEAD_LETTER workload changed";
  return next.to === "CANCELLED" || next.evidence["retry"] === "operator"
    ? undefined
    : `DEAD_LETTER was left for ${next.to} by ${next.actor}`;
});

const passedStates: readonly WorkloadState[] = ["CREATED", "RECOVERING", "FAILED", "TIMED_OUT"];

const checkRest: SuccessionCheck = (before, after) => {
  const moved = before === undefined || after.history.length > before.history.length;
  return moved && passedStates.includes(after.state) ? `the commit ends in ${after.state}` : undefined;
};

const checkBeginning: SuccessionCheck = (before, after) => {
  if (before !== undefined) return undefined;
  const begun =
    after.history.length === 1 &&
    (after.state === "READY" || after.state === "AWAITING_APPROVAL") &&
    after.attempts.length === 0 &&
    after.checkpoints.length === 0 &&
    after.approval?.decision === undefined;
  return begun ? undefined : `it begins in ${after.state} with ${after.history.length} events`;
};

/** The checks behind the invariants of a succession, by name. */
export const successionChecks = {
  I14: checkAdmitted,
  I15: checkGrowth,
  I16: checkTokens,
  I17: checkClaim,
  I18: checkUpdatedAt,
  I19: checkDecision,
  I20: checkResult,
  I21: checkEnd,
  I22: checkRest,
  I23: checkBeginning,
} as const satisfies { readonly [name: string]: SuccessionCheck };
