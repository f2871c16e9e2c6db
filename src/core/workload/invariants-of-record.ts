import { sameSubject } from "../subject.ts";
import { attemptIdOf, checkpointIdOf, claimIdOf, idempotencyScope, leaseIdOf, workloadIdOf } from "./identity.ts";
import type { Attempt, WorkloadRecord } from "./record.ts";
import { attemptBudgetOf, rearmsOf } from "./retry-policy.ts";
import { eventTypes, heldStates, mayGo } from "./states.ts";

/** Says what is wrong, or nothing. */
type RecordCheck = (record: WorkloadRecord) => string | undefined;

/** The first problem that `find` sees in a list. */
function firstProblem<Item>(
  items: readonly Item[],
  find: (item: Item, index: number, before: Item | undefined) => string | undefined,
): string | undefined {
  for (const [index, item] of items.entries()) {
    const problem = find(item, index, items[index - 1]);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const checkHistory: RecordCheck = ({ history }) =>
  history.length === 0
    ? "the history is empty"
    : firstProblem(history, (event, index, before) => {
        if (event.sequence !== index + 1) return `event ${index + 1} has sequence ${event.sequence}`;
        const from = before?.to ?? "CREATED";
        if (event.from !== from) return `event ${event.sequence} is from ${event.from}, not ${from}`;
        return event.type === eventTypes[event.to]
          ? undefined
          : `event ${event.sequence} to ${event.to} is ${event.type}`;
      });

const checkMoves: RecordCheck = ({ history }) =>
  firstProblem(history, ({ from, to, sequence }) =>
    from !== undefined && mayGo(from, to) ? undefined : `event ${sequence} goes from ${from} to ${to}`,
  );

const checkTimes: RecordCheck = ({ createdAt, updatedAt, history }) =>
  firstProblem([createdAt, ...history.map(({ at }) => at), updatedAt], (at, index, before) =>
    before !== undefined && at < before ? `${at} follows ${before} at place ${index}` : undefined,
  );

const checkState: RecordCheck = ({ state, history }) => {
  const last = history.at(-1)?.to;
  return last === state ? undefined : `the state is ${state} and the last event led to ${last}`;
};

const checkClaim: RecordCheck = ({ state, currentClaim, attempts, fencingToken, workloadId }) => {
  if (currentClaim === undefined) return heldStates.includes(state) ? `${state} without a claim` : undefined;
  if (!heldStates.includes(state)) return `a claim in ${state}`;
  const last = attempts.at(-1);
  const matches =
    last !== undefined &&
    currentClaim.workloadId === workloadId &&
    currentClaim.claimId === last.claimId &&
    currentClaim.workerId === last.workerId &&
    currentClaim.fencingToken === last.fencingToken &&
    currentClaim.fencingToken === fencingToken;
  return matches ? undefined : `the claim ${currentClaim.claimId} is not the last attempt's`;
};

const checkTokens: RecordCheck = ({ fencingToken, attemptCount, attempts, history }) => {
  const claims = history.filter(({ to }) => to === "CLAIMED");
  if (fencingToken !== claims.length || attemptCount !== claims.length || attempts.length !== claims.length)
    return `token ${fencingToken}, attemptCount ${attemptCount}, ${attempts.length} attempts, ${claims.length} CLAIMED events`;
  return firstProblem(attempts, (attempt, index) =>
    attempt.fencingToken === index + 1 && claims[index]?.evidence["fencingToken"] === String(index + 1)
      ? undefined
      : `attempt ${index + 1} has token ${attempt.fencingToken}`,
  );
};

const checkBudget: RecordCheck = (record) => {
  if (record.attemptCount > attemptBudgetOf(record))
    return `${record.attemptCount} attempts of ${attemptBudgetOf(record)}`;
  if (rearmsOf(record) > record.retryPolicy.maxAttempts) return `${rearmsOf(record)} re-arms`;
  const rearms = record.history.filter(({ evidence }) => evidence["retry"] === "operator");
  return firstProblem(rearms, ({ evidence }, index) =>
    evidence["operatorRetry"] === String(index + 1)
      ? undefined
      : `re-arm ${index + 1} is numbered ${evidence["operatorRetry"]}`,
  );
};

const checkApproved: RecordCheck = ({ approval, attempts, history }) => {
  if (approval === undefined || attempts.length === 0) return undefined;
  if (approval.decision?.outcome !== "approved") return "an attempt without an approved decision";
  const decided = history.findIndex(({ from, to }) => from === "AWAITING_APPROVAL" && to === "READY");
  const claimed = history.findIndex(({ to }) => to === "CLAIMED");
  return decided >= 0 && decided < claimed ? undefined : "a claim before the decision";
};

const isLive = ({ status }: Attempt): boolean =>
  status === "CLAIMED" || status === "RUNNING" || status === "CHECKPOINTED";

const checkAttempts: RecordCheck = ({ state, attempts }) =>
  firstProblem(attempts, (attempt, index) => {
    const { attemptId, status, startedAt, endedAt } = attempt;
    if (!isLive(attempt)) return endedAt === undefined ? `${attemptId} is ${status} without an end` : undefined;
    if (index !== attempts.length - 1) return `${attemptId} is not the last and ${status}`;
    if (!heldStates.includes(state)) return `${attemptId} is ${status} in ${state}`;
    if (state !== "CANCELLATION_REQUESTED" && status !== state) return `${attemptId} is ${status} in ${state}`;
    if (endedAt !== undefined) return `${attemptId} is ${status} and ended`;
    return (startedAt === undefined) === (status === "CLAIMED")
      ? undefined
      : `${attemptId} is ${status}, started ${startedAt}`;
  }) ?? (heldStates.includes(state) && !attempts.some(isLive) ? `${state} without a live attempt` : undefined);

const checkResult: RecordCheck = ({ state, result, attempts, workloadId }) => {
  const succeeded = attempts.filter(({ status }) => status === "SUCCEEDED").length;
  if (result === undefined) {
    if (state === "SUCCEEDED") return "SUCCEEDED without a result";
    return succeeded === 0 ? undefined : "an attempt succeeded without a result";
  }
  if (state !== "SUCCEEDED") return `a result in ${state}`;
  const last = attempts.at(-1);
  const matches =
    last !== undefined &&
    succeeded === 1 &&
    last.status === "SUCCEEDED" &&
    last.resultHash === result.outputHash &&
    last.attemptId === result.attemptId &&
    last.claimId === result.provenance.claimId &&
    last.fencingToken === result.provenance.fencingToken &&
    last.workerId === result.producedBy &&
    result.workloadId === workloadId;
  return matches ? undefined : `the result ${result.resultId} is not the last attempt's`;
};

const checkCheckpoints: RecordCheck = ({ checkpoints, attempts }) => {
  const places = checkpoints.map(({ attemptId }) => attempts.findIndex((attempt) => attempt.attemptId === attemptId));
  return firstProblem(checkpoints, ({ sequence, attemptId }, index) => {
    if (sequence !== index + 1) return `checkpoint ${index + 1} has sequence ${sequence}`;
    const place = places[index] ?? -1;
    return place >= 0 && place >= (places[index - 1] ?? 0) ? undefined : `checkpoint ${sequence} is of ${attemptId}`;
  });
};

const checkIdentities: RecordCheck = (record) => {
  const { workloadId, attempts, checkpoints, currentClaim, inputHash } = record;
  if (workloadId !== workloadIdOf(idempotencyScope(record))) return `${workloadId} is not derived from its scope`;
  if (currentClaim !== undefined && currentClaim.leaseId !== leaseIdOf(currentClaim.fencingToken))
    return `the lease is ${currentClaim.leaseId}`;
  return (
    firstProblem(attempts, ({ attemptId, claimId, fencingToken, workerId, ...attempt }, index) =>
      attemptId === attemptIdOf(workloadId, index + 1) &&
      claimId === claimIdOf(workloadId, fencingToken, workerId) &&
      attempt.workloadId === workloadId &&
      attempt.inputHash === inputHash
        ? undefined
        : `attempt ${index + 1} is ${attemptId} by ${claimId}`,
    ) ??
    firstProblem(checkpoints, (checkpoint, index) =>
      checkpoint.checkpointId === checkpointIdOf(workloadId, index + 1) && checkpoint.workloadId === workloadId
        ? undefined
        : `checkpoint ${index + 1} is ${checkpoint.checkpointId}`,
    )
  );
};

const checkDecision: RecordCheck = ({ approval, state, inputHash, requestedBy }) => {
  const decision = approval?.decision;
  if ((state === "REJECTED") !== (decision?.outcome === "rejected"))
    return `${state} with the decision ${decision?.outcome}`;
  if (approval === undefined) return undefined;
  const { approverKinds, approvers, requiredApprovals = 1 } = approval.policy;
  const verdicts = [...(approval.given ?? []), ...(decision === undefined ? [] : [decision])];
  const problem = firstProblem(verdicts, ({ decidedBy, inputHash: decidedOn }) => {
    const listed = approvers.length === 0 || approvers.some((approver) => sameSubject(approver, decidedBy));
    const permitted = listed && approverKinds.some((kind) => kind === decidedBy.kind);
    if (!permitted || sameSubject(decidedBy, requestedBy)) return `${decidedBy.kind}:${decidedBy.id} may not decide`;
    return decidedOn === inputHash ? undefined : `${decidedBy.id} decided on another input`;
  });
  if (problem !== undefined) return problem;
  const approving = verdicts.filter(({ outcome }) => outcome === "approved");
  const distinct = new Set(approving.map(({ decidedBy }) => JSON.stringify([decidedBy.kind, decidedBy.id]))).size;
  return decision?.outcome === "approved" && distinct < requiredApprovals
    ? `approved by ${distinct} of ${requiredApprovals}`
    : undefined;
};

/** The checks behind the invariants of a record, by name. */
export const recordChecks = {
  I1: checkHistory,
  I2: checkMoves,
  I3: checkTimes,
  I4: checkState,
  I5: checkClaim,
  I6: checkTokens,
  I7: checkBudget,
  I8: checkApproved,
  I9: checkAttempts,
  I10: checkResult,
  I11: checkCheckpoints,
  I12: checkIdentities,
  I13: checkDecision,
} as const satisfies { readonly [name: string]: RecordCheck };
