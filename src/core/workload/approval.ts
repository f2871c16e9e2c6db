import { refuse, type Refusal } from "../errors.ts";
import { sameSubject, type Subject } from "../subject.ts";
import { enforceDeadlines } from "./deadlines.ts";
import { changeOf, refused, type Decision } from "./decision.ts";
import type { Approval, ApprovalDecision, WorkloadRecord } from "./record.ts";
import type { WorkloadRules } from "./rules.ts";
import { findSecretText } from "./secrets.ts";
import { applyMove } from "./transition.ts";

export interface DecideCommand {
  readonly decider: Subject;
  readonly outcome: "approved" | "rejected";
  readonly reason?: string | undefined;
  readonly grantId: string;
  readonly inputHash: string;
}

export interface DecideAnswer {
  readonly decision: ApprovalDecision;
  readonly replayed: boolean;
}

/** Longest reason that is kept (contract 1.9). */
export const DECISION_REASON_LENGTH_MAX = 512;

/** Whether the policy lets a subject decide about a workload (contract 1.9). */
export function mayDecide(record: Pick<WorkloadRecord, "requestedBy">, approval: Approval, decider: Subject): boolean {
  const { approverKinds, approvers } = approval.policy;
  if (!approverKinds.some((kind) => kind === decider.kind)) return false;
  if (approvers.length > 0 && !approvers.some((approver) => sameSubject(approver, decider))) return false;
  return !sameSubject(record.requestedBy, decider);
}

function findMissingReason(command: DecideCommand): Refusal | undefined {
  if (command.outcome !== "rejected" || (command.reason ?? "").trim() !== "") return undefined;
  return refuse("WORKLOAD_INVALID", "a rejection needs a reason", {
    paths: ["reason"],
    issues: [{ path: "reason", message: "a rejection needs one" }],
  });
}

/** Answers who comes after a decision: a repeat, or word of the opposite one (contract 1.9). */
function decideRepeated(decision: ApprovalDecision, command: DecideCommand): Decision<DecideAnswer> {
  if (decision.outcome === command.outcome) return { ok: true, answer: { decision, replayed: true } };
  const { outcome, decidedBy, decidedAt } = decision;
  return refused(
    refuse("WORKLOAD_APPROVAL_DECIDED", `the workload was already ${outcome}`, {
      outcome,
      decidedBy,
      decidedAt,
    }),
  );
}

function applyDecision(record: WorkloadRecord, approval: Approval, decision: ApprovalDecision): WorkloadRecord {
  const given = [...(approval.given ?? []), decision];
  const at = decision.decidedAt;
  const required = approval.policy.requiredApprovals ?? 1;
  if (decision.outcome === "approved" && given.length < required)
    return {
      ...record,
      approval: { ...approval, given },
      updatedAt: Math.max(record.updatedAt, at),
    };
  return applyMove(
    {
      ...record,
      approval: { policy: approval.policy, decision, ...(required > 1 ? { given } : {}) },
    },
    {
      to: decision.outcome === "approved" ? "READY" : "REJECTED",
      actor: decision.decidedBy.id,
      at,
      evidence: {
        decidedBy: decision.decidedBy.id,
        deciderKind: decision.decidedBy.kind,
        grantId: decision.grantId,
        reason: decision.reason,
      },
    },
  );
}

const decisionOf = (command: DecideCommand, at: number): ApprovalDecision => ({
  outcome: command.outcome,
  decidedBy: { kind: command.decider.kind, id: command.decider.id },
  decidedAt: at,
  ...(command.reason === undefined
    ? {}
    : { reason: command.reason.slice(0, DECISION_REASON_LENGTH_MAX).toWellFormed() }),
  grantId: command.grantId,
  inputHash: command.inputHash,
});

/** Takes an approver's verdict, in the order of contract 1.9. */
export function decideApproval(
  record: WorkloadRecord,
  command: DecideCommand,
  context: { readonly now: number; readonly rules: WorkloadRules },
): Decision<DecideAnswer> {
  const noReason = findMissingReason(command);
  if (noReason !== undefined) return refused(noReason);
  const secret = findSecretText(command.reason, "reason", context.rules);
  if (secret !== undefined) return refused(secret);
  const { approval } = record;
  if (approval === undefined)
    return refused(refuse("WORKLOAD_APPROVAL_NOT_REQUIRED", "the workload has no approval policy"));
  if (!mayDecide(record, approval, command.decider))
    return refused(refuse("WORKLOAD_APPROVER_NOT_PERMITTED", "the policy does not let this subject decide"));
  if (command.inputHash !== record.inputHash)
    return refused(
      refuse("WORKLOAD_APPROVAL_STALE", "the decision names another input", {
        inputHash: record.inputHash,
      }),
    );
  if (approval.decision !== undefined) return decideRepeated(approval.decision, command);
  const own = approval.given?.find(({ decidedBy }) => sameSubject(decidedBy, command.decider));
  if (own !== undefined && command.outcome === "approved")
    return { ok: true, answer: { decision: own, replayed: true } };
  return enforceDeadlines(record, context.now, (at) => {
    if (record.state !== "AWAITING_APPROVAL")
      return refused(
        refuse("WORKLOAD_APPROVAL_NOT_ACTIONABLE", `the workload is ${record.state}`, {
          state: record.state,
        }),
      );
    const decision = decisionOf(command, at);
    return {
      ok: true,
      answer: { decision, replayed: false },
      change: changeOf("decide", applyDecision(record, approval, decision)),
    };
  });
}
