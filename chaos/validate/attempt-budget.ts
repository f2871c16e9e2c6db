import { budgetOf } from "../model/retry.ts";
import { takeBreaches, type Validator } from "./validator.ts";

export const attemptBudget: Validator = {
  validator: "attempt-budget",
  guarantee: "attempts stay within the budget, and re-arms within theirs",
  expectsFacts: (facts) => [...facts.workloads.values()].some(({ record }) => record.attemptCount > 0),
  validate: (facts, findings) => {
    takeBreaches(facts, "budget", findings);
    const begun = new Map<string, Set<number>>();
    for (const { event, workloadId, fencingToken } of facts.work)
      if (event === "began") begun.set(workloadId, (begun.get(workloadId) ?? new Set()).add(fencingToken));
    for (const { workloadId, record } of facts.workloads.values()) {
      findings.count(record.attemptCount);
      const budget = budgetOf(record);
      const run = begun.get(workloadId)?.size ?? 0;
      if (run > budget) findings.violation(`${run} attempts were run, ${budget} are allowed`, { workloadId });
    }
  },
};
