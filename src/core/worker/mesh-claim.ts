import { refuse, type Refusal } from "../errors.ts";
import { leaseEndsAt, type Instant } from "../workload/fence.ts";
import type { Claim, WorkloadRecord } from "../workload/record.ts";
import { executionContextIdOf } from "./identity.ts";
import type { MeshClaim, WorkerRecord } from "./record.ts";

/** A claim as a worker of the registry holds it (contract 2.3). */
export const meshClaimOf = (claim: Claim, attemptId: string): MeshClaim => ({
  workloadId: claim.workloadId,
  attemptId,
  workerId: claim.workerId,
  leaseId: claim.leaseId,
  claimId: claim.claimId,
  fencingToken: claim.fencingToken,
  capabilities: claim.capabilities,
  executionContextId: executionContextIdOf(claim.claimId),
  issuedAt: claim.claimedAt,
  expiresAt: claim.expiresAt,
});

/** The parts of a claim that say whether it still counts; the rest of it is told by the committed record. */
export type PresentedClaim = Pick<MeshClaim, "workloadId" | "workerId" | "claimId" | "fencingToken" | "capabilities">;

/** What a claim is held against, as committed, and the tenant and application of whoever asks. */
export interface ClaimSeen {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly workload: WorkloadRecord;
  readonly worker: Pick<WorkerRecord, "workerId" | "tenantId" | "applicationId" | "grantedCapabilities">;
}

function findForeign(claim: PresentedClaim, seen: ClaimSeen): readonly string[] {
  const { workload, worker } = seen;
  const foreign: string[] = [];
  const current = workload.currentClaim;
  // The claim of another worker, under this one's name.
  const borrowed = current?.claimId === claim.claimId && current.workerId !== claim.workerId;
  if (claim.workerId !== worker.workerId || borrowed) foreign.push("workerId");
  if (claim.workloadId !== workload.workloadId) foreign.push("workloadId");
  for (const name of ["tenantId", "applicationId"] as const)
    if (worker[name] !== seen[name] || workload[name] !== seen[name]) foreign.push(name);
  return foreign;
}

/**
 * Tells a resource whether it may let an effect happen (contract 2.3): nothing when the claim is the workload's current
 * one and asks for nothing that the worker or the workload does not have; else why not, in the order of the contract.
 * Whether the worker lives, drains or was superseded does not matter: the fence alone decides.
 */
export function validateClaim(claim: PresentedClaim, seen: ClaimSeen, instant: Instant): Refusal | undefined {
  const foreign = findForeign(claim, seen);
  if (foreign.length > 0)
    return refuse("MESH_CLAIM_SCOPE_DENIED", `the claim is of another ${foreign.join(", ")}`, { fields: foreign });
  const current = seen.workload.currentClaim;
  const stale = (["claimId", "fencingToken"] as const).filter((name) => current?.[name] !== claim[name]);
  if (current === undefined || stale.length > 0)
    return refuse("MESH_STALE_FENCE", "the claim is not the workload's current one", {
      fields: stale,
      fencingToken: seen.workload.fencingToken,
    });
  if (leaseEndsAt(current, instant.servingSince) <= instant.now)
    return refuse("MESH_STALE_FENCE", `the lease ended at ${current.expiresAt}`, { expiresAt: current.expiresAt });
  const granted = new Set(seen.worker.grantedCapabilities);
  const needed = new Set(seen.workload.capabilities);
  const denied = claim.capabilities.filter((name) => !granted.has(name) || !needed.has(name));
  if (denied.length > 0)
    return refuse(
      "MESH_CAPABILITY_DENIED",
      `${denied.length} of the claim's capabilities are not the worker's or the workload's`,
      {
        capabilities: denied,
      },
    );
  return undefined;
}
