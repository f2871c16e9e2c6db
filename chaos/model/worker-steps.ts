import type { Attempt, Claim } from "../../src/core/workload/record.ts";
import { passedDeadline } from "./deadlines.ts";
import { attemptIdOf, checkpointIdOf, claimIdOf, leaseIdOf } from "./identities.ts";
import { afterEnd, backoffOf, budgetOf } from "./retry.ts";
import { isRunning, mayFail } from "./states.ts";
import type { Examination, ExpectedEvent } from "./step.ts";

/** Worker calls (contract 1.8). */

/** Worker calls and decisions expire a workload whose deadline has passed, instead of doing what they ask for. */
export function requireNoDeadline(examination: Examination, at: number): void {
  const passed = passedDeadline(examination.before, at);
  if (passed === undefined) return;
  const { deadline, deadlineAt } = passed;
  examination.breach("succession", `the ${deadline} deadline had passed at ${deadlineAt}: the call had to expire it`);
}

/** The last attempt with other fields; nothing when there is none. */
export function lastAttemptWith(examination: Examination, fields: Partial<Attempt>): readonly Attempt[] {
  const { attempts } = examination.before;
  const last = attempts.at(-1);
  return last === undefined ? attempts : [...attempts.slice(0, -1), { ...last, ...fields }];
}

/** The claim that a worker's write stands on, and how long its lease had been over. */
function requireClaim(
  examination: Examination,
  at: number,
): { readonly claim: Claim | undefined; readonly lateByMs?: number } {
  const claim = examination.before.currentClaim;
  if (claim === undefined) examination.breach("fence", "a worker wrote without a current claim");
  return claim !== undefined && claim.expiresAt <= at ? { claim, lateByMs: at - claim.expiresAt } : { claim };
}

interface Found {
  readonly at: number;
  readonly dueAt?: number;
  readonly lateByMs?: number;
}

const foundAt = (at: number, { lateByMs }: { readonly lateByMs?: number }): Found =>
  lateByMs === undefined ? { at } : { at, lateByMs };

function requireClaimable(examination: Examination, at: number): void {
  const { before, world, after } = examination;
  const { approval, nextAttemptAt, dependencies, capabilities } = before;
  requireNoDeadline(examination, at);
  const budget = budgetOf(before);
  examination.require(before.attemptCount < budget, "budget", `attempt ${before.attemptCount + 1} of ${budget} began`);
  examination.require(
    approval === undefined || approval.decision?.outcome === "approved",
    "approval",
    "gated work was claimed without an approval",
  );
  if (nextAttemptAt !== undefined && nextAttemptAt > at)
    examination.breach("timing", `work that is eligible from ${nextAttemptAt} on was claimed at ${at}`);
  for (const { workloadId, requiredState } of dependencies) {
    const found = world.stateOf(workloadId);
    if (found !== requiredState)
      examination.breach("succession", `claimed while ${workloadId} is ${found ?? "absent"}, not ${requiredState}`);
  }
  const given = after.currentClaim?.capabilities ?? [];
  const missing = capabilities.filter((capability) => !given.includes(capability));
  examination.require(missing.length === 0, "succession", `claimed without ${missing.join(", ")}`);
}

/** Also a claim that starts at once. */
export function examineClaim(examination: Examination): Found {
  const { before, after, at, events } = examination;
  requireClaimable(examination, at);
  const { workloadId } = before;
  const fencingToken = before.fencingToken + 1;
  const attemptCount = before.attemptCount + 1;
  const claim = after.currentClaim;
  const workerId = claim?.workerId ?? events[0]?.actor ?? "";
  const claimId = claimIdOf(workloadId, fencingToken, workerId);
  const started = events.length > 1;
  if (claim === undefined) examination.breach("tokens", "a claim left no claim");
  else
    examination.expect({
      currentClaim: {
        ...claim,
        workloadId,
        claimId,
        fencingToken,
        leaseId: leaseIdOf(fencingToken),
        claimedAt: at,
        lastHeartbeat: at,
      },
    });
  examination.require((claim?.expiresAt ?? 0) > at, "succession", "a lease was over when it was given");
  const attempt: Attempt = {
    attemptId: attemptIdOf(workloadId, attemptCount),
    workloadId,
    workerId,
    claimId,
    fencingToken,
    inputHash: before.inputHash,
    resourceUsage: {},
    status: started ? "RUNNING" : "CLAIMED",
    ...(started ? { startedAt: at } : {}),
  };
  examination.expect({ fencingToken, attemptCount, attempts: [...before.attempts, attempt] });
  const expected: ExpectedEvent[] = [{ to: "CLAIMED", actor: workerId, evidence: { fencingToken } }];
  examination.expectEvents(started ? [...expected, { to: "RUNNING" }] : expected);
  return before.nextAttemptAt === undefined ? { at } : { at, dueAt: before.nextAttemptAt };
}

export function examineStart(examination: Examination): Found {
  const { at } = examination;
  requireNoDeadline(examination, at);
  const held = requireClaim(examination, at);
  examination.expect({ attempts: lastAttemptWith(examination, { status: "RUNNING", startedAt: at }) });
  examination.expectEvents([{ to: "RUNNING" }]);
  return foundAt(at, held);
}

