import { findBrokenInvariants, findBrokenSuccession } from "../../src/core/workload/invariants.ts";
import { attemptBudgetOf } from "../../src/core/workload/retry-policy.ts";
import { sameValue } from "../../src/core/workload/same-value.ts";
import { OPERATION_RING } from "../../src/store/store.ts";
import { addedEvents, type History, type Version } from "./history.ts";

/** How far a node's estimate of the store's time may run ahead of it, ms: drift between two sightings. */
const AHEAD_MAX_MS = 5;

/** Judges what was committed, knowing nothing of who asked for it: the invariants, and the times. */
export function judgeHistory(history: History): readonly string[] {
  const faults: string[] = [];
  for (const [workloadId, versions] of history.versions) {
    for (const [index, version] of versions.entries()) {
      const say = (fault: string): void => {
        faults.push(`${workloadId} at ${version.revision} (${version.action}): ${fault}`);
      };
      for (const broken of findBrokenInvariants(version.record)) say(broken);
      for (const broken of findBrokenSuccession(version.before, version.record)) say(broken);
      const guard = versions[index - 1]?.revision ?? 0;
      if (version.guard !== guard) say(`it was guarded by ${version.guard}, and stands on ${guard}`);
      const ring = versions.slice(0, index + 1).map(({ operationId }) => operationId);
      if (!sameValue(version.operations, ring.slice(-OPERATION_RING))) say(`its ring is ${version.operations.join()}`);
      for (const fault of [...judgeTimes(version), ...judgeBurial(version), ...judgeHolder(version)]) say(fault);
    }
  }
  return [...faults, ...judgeResultIds(history), ...judgeDependencies(history)];
}

/** A result id names one result of the application. */
function judgeResultIds(history: History): readonly string[] {
  const owners = new Map<string, string>();
  return [...history.versions].flatMap(([workloadId, versions]) => {
    const { tenantId, applicationId, result } = versions.at(-1)?.record ?? {};
    if (result === undefined) return [];
    const { resultId } = result;
    const name = JSON.stringify([tenantId, applicationId, resultId]);
    const owner = owners.get(name);
    owners.set(name, workloadId);
    return owner === undefined ? [] : [`${resultId} is the result of ${owner} and of ${workloadId}`];
  });
}

/** Work is claimed only while its dependencies are as it needs them, in the log's own order. */
function judgeDependencies(history: History): readonly string[] {
  return [...history.versions].flatMap(([workloadId, versions]) =>
    versions.flatMap((version) => {
      if (!addedEvents(version).some(({ to }) => to === "CLAIMED")) return [];
      return version.record.dependencies.flatMap((dependency) => {
        const others = history.versions.get(dependency.workloadId) ?? [];
        const state = others.findLast(({ revision }) => revision < version.revision)?.record.state;
        return state === dependency.requiredState
          ? []
          : [`${workloadId} was claimed at ${version.revision} while ${dependency.workloadId} was ${state}`];
      });
    }),
  );
}

/** Nothing happens before its time by the store's own clock, and nothing is stamped in its future. */
function judgeTimes(version: Version): readonly string[] {
  const { at, record, before } = version;
  const faults: string[] = [];
  const notBefore = (what: string, instant: number | undefined): void => {
    if (instant !== undefined && at + AHEAD_MAX_MS < instant) faults.push(`${what} ${instant - at} ms too early`);
  };
  notBefore("it was stamped", record.updatedAt);
  for (const { to, evidence } of addedEvents(version)) {
    if (to === "CLAIMED") notBefore("it was claimed", before?.nextAttemptAt);
    if (evidence["recoveryReason"] === "lease_expired") notBefore("it was recovered", before?.currentClaim?.expiresAt);
    if (evidence["deadlineAt"] !== undefined) notBefore("it was timed out", Number(evidence["deadlineAt"]));
  }
  return faults;
}

/** Work is buried only as its policy says. */
function judgeBurial(version: Version): readonly string[] {
  const { record } = version;
  return addedEvents(version).flatMap(({ to, evidence }) => {
    if (to !== "DEAD_LETTER") return [];
    const reason = evidence["decision"] ?? evidence["reason"];
    const { retryOn } = record.retryPolicy;
    switch (reason) {
      case "attempt_budget_exhausted":
        return record.attemptCount >= attemptBudgetOf(record) ? [] : [`buried after ${record.attemptCount} attempts`];
      case "timeout_not_retryable":
        return retryOn.includes("timeout") ? ["buried though a time-out is retried"] : [];
      case "worker_failure_not_retryable":
      case "effect_unknown_not_retryable":
        return retryOn.includes("worker_failure") ? ["buried though a lost worker is replaced"] : [];
      case "failure_kind_not_retryable":
      case "deadline_not_retryable":
        return [];
      case undefined:
        return ["buried without a reason"];
      default:
        return [`buried for ${reason}`];
    }
  });
}

/** What a worker does is done by the one who held the claim in the version before. */
function judgeHolder({ action, before, record }: Version): readonly string[] {
  if (!["start", "checkpoint", "complete", "fail", "confirm-cancel", "heartbeat"].includes(action)) return [];
  const claim = before?.currentClaim;
  if (claim === undefined) return ["a worker's call was committed without a claim"];
  const actor = record.history.at(-1)?.actor;
  const moved = record.history.length > (before?.history.length ?? 0);
  if (action === "heartbeat" || !moved || actor?.startsWith("authority.") === true) return [];
  return actor === claim.workerId ? [] : [`${actor} acted on the claim of ${claim.workerId}`];
}
