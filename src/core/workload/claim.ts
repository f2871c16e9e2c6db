import { refuse, type Refusal } from "../errors.ts";
import type { Revocations } from "../grant/revocation.ts";
import { findLost } from "../grant/snapshot.ts";
import { enforceDeadlines } from "./deadlines.ts";
import { changeOf, refused, type Decision } from "./decision.ts";
import { checkFence, type Fence, type Instant } from "./fence.ts";
import { attemptIdOf, claimIdOf, leaseIdOf } from "./identity.ts";
import type { Claim, Dependency, WorkloadRecord } from "./record.ts";
import { attemptBudgetOf } from "./retry-policy.ts";
import { terminalStates, type WorkloadState } from "./states.ts";
import { applyMove, denyMove, laterBy, withLastAttempt } from "./transition.ts";

export interface ClaimCommand {
  readonly workerId: string;
  readonly capabilities: readonly string[];
  readonly leaseMs: number;
  /** The same commit also starts the attempt. */
  readonly start?: boolean | undefined;
  /** What else the CLAIMED event tells: the placement, and the slots that the claim holds (contract 2.1, 2.3). */
  readonly evidence?: { readonly [name: string]: string } | undefined;
}

/** States of the workloads that this one depends on, as far as they exist in its own tenant and application. */
export type DependencyStates = ReadonlyMap<string, WorkloadState>;

/** The dependencies that are not in their required state. */
export const pendingDependencies = (
  record: WorkloadRecord,
  states: DependencyStates,
): readonly (Dependency & { state?: WorkloadState })[] =>
  record.dependencies
    .filter(({ workloadId, requiredState }) => states.get(workloadId) !== requiredState)
    .map((dependency) => {
      const state = states.get(dependency.workloadId);
      return state === undefined ? dependency : { ...dependency, state };
    });

/** A policy without an approved decision (contract 1.8: whatever the state says). */
export const lacksApproval = (record: WorkloadRecord): boolean =>
  record.approval !== undefined && record.approval.decision?.outcome !== "approved";

/** Why a workload that is within its budget can't be claimed now, in the order of contract 1.8. */
function findObstacle(
  record: WorkloadRecord,
  command: ClaimCommand,
  seen: { readonly at: number; readonly states: DependencyStates },
): Refusal | undefined {
  const { state, nextAttemptAt } = record;
  if (state === "AWAITING_APPROVAL") return refuse("WORKLOAD_APPROVAL_PENDING", "the workload waits for an approval");
  if (state === "REJECTED") return refuse("WORKLOAD_REJECTED", "the workload was rejected");
  if (state !== "READY") return refuse("WORKLOAD_NOT_READY", `the workload is ${state}, not READY`, { state });
  if (lacksApproval(record)) return refuse("WORKLOAD_APPROVAL_PENDING", "the workload has no approval on record");
  if (nextAttemptAt !== undefined && nextAttemptAt > seen.at)
    return refuse("WORKLOAD_NOT_YET_ELIGIBLE", `the workload may be claimed from ${nextAttemptAt} on`, {
      nextAttemptAt,
    });
  const pending = pendingDependencies(record, seen.states);
  if (pending.length > 0)
    return refuse("WORKLOAD_DEPENDENCY_PENDING", `${pending.length} dependencies are not in their required state`, {
      dependencies: pending,
    });
  const missing = record.capabilities.filter((capability) => !command.capabilities.includes(capability));
  if (missing.length > 0)
    return refuse("WORKLOAD_CAPABILITY_DENIED", `the worker lacks ${missing.length} of the capabilities needed`, {
      missing,
    });
  return undefined;
}

/** Whether a READY workload has used up its attempts: to be dead-lettered instead of claimed. */
export const isExhausted = (record: WorkloadRecord): boolean =>
  record.state === "READY" && record.attemptCount >= attemptBudgetOf(record);

function decideExhausted(record: WorkloadRecord, at: number): Decision<Claim> {
  const evidence = {
    reason: "attempt_budget_exhausted",
    attemptsUsed: record.attemptCount,
    attemptBudget: attemptBudgetOf(record),
  };
  return {
    ok: false,
    error: refuse("WORKLOAD_ATTEMPTS_EXHAUSTED", `all ${evidence.attemptBudget} attempts are used`, {
      attemptsUsed: evidence.attemptsUsed,
      attemptBudget: evidence.attemptBudget,
    }),
    change: changeOf("claim", applyMove(record, { to: "DEAD_LETTER", actor: "authority.claim", at, evidence })),
  };
}

