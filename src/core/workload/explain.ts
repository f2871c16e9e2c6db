import type { Revocations } from "../grant/revocation.ts";
import { isExhausted, lacksApproval, lostAuthorization, pendingDependencies, type DependencyStates } from "./claim.ts";
import type { Dependency, WorkloadRecord } from "./record.ts";
import { attemptBudgetOf } from "./retry-policy.ts";
import type { PlacementExplanation } from "../worker/placement.ts";
import type { WorkloadState } from "./states.ts";
import { instantOf } from "./transition.ts";

/** What now keeps a workload from running (contract 1.13). Further kinds come with runs. */
export type Reason =
  | { readonly reason: "state"; readonly state: WorkloadState; readonly message: string }
  | { readonly reason: "approval"; readonly message: string }
  | { readonly reason: "time"; readonly nextAttemptAt: number; readonly message: string }
  | {
      readonly reason: "dependency";
      readonly dependency: Dependency & { readonly state?: WorkloadState };
      readonly message: string;
    }
  | {
      readonly reason: "budget";
      readonly attemptsUsed: number;
      readonly attemptBudget: number;
      readonly message: string;
    }
  | { readonly reason: "authorization"; readonly grantId: string; readonly message: string }
  | { readonly reason: "worker"; readonly workers: PlacementExplanation; readonly message: string };

/** That no worker of the registry may run the workload now, and why not one by one. */
export const noWorkerReason = (workers: PlacementExplanation): Reason => ({
  reason: "worker",
  workers,
  message: `none of ${workers.ineligible} workers may run it now`,
});

/** Everything that keeps the workload from running at an instant; nothing when a worker could claim it. */
export function explainWorkload(
  record: WorkloadRecord,
  seen: {
    readonly now: number;
    readonly dependencies: DependencyStates;
    readonly revocations?: Revocations;
  },
): readonly Reason[] {
  const reasons: Reason[] = [];
  const { state, nextAttemptAt } = record;
  if (state === "AWAITING_APPROVAL" || (state === "READY" && lacksApproval(record)))
    reasons.push({ reason: "approval", message: "it waits for an approval" });
  else if (state !== "READY") reasons.push({ reason: "state", state, message: `it is ${state}` });
  const waiting = state === "READY" || state === "AWAITING_APPROVAL";
  if (!waiting) return reasons;
  if (nextAttemptAt !== undefined && nextAttemptAt > instantOf(record, seen.now))
    reasons.push({
      reason: "time",
      nextAttemptAt,
      message: `it may be claimed from ${nextAttemptAt} on`,
    });
  for (const dependency of pendingDependencies(record, seen.dependencies))
    reasons.push({
      reason: "dependency",
      dependency,
      message: `${dependency.workloadId} is not ${dependency.requiredState}`,
    });
  if (isExhausted(record))
    reasons.push({
      reason: "budget",
      attemptsUsed: record.attemptCount,
      attemptBudget: attemptBudgetOf(record),
      message: "all attempts are used",
    });
  const lost = lostAuthorization(record, { now: instantOf(record, seen.now), revocations: seen.revocations });
  if (lost !== undefined)
    reasons.push({
      reason: "authorization",
      grantId: record.authorization.grantId,
      message: `the requester's grant is ${lost}: a claim will end the work`,
    });
  return reasons;
}
