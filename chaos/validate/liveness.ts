import { isHeld, isSettled } from "../model/states.ts";
import type { Facts, Version, WorkloadFacts } from "./facts.ts";
import type { Validator } from "./validator.ts";

/** Since when a workload has been waiting for nothing that its policy makes it wait for; undefined while it rightly waits. */
function waitsSince(facts: Facts, { record }: WorkloadFacts, last: Version): number | undefined {
  if (record.state === "AWAITING_APPROVAL") return undefined;
  if (isHeld(record.state)) return record.currentClaim?.claimedAt ?? last.storedAt;
  const { dependencies, capabilities } = record;
  const blocked = dependencies.some(
    ({ workloadId, requiredState }) => facts.workloads.get(workloadId)?.record.state !== requiredState,
  );
  const { workerCapabilities } = facts.parameters;
  const served =
    workerCapabilities === undefined ||
    workerCapabilities.some((set) => capabilities.every((capability) => set.includes(capability)));
  return blocked || !served ? undefined : Math.max(last.storedAt, record.nextAttemptAt ?? 0);
}

export const liveness: Validator = {
  validator: "liveness",
  guarantee: "after the last heal everything reaches a state that its policy lets it rest in, within a bound",
  expectsFacts: (facts) => facts.end !== undefined && facts.workloads.size > 0,
  validate: (facts, findings) => {
    const { end, parameters } = facts;
    if (end === undefined) return;
    for (const workload of facts.workloads.values()) {
      const last = workload.versions.at(-1);
      if (last === undefined) continue;
      const since = isSettled(last.state) ? undefined : waitsSince(facts, workload, last);
      if (since === undefined) {
        findings.count();
        continue;
      }
      const waitedMs = end.endedAt - Math.max(since, end.healedAt);
      if (waitedMs <= parameters.settleMaxMs) continue;
      findings.count();
      findings.violation(`it has been ${last.state} for ${Math.round(waitedMs)} ms after everything was healed`, {
        workloadId: workload.workloadId,
        evidence: { revision: last.revision, state: last.state },
      });
    }
  },
};