/** Why the requester's grant no longer stands, where that is to be asked (contract 4.2). */
export const lostAuthorization = (
  record: WorkloadRecord,
  how: { readonly now: number; readonly revocations: Revocations | undefined },
): ReturnType<typeof findLost> => (record.reauthorize === "never" ? undefined : findLost(record.authorization, how));

/** The requester's grant no longer stands: nobody may do this work in his name any more (contract 4.2). */
function decideUnauthorized(record: WorkloadRecord, reason: string, at: number): Decision<Claim> {
  const { grantId } = record.authorization;
  const evidence = { decision: "authorization_lost", reason, grantId };
  return {
    ok: false,
    error: refuse("WORKLOAD_UNAUTHORIZED", `the requester's grant is ${reason}; the workload is in DEAD_LETTER`, {
      reason,
      grantId,
    }),
    change: changeOf("claim", applyMove(record, { to: "DEAD_LETTER", actor: "authority.claim", at, evidence })),
  };
}

function applyStart(record: WorkloadRecord, workerId: string, at: number): WorkloadRecord {
  const running = withLastAttempt(record, { status: "RUNNING", startedAt: at });
  return applyMove(running, {
    to: "RUNNING",
    actor: workerId,
    at,
    evidence: { attemptId: running.attempts.at(-1)?.attemptId },
  });
}

function applyClaim(
  record: WorkloadRecord,
  command: ClaimCommand,
  at: number,
): { readonly record: WorkloadRecord; readonly claim: Claim } {
  const { workerId, leaseMs } = command;
  const { workloadId } = record;
  const fencingToken = record.fencingToken + 1;
  const attemptCount = record.attemptCount + 1;
  const claim: Claim = {
    claimId: claimIdOf(workloadId, fencingToken, workerId),
    workloadId,
    workerId,
    leaseId: leaseIdOf(fencingToken),
    fencingToken,
    capabilities: record.capabilities,
    claimedAt: at,
    expiresAt: laterBy(at, leaseMs),
    lastHeartbeat: at,
  };
  const claimed: WorkloadRecord = {
    ...record,
    fencingToken,
    attemptCount,
    currentClaim: claim,
    attempts: [
      ...record.attempts,
      {
        attemptId: attemptIdOf(workloadId, attemptCount),
        workloadId,
        workerId,
        claimId: claim.claimId,
        fencingToken,
        inputHash: record.inputHash,
        resourceUsage: {},
        status: "CLAIMED",
      },
    ],
  };
  const moved = applyMove(claimed, {
    to: "CLAIMED",
    actor: workerId,
    at,
    evidence: { fencingToken, ...command.evidence },
  });
  return { record: command.start === true ? applyStart(moved, workerId, at) : moved, claim };
}

/** Dependencies whose required state could be left again: the commit must find them as they were seen. */
const changeableDependencies = (record: WorkloadRecord): readonly string[] =>
  record.dependencies
    .filter(({ requiredState }) => !terminalStates.includes(requiredState))
    .map(({ workloadId }) => workloadId);

/** Leases the workload to a worker (contract 1.8). */
export function decideClaim(
  record: WorkloadRecord,
  command: ClaimCommand,
  seen: Instant & { readonly dependencies: DependencyStates },
): Decision<Claim> {
  return enforceDeadlines(record, seen.now, (at) => {
    if (isExhausted(record)) return decideExhausted(record, at);
    const obstacle = findObstacle(record, command, { at, states: seen.dependencies });
    if (obstacle !== undefined) return refused(obstacle);
    // Only a claim that would succeed looks at the grant: nobody else may end the work by asking for it.
    const lost = lostAuthorization(record, { now: at, revocations: seen.revocations });
    if (lost !== undefined) return decideUnauthorized(record, lost, at);
    const taken = applyClaim(record, command, at);
    return {
      ok: true,
      answer: taken.claim,
      change: changeOf("claim", taken.record, {
        assertedDependencies: changeableDependencies(record),
        reference: taken.claim.fencingToken,
      }),
    };
  });
}

/** CLAIMED → RUNNING (contract 1.8). Answers the claim. */
export const decideStart = (record: WorkloadRecord, fence: Fence, instant: Instant): Decision<Claim> =>
  enforceDeadlines(record, instant.now, (at) => {
    const stale = checkFence(record, fence, { ...instant, now: at });
    if (stale !== undefined) return refused(stale);
    const claim = record.currentClaim;
    if (record.state !== "CLAIMED" || claim === undefined) return refused(denyMove(record, "started"));
    return {
      ok: true,
      answer: claim,
      change: changeOf("start", applyStart(record, fence.workerId, at)),
    };
  });
