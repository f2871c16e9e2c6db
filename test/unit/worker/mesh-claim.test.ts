/**
 * Goal: a resource is told whether a claim still counts, for the reason and in the order of contract 2.3.
 * Method: a sound claim is bent in one place each, and then in several.
 */
import { describe, expect, it } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import {
  meshClaimOf,
  validateClaim,
  type ClaimSeen,
  type PresentedClaim,
} from "../../../src/core/worker/mesh-claim.ts";
import type { MeshClaim } from "../../../src/core/worker/record.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { decideHeartbeat } from "../../../src/core/workload/lease.ts";
import { accepted as acceptedWork, admitted, claimed, complete, fenceOf, T0 } from "../core/fixtures.ts";
import { ready } from "./fixtures.ts";

const worker = ready();
const workload = claimed(admitted({ capabilities: ["cpu"] }), T0, { workerId: worker.workerId, start: true });

function meshClaim(record: WorkloadRecord): MeshClaim {
  const attempt = record.attempts.at(-1);
  assert(record.currentClaim !== undefined && attempt !== undefined, "there is no claim");
  return meshClaimOf(record.currentClaim, attempt.attemptId);
}

const own = meshClaim(workload);

const validate = (
  claim: Partial<PresentedClaim> = {},
  seen: Partial<ClaimSeen> = {},
  instant: { readonly now: number; readonly servingSince?: number } = { now: T0 + 5 },
) =>
  validateClaim(
    { ...own, ...claim },
    { tenantId: "acme", applicationId: "invoices", workload, worker, ...seen },
    instant,
  );

describe("a claim", () => {
  it("has the form of contract 2.3", () => {
    expect(own).toEqual({
      workloadId: workload.workloadId,
      attemptId: `attempt_${workload.workloadId}_1`,
      workerId: worker.workerId,
      leaseId: "lease_1",
      claimId: workload.currentClaim?.claimId,
      fencingToken: 1,
      capabilities: ["cpu"],
      executionContextId: `context_${workload.currentClaim?.claimId}`,
      issuedAt: T0,
      expiresAt: T0 + 10_000,
    });
  });

  it("counts while it is the current one, whatever becomes of the worker", () => {
    expect(validate()).toBeUndefined();
    expect(validate({ capabilities: [] })).toBeUndefined();
    const gone = { ...worker, lifecycle: "OFFLINE", health: "UNHEALTHY" };
    expect(validate({}, { worker: gone })).toBeUndefined();
  });

  it("counts until its lease ends as it was last renewed, not as it was presented", () => {
    expect(validate({}, {}, { now: T0 + 9999 })).toBeUndefined();
    expect(validate({}, {}, { now: T0 + 10_000 })).toMatchObject({
      code: "MESH_STALE_FENCE",
      details: { expiresAt: T0 + 10_000 },
    });
    const beat = { fence: fenceOf(workload), extendMs: 50_000 };
    const renewed = acceptedWork(decideHeartbeat(workload, beat, { now: T0 + 5 }));
    expect(validate({}, { workload: renewed }, { now: T0 + 10_000 })).toBeUndefined();
    expect(validate({}, {}, { now: T0 + 10_000, servingSince: T0 + 9000 })).toBeUndefined();
  });

  const foreign: readonly (readonly [string, Partial<PresentedClaim>, Partial<ClaimSeen>])[] = [
    ["workerId", { workerId: "worker_x" }, {}],
    ["workloadId", { workloadId: "workload_x" }, {}],
    ["tenantId", {}, { tenantId: "other" }],
    ["applicationId", {}, { applicationId: "other" }],
    ["tenantId", {}, { worker: { ...worker, tenantId: "other" } }],
    ["applicationId", {}, { workload: { ...workload, applicationId: "other" } }],
  ];
  for (const [field, claim, seen] of foreign)
    it(`of another ${field} is out of scope (${JSON.stringify(Object.keys({ ...claim, ...seen }))})`, () => {
      expect(validate(claim, seen)).toMatchObject({ code: "MESH_CLAIM_SCOPE_DENIED", details: { fields: [field] } });
    });

  it("that is not the current one is stale, by its id as by its token, and so is one of a workload that has none", () => {
    expect(validate({ claimId: "claim_x" })).toMatchObject({
      code: "MESH_STALE_FENCE",
      details: { fields: ["claimId"] },
    });
    expect(validate({ fencingToken: 2 })).toMatchObject({
      code: "MESH_STALE_FENCE",
      details: { fields: ["fencingToken"], fencingToken: 1 },
    });
    const done = acceptedWork(complete(workload, fenceOf(workload), { now: T0 + 2 }));
    expect(validate({}, { workload: done })?.code).toBe("MESH_STALE_FENCE");
  });

  it("may have no capability that the worker was not granted, or that the workload does not need", () => {
    expect(validate({ capabilities: ["cpu", "gpu"] })).toMatchObject({
      code: "MESH_CAPABILITY_DENIED",
      details: { capabilities: ["gpu"] },
    });
    expect(validate({}, { worker: { ...worker, grantedCapabilities: ["gpu"] } })?.code).toBe("MESH_CAPABILITY_DENIED");
  });

  it("is checked for its scope, then for its fence, then for its capabilities", () => {
    const wrong = { workerId: "worker_x", fencingToken: 9, capabilities: ["tpu"] };
    expect(validate(wrong)?.code).toBe("MESH_CLAIM_SCOPE_DENIED");
    expect(validate({ ...wrong, workerId: own.workerId })?.code).toBe("MESH_STALE_FENCE");
    expect(validate({ capabilities: ["tpu"] }, {}, { now: T0 + 10_000 })?.code).toBe("MESH_STALE_FENCE");
  });
});
