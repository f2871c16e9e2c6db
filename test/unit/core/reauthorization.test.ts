/**
 * Goal: a grant that has ended since admission ends the work when it is claimed (contract 4.2), and nothing else does.
 * Method: a claim that would succeed, with each way in which a grant ends; then claims that would not succeed.
 */
import { describe, expect, it } from "vitest";
import { RevocationSet, type RevocationTarget } from "../../../src/core/grant/revocation.ts";
import { findLost, snapshotOf } from "../../../src/core/grant/snapshot.ts";
import type { AdmitRequest } from "../../../src/core/workload/admission.ts";
import { decideClaim } from "../../../src/core/workload/claim.ts";
import { explainWorkload } from "../../../src/core/workload/explain.ts";
import { decideRetry } from "../../../src/core/workload/operate.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { childOf, grantOf } from "../grant/grant-fixtures.ts";
import { accepted, admitted, frozen, noDependencies, refusalOf, requester, requestOf, rules, T0 } from "./fixtures.ts";

const expiresAt = requestOf().authorization.expiresAt;

const claim = (record: WorkloadRecord, how: { readonly now?: number; readonly revoked?: RevocationTarget } = {}) => {
  const revocations = new RevocationSet();
  if (how.revoked !== undefined)
    revocations.add({
      contractVersion: 1,
      tenantId: record.tenantId,
      applicationId: record.applicationId,
      target: how.revoked,
      revokedBy: { kind: "human", id: "ops" },
      grantId: "g",
      revokedAt: T0,
    });
  return decideClaim(
    frozen(record),
    { workerId: "w1", capabilities: [], leaseMs: 1_000 },
    { now: how.now ?? T0 + 1, dependencies: noDependencies, revocations },
  );
};

describe("a claim of work whose requester's grant", () => {
  it("has expired is refused, and dead-letters the work in the same commit", () => {
    const decision = claim(admitted(), { now: expiresAt });
    expect(refusalOf(decision)).toMatchObject({
      code: "WORKLOAD_UNAUTHORIZED",
      details: { reason: "expired", grantId: "grant_1" },
    });
    const next = decision.change?.record;
    expect(next?.state).toBe("DEAD_LETTER");
    expect(next?.fencingToken).toBe(0);
    expect(next?.history.at(-1)).toMatchObject({
      type: "workload.dead_lettered",
      actor: "authority.claim",
      at: expiresAt,
      evidence: { decision: "authorization_lost", reason: "expired", grantId: "grant_1" },
    });
  });

  it.each<[RevocationTarget, string]>([
    [{ kind: "grant", grantId: "grant_1" }, "revoked"],
    [{ kind: "subject", subject: requester }, "revoked"],
    [{ kind: "application" }, "revoked"],
    [{ kind: "tenant" }, "revoked"],
    [{ kind: "grant", grantId: "grant_1", belowRevision: 2 }, "superseded"],
  ])("was ended by %j is refused as %s", (revoked, reason) => {
    const decision = claim(admitted(), { revoked });
    expect(refusalOf(decision)).toMatchObject({ code: "WORKLOAD_UNAUTHORIZED", details: { reason } });
    expect(decision.change?.record.state).toBe("DEAD_LETTER");
  });

  it.each<RevocationTarget>([
    { kind: "grant", grantId: "grant_2" },
    { kind: "grant", grantId: "grant_1", belowRevision: 1 },
    { kind: "subject", subject: { kind: "human", id: requester.id } },
  ])("is not the one ended by %j succeeds", (revoked) => {
    expect(accepted(claim(admitted(), { revoked })).state).toBe("CLAIMED");
  });

  it("stands until the instant of its expiry", () => {
    expect(accepted(claim(admitted(), { now: expiresAt - 1 })).state).toBe("CLAIMED");
  });

  it("is not to be looked at again succeeds, whatever became of it", () => {
    const record = admitted({ reauthorize: "never" });
    expect(record.reauthorize).toBe("never");
    expect(accepted(claim(record, { now: expiresAt, revoked: { kind: "tenant" } })).state).toBe("CLAIMED");
    expect(admitted({ reauthorize: "claim" })).not.toHaveProperty("reauthorize");
  });

  it("has expired is told so only where the claim would have succeeded", () => {
    const cases: [Partial<AdmitRequest>, string][] = [
      [{ capabilities: ["gpu"] }, "WORKLOAD_CAPABILITY_DENIED"],
      [{ notBefore: expiresAt + 1 }, "WORKLOAD_NOT_YET_ELIGIBLE"],
      [{ dependencies: [{ workloadId: "a" }] }, "WORKLOAD_DEPENDENCY_PENDING"],
      [{ approval: {} }, "WORKLOAD_APPROVAL_PENDING"],
    ];
    for (const [changes, code] of cases) {
      const decision = claim(admitted(changes), { now: expiresAt });
      expect([refusalOf(decision).code, decision.change]).toEqual([code, undefined]);
    }
  });

  it("has ended is told by the explanation, before anybody claims it", () => {
    const seen = { dependencies: noDependencies, revocations: new RevocationSet() };
    expect(explainWorkload(admitted(), { ...seen, now: expiresAt - 1 })).toEqual([]);
    expect(explainWorkload(admitted(), { ...seen, now: expiresAt })).toMatchObject([
      { reason: "authorization", grantId: "grant_1" },
    ]);
    expect(explainWorkload(admitted({ reauthorize: "never" }), { ...seen, now: expiresAt })).toEqual([]);
  });

  it("has expired stays so when an operator re-arms the work", () => {
    const dead = claim(admitted(), { now: expiresAt }).change?.record;
    if (dead === undefined) throw new TypeError("nothing was committed");
    const armed = accepted(decideRetry(dead, { actor: "ops" }, { now: expiresAt + 1, rules }));
    expect(refusalOf(claim(armed, { now: expiresAt + 2 })).code).toBe("WORKLOAD_UNAUTHORIZED");
  });
});

describe("the snapshot of a delegated grant", () => {
  const parent = grantOf();
  const snapshot = snapshotOf(childOf(parent), [parent]);
  const ended = (target: RevocationTarget): unknown => {
    const revocations = new RevocationSet();
    const { tenantId, applicationId } = parent;
    revocations.add({
      ...{ contractVersion: 1, tenantId, applicationId, target, grantId: "g", revokedAt: 0 },
      revokedBy: { kind: "human", id: "ops" },
    });
    return findLost(snapshot, { now: 0, revocations });
  };

  it("falls with whatever it stems from", () => {
    expect(ended({ kind: "grant", grantId: parent.id })).toBe("revoked");
    expect(ended({ kind: "subject", subject: parent.subject })).toBe("revoked");
    expect(ended({ kind: "grant", grantId: parent.id, belowRevision: 2 })).toBe("superseded");
    expect(ended({ kind: "subject", subject: parent.issuer })).toBeUndefined();
    expect(findLost(snapshot, { now: 0, revocations: undefined })).toBeUndefined();
  });
});
