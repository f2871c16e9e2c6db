import { versionsOf } from "./facts.ts";
import { fieldsOf } from "./fields.ts";
import { takeBreaches, type Validator } from "./validator.ts";

/** With a quorum each approver is told his own approval: only what ends the waiting is one. */
export const oneDecision: Validator = {
  validator: "one-decision",
  guarantee: "a workload is decided once, by one who may, and everybody is told the same decision",
  expectsFacts: (facts) => facts.calls.some(({ call, kind }) => call === "decide" && kind === "acknowledged"),
  validate: (facts, findings) => {
    takeBreaches(facts, "decision", findings);
    for (const { command } of versionsOf(facts)) if (command === "decide") findings.count();
    const deciders = new Map<string, number>();
    const told = new Map<string, string>();
    for (const { call, kind, answer, workloadId = "", id } of facts.calls) {
      if (call !== "decide" || kind !== "acknowledged") continue;
      const quorum = facts.workloads.get(workloadId)?.record.approval?.policy.requiredApprovals ?? 1;
      if (quorum > 1) continue;
      findings.count();
      if (fieldsOf(answer)["replayed"] === false) {
        const other = deciders.get(workloadId);
        if (other !== undefined)
          findings.violation(`decide ${other} and ${id} were each told that they decided`, { workloadId });
        deciders.set(workloadId, id);
      }
      const { outcome, decidedBy, decidedAt } = fieldsOf(fieldsOf(answer)["decision"]);
      const { kind: deciderKind, id: decider } = fieldsOf(decidedBy);
      const decision = JSON.stringify([outcome, deciderKind, decider, decidedAt]);
      const known = told.get(workloadId);
      if (known === undefined) told.set(workloadId, decision);
      else if (known !== decision)
        findings.violation(`decide ${id} was answered ${decision}, an earlier one ${known}`, { workloadId });
    }
  },
};
