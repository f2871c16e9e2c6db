import type { Validator } from "./validator.ts";

export const equalViews: Validator = {
  validator: "equal-views",
  guarantee: "in the end every node shows what the store holds",
  expectsFacts: (facts) => facts.workloads.size > 0,
  validate: (facts, findings) => {
    const { viewAgeMaxMs } = facts.parameters;
    for (const { node, at, workloads } of facts.views) {
      for (const { workloadId, versions } of facts.workloads.values()) {
        findings.count();
        // What was replaced only just before may still be shown, and what came afterwards can't be.
        const current = versions.filter(
          ({ storedAt }, index) =>
            storedAt <= at + viewAgeMaxMs && (versions[index + 1]?.storedAt ?? at) >= at - viewAgeMaxMs,
        );
        const shown = workloads[workloadId];
        const right =
          shown === undefined
            ? (versions[0]?.storedAt ?? 0) >= at - viewAgeMaxMs
            : current.some(({ state, events }) => state === shown.state && events === shown.events);
        if (right) continue;
        const last = versions.at(-1);
        const what = shown === undefined ? "not at all" : `${shown.state} with ${shown.events} events`;
        findings.violation(`${node} shows it ${what}; it is ${last?.state} with ${last?.events} events`, {
          workloadId,
        });
      }
      for (const workloadId of Object.keys(workloads))
        if (!facts.workloads.has(workloadId))
          findings.violation(`${node} shows it; the store does not hold it`, { workloadId });
    }
  },
};
