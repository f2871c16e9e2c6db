import { takeBreaches, type Validator } from "./validator.ts";

export const approvalBeforeWork: Validator = {
  validator: "approval-before-work",
  guarantee: "gated work does not run before its approval",
  expectsFacts: (facts) => [...facts.workloads.values()].some(({ gated, record }) => gated && record.attemptCount > 0),
  validate: (facts, findings) => {
    for (const { gated, versions } of facts.workloads.values())
      if (gated) findings.count(versions.filter(({ command }) => command === "claim").length);
    takeBreaches(facts, "approval", findings);
    for (const { event, worker, workloadId, fencingToken } of facts.work) {
      const workload = facts.workloads.get(workloadId);
      if (event !== "began" || workload === undefined || !workload.gated) continue;
      findings.count();
      const claimed = workload.versions.find((version) => version.fencingToken >= fencingToken);
      const approved = claimed === undefined ? false : workload.record.approval?.decision?.outcome === "approved";
      if (!approved)
        findings.violation(`${worker} ran it under token ${fencingToken}; it was never approved`, { workloadId });
    }
  },
};
