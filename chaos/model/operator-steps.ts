import type { Approval, ApprovalDecision } from "../../src/core/workload/record.ts";
import { rearmsOf } from "./retry.ts";
import { beginsWith, same } from "./same.ts";
import { mayFail, mayRearm, mayTimeOut } from "./states.ts";
import type { Examination } from "./step.ts";
import { examineTimeout } from "./pass-steps.ts";
import { requireNoDeadline } from "./worker-steps.ts";

/** What approvers and operators do (contract 1.9, 1.10). */

interface Found {
  readonly at: number;
}

function requireMayDecide(examination: Examination, approval: Approval, decision: ApprovalDecision): void {
  const { policy } = approval;
  const { decidedBy, inputHash } = decision;
  const who = `${decidedBy.kind} ${decidedBy.id}`;
  const ofKind = policy.approverKinds.some((kind) => kind === decidedBy.kind);
  const listed = policy.approvers.length === 0 || policy.approvers.some((approver) => same(approver, decidedBy));
  examination.require(ofKind && listed, "decision", `${who} may not decide`);
  examination.require(!same(examination.before.requestedBy, decidedBy), "decision", `${who} decided his own request`);
  const { inputHash: right } = examination.before;
  examination.require(inputHash === right, "decision", `the decision is about ${inputHash}, not ${right}`);
}

/** One verdict: the decision, or an approval towards a quorum. */
export function examineDecide(examination: Examination): Found {
  const { before, after } = examination;
  const policy = before.approval;
  const made = after.approval?.decision ?? after.approval?.given?.at(-1);
  const at = made?.decidedAt ?? examination.at;
  if (policy === undefined || made === undefined) {
    examination.breach("decision", "decided without a policy or without a decision on record");
    return { at };
  }
  requireNoDeadline(examination, at);
  examination.require(before.state === "AWAITING_APPROVAL", "succession", `decided in ${before.state}`);
  examination.require(policy.decision === undefined, "decision", "decided twice");
  requireMayDecide(examination, policy, made);
  const given = after.approval?.given ?? [];
  examination.require(
    beginsWith(given, policy.given ?? []) || given.length === 0,
    "decision",
    "a given approval is gone",
  );
  const required = policy.policy.requiredApprovals ?? 1;
  const decided = after.approval?.decision !== undefined;
  const distinct = new Set(given.map(({ decidedBy }) => `${decidedBy.kind}:${decidedBy.id}`)).size;
  if (required > 1 && made.outcome === "approved")
    examination.require(decided === distinct >= required, "decision", `${distinct} of ${required} approvals decided`);
  examination.expect({ approval: { ...policy, ...after.approval, policy: policy.policy } });
  if (decided) {
    examination.require(made.decidedAt === examination.at, "succession", "the decision's time is not the event's");
    examination.expectEvents([
      {
        to: made.outcome === "approved" ? "READY" : "REJECTED",
        actor: made.decidedBy.id,
        evidence: { decidedBy: made.decidedBy.id, deciderKind: made.decidedBy.kind, grantId: made.grantId },
      },
    ]);
  } else examination.expectEvents([]);
  return { at };
}

export function examineCancel(examination: Examination): Found {
  const { before, at } = examination;
  const { state } = before;
  examination.expectEvents([{ to: mayFail(state) ? "CANCELLATION_REQUESTED" : "CANCELLED" }]);
  return { at };
}

export function examineOperatorTimeout(examination: Examination): Found {
  const { state } = examination.before;
  examination.require(mayTimeOut(state), "succession", `timed out in ${state}`);
  return examineTimeout(examination);
}

export function examineRetry(examination: Examination): Found {
  const { before, at } = examination;
  examination.require(mayRearm(before.state), "succession", `re-armed in ${before.state}`);
  const rearm = rearmsOf(before) + 1;
  const { maxAttempts } = before.retryPolicy;
  examination.require(rearm <= maxAttempts, "budget", `re-armed ${rearm} times; ${maxAttempts} are allowed`);
  const pending = before.approval !== undefined && before.approval.decision?.outcome !== "approved";
  examination.expect({ nextAttemptAt: at });
  examination.expectEvents([
    { to: pending ? "AWAITING_APPROVAL" : "READY", evidence: { retry: "operator", operatorRetry: rearm } },
  ]);
  return { at };
}
