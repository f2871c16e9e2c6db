import type { WorkerRecord } from "../../src/core/worker/record.ts";
import { isRegisteredId } from "../model/identities.ts";
import type { Facts, Version, WorkloadFacts } from "./facts.ts";
import { versionBefore } from "./registry-facts.ts";
import { hasSlots } from "./slot-capacity.ts";
import type { Validator } from "./validator.ts";

/** Why a worker as it is committed may not be given a workload, leaving its slots aside. */
function findUnfit(worker: WorkerRecord | undefined, { record }: WorkloadFacts): string | undefined {
  if (worker === undefined) return "is not registered";
  const { lifecycle, health, grantedCapabilities, workloadKinds, labels, tenantId, applicationId } = worker;
  if (tenantId !== record.tenantId || applicationId !== record.applicationId) return "is of another application";
  if (lifecycle !== "READY") return `is ${lifecycle}`;
  if (health !== "HEALTHY") return `is ${health}`;
  const missing = record.capabilities.filter((name) => !grantedCapabilities.includes(name));
  if (missing.length > 0) return `is not granted ${missing.join(", ")}`;
  if (workloadKinds.length > 0 && !workloadKinds.includes(record.definitionId))
    return `does not run ${record.definitionId}`;
  const { requiredLabels = {}, antiAffinity = {} } = record.placement ?? {};
  const lacking = Object.entries(requiredLabels).find(([name, value]) => labels[name] !== value);
  if (lacking !== undefined) return `has no label ${lacking.join("=")}`;
  const shunned = Object.entries(antiAffinity).find(([name, value]) => labels[name] === value);
  return shunned === undefined ? undefined : `has the label ${shunned.join("=")}`;
}

/** Why a worker is outside the pool that a workload names, as both are committed before the claim. */
function findOutsidePool(
  facts: Facts,
  worker: WorkerRecord,
  how: { workload: WorkloadFacts; version: Version },
): string | undefined {
  const { workload, version } = how;
  const poolId = workload.record.placement?.poolId;
  if (poolId === undefined) return undefined;
  const current = versionBefore(facts.registry.pools.get(poolId)?.versions ?? [], version.revision);
  // A pool of the whole tenant may be in another shard, whose revisions say nothing of this one's.
  if (current !== undefined && current.shard !== version.shard) return undefined;
  const pool = current?.record;
  if (pool === undefined) return `is in no pool ${poolId}: there is none`;
  if (!pool.workerIds.includes(worker.workerId)) return `is not in the pool ${poolId}`;
  const missing = pool.capabilities.filter((name) => !worker.grantedCapabilities.includes(name));
  return missing.length > 0 ? `is not granted the pool's ${missing.join(", ")}` : undefined;
}

function findUngranted(facts: Facts, workload: WorkloadFacts, version: Version): string | undefined {
  const { claim, revision } = version;
  const owner = facts.registry.workers.get(claim?.workerId ?? "");
  const worker = versionBefore(owner?.versions ?? [], revision)?.record;
  const unfit = findUnfit(worker, workload);
  if (worker === undefined || unfit !== undefined) return unfit;
  const beyond = (claim?.capabilities ?? []).filter((name) => !worker.grantedCapabilities.includes(name));
  if (beyond.length > 0) return `is not granted the claim's ${beyond.join(", ")}`;
  const hold = owner?.slots.find(
    ({ held, operation }) => operation === version.operation && held?.claimId === claim?.claimId,
  );
  const taken = hold?.held?.incarnation ?? worker.incarnation.number;
  if (taken !== worker.incarnation.number) return `is incarnation ${worker.incarnation.number}, not ${taken}`;
  return findOutsidePool(facts, worker, { workload, version });
}

/** Work is given by the worker's record as it is committed just before the claim: the commit of the claim insists on it. */
export const grantedClaims: Validator = {
  validator: "granted-claims",
  guarantee: "no worker of the registry is given work that its record, as committed at that moment, does not allow",
  expectsFacts: hasSlots,
  validate: (facts, findings) => {
    for (const workload of facts.workloads.values())
      for (const version of workload.versions) {
        const { claim, command, revision, workloadId } = version;
        if (command !== "claim" || claim === undefined || !isRegisteredId(claim.workerId)) continue;
        findings.count();
        const wrong = findUngranted(facts, workload, version);
        if (wrong !== undefined)
          findings.violation(`revision ${revision} gave it to ${claim.workerId}, which ${wrong}`, {
            workloadId,
            evidence: { revision, claim },
          });
      }
  },
};
