import type { Validator } from "./validator.ts";

/**
 * Every version carries the ids of the operations before it, so a version that was lost, or written over by one that did
 * not know it, tears the chain. Calls would not tell: what nobody was promised may be lost without anybody's notice.
 */
export const completeHistory: Validator = {
  validator: "complete-history",
  guarantee: "nothing committed is lost or overwritten",
  expectsFacts: (facts) => facts.calls.some(({ kind }) => kind === "acknowledged"),
  validate: (facts, findings) => {
    if (facts.end === undefined) findings.violation("the history has no end: the run was broken off");
    for (const { workloadId, versions, gaps } of facts.workloads.values()) {
      findings.count(versions.length);
      for (const gap of gaps) findings.violation(gap, { workloadId });
    }
    findings.count(facts.registry.versions);
    for (const gap of facts.registry.gaps) findings.violation(gap);
  },
};