export function examineHeartbeat(examination: Examination): Found {
  const { before, after } = examination;
  const renewed = after.currentClaim;
  const at = renewed?.lastHeartbeat ?? after.updatedAt;
  requireNoDeadline(examination, at);
  const held = requireClaim(examination, at);
  examination.require(
    at >= (before.history.at(-1)?.at ?? 0),
    "succession",
    "a heartbeat is earlier than the last event",
  );
  if (held.claim !== undefined && renewed !== undefined) {
    examination.expect({ currentClaim: { ...held.claim, lastHeartbeat: at, expiresAt: renewed.expiresAt } });
    examination.require(renewed.expiresAt > at, "succession", "a lease was over when it was renewed");
  }
  return foundAt(at, held);
}

export function examineCheckpoint(examination: Examination): Found {
  const { before, after } = examination;
  const checkpoint = after.checkpoints.at(-1);
  const at = checkpoint?.createdAt ?? examination.at;
  requireNoDeadline(examination, at);
  const held = requireClaim(examination, at);
  examination.require(isRunning(before.state), "succession", `a checkpoint in ${before.state}`);
  const sequence = before.checkpoints.length + 1;
  const attemptId = before.attempts.at(-1)?.attemptId ?? "";
  if (checkpoint !== undefined) {
    const own = checkpoint.attemptId === attemptId && checkpoint.producedBy === held.claim?.workerId;
    const { attemptId: ofAttempt, producedBy } = checkpoint;
    examination.require(own, "fence", `a checkpoint of ${ofAttempt} by ${producedBy}, who does not hold the work`);
    const identity = {
      checkpointId: checkpointIdOf(before.workloadId, sequence),
      sequence,
      workloadId: before.workloadId,
    };
    examination.expect({ checkpoints: [...before.checkpoints, { ...checkpoint, ...identity }] });
  }
  examination.expect({ attempts: lastAttemptWith(examination, { status: "CHECKPOINTED" }) });
  examination.expectEvents(before.state === "RUNNING" ? [{ to: "CHECKPOINTED" }] : []);
  return foundAt(at, held);
}

export function examineComplete(examination: Examination): Found {
  const { before, after, at } = examination;
  requireNoDeadline(examination, at);
  const { claim, ...late } = requireClaim(examination, at);
  const { result } = after;
  const attemptId = before.attempts.at(-1)?.attemptId ?? "";
  if (result === undefined) examination.breach("result", "a completion left no result");
  else {
    const { claimId, fencingToken } = result.provenance;
    const own =
      result.attemptId === attemptId &&
      result.producedBy === claim?.workerId &&
      claimId === claim.claimId &&
      fencingToken === claim.fencingToken;
    examination.require(own, "fence", `a result of ${result.attemptId} under token ${fencingToken}, which is not held`);
    examination.require(before.result === undefined, "result", "a result was stored twice");
    examination.expect({
      result: { ...result, workloadId: before.workloadId, status: "succeeded", createdAt: at },
    });
  }
  examination.expect({
    currentClaim: undefined,
    attempts: lastAttemptWith(examination, { status: "SUCCEEDED", endedAt: at, resultHash: result?.outputHash ?? "" }),
  });
  examination.expectEvents([{ to: "SUCCEEDED" }]);
  return foundAt(at, late);
}

export function examineFail(examination: Examination): Found {
  const { before, after, at, events } = examination;
  requireNoDeadline(examination, at);
  const held = requireClaim(examination, at);
  examination.require(mayFail(before.state), "succession", `a failure in ${before.state}`);
  const evidence = events[0]?.evidence ?? {};
  const kind = evidence["failureKind"] ?? "";
  const effect = evidence["effect"];
  const unknown = effect === "unknown";
  const attemptId = before.attempts.at(-1)?.attemptId;
  const error = after.attempts[before.attempts.length - 1]?.error ?? "";
  if (before.state === "CLAIMED") examination.require(effect !== undefined, "succession", "the effect is not recorded");
  const next = afterEnd(before, {
    retriedAs: unknown ? "worker_failure" : kind,
    otherwise: unknown ? "effect_unknown_not_retryable" : "failure_kind_not_retryable",
  });
  examination.expect({
    currentClaim: undefined,
    lastFailure: `${kind}: ${error}`,
    attempts: lastAttemptWith(examination, { status: "FAILED", endedAt: at, error }),
  });
  if (next.to === "READY") {
    const retryCount = before.retryCount + 1;
    const [shortest, longest] = backoffOf(before, retryCount);
    const delayMs = (after.nextAttemptAt ?? 0) - at;
    const right = delayMs >= shortest && delayMs <= longest;
    examination.require(right, "succession", `retry ${retryCount} waits ${delayMs} ms, not ${shortest} to ${longest}`);
    examination.expect({ retryCount, nextAttemptAt: after.nextAttemptAt });
  }
  examination.expectEvents([
    { to: "FAILED", evidence: { failureKind: kind, attemptId } },
    { to: next.to, actor: "authority.retry", evidence: { decision: next.decision } },
  ]);
  return foundAt(at, held);
}

export function examineConfirmCancel(examination: Examination): Found {
  const { at } = examination;
  const held = requireClaim(examination, at);
  examination.expect({
    currentClaim: undefined,
    attempts: lastAttemptWith(examination, { status: "CANCELLED", endedAt: at }),
  });
  examination.expectEvents([{ to: "CANCELLED" }]);
  return foundAt(at, held);
}
