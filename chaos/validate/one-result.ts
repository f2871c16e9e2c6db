import { fieldsOf } from "./fields.ts";
import { takeBreaches, type Validator } from "./validator.ts";

export const oneResult: Validator = {
  validator: "one-result",
  guarantee: "a workload has one result, and a result id one workload",
  expectsFacts: (facts) => facts.calls.some(({ call, kind }) => call === "complete" && kind === "acknowledged"),
  validate: (facts, findings) => {
    takeBreaches(facts, "result", findings);
    const owners = new Map<string, string>();
    for (const { workloadId, record } of facts.workloads.values()) {
      if (record.result === undefined) continue;
      findings.count();
      const key = JSON.stringify([record.tenantId, record.applicationId, record.result.resultId]);
      const owner = owners.get(key);
      if (owner === undefined) owners.set(key, workloadId);
      else findings.violation(`its result id ${record.result.resultId} is also that of ${owner}`, { workloadId });
    }
    const told = new Map<string, string>();
    for (const { call, kind, answer, workloadId = "", id } of facts.calls) {
      if (call !== "complete" || kind !== "acknowledged") continue;
      findings.count();
      const { resultId, outputHash } = fieldsOf(answer);
      const result = JSON.stringify([resultId, outputHash]);
      const known = told.get(workloadId);
      if (known === undefined) told.set(workloadId, result);
      else if (known !== result)
        findings.violation(`complete ${id} was answered with another result than an earlier one`, { workloadId });
    }
  },
};
