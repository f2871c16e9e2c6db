/**
 * Goal: the decision order of contract 4.2, each check both ways, for every capability and kind of resource.
 * Method: a request with every fault at once whose faults are mended one by one; and the table of capabilities.
 */
import { describe, expect, it } from "vitest";
import { decideAuthorization, findFallen, type AccessRequest } from "../../../src/core/grant/authorize.ts";
import {
  capabilities,
  grantedWorkerCapabilities,
  isCapability,
  resourceOf,
  type Capability,
} from "../../../src/core/grant/capabilities.ts";
import { resourceKinds, type Grant, type GrantResource } from "../../../src/core/grant/grant.ts";
import { noRevocations, RevocationSet } from "../../../src/core/grant/revocation.ts";
import { childOf, grantOf, NOW, requestOf, SKEW_MS, verdictOf } from "./grant-fixtures.ts";

/** Contract 4.1's table, written out a second time. */
const resources: { readonly [Name in Capability]: string } = {
  "workload:create": "flow://shop/workloads",
  "workload:read": "flow://shop/workloads/x1",
  "workload:cancel": "flow://shop/workloads/x1",
  "workload:retry": "flow://shop/workloads/x1",
  "workload:approve": "flow://shop/workloads/x1",
  "workload:claim": "flow://shop/workloads/x1",
  "workload:execute": "flow://shop/workloads/x1",
  "worker:register": "flow://shop/workers",
  "worker:read": "flow://shop/workers/x1",
  "worker:heartbeat": "flow://shop/workers/x1",
  "worker:manage": "flow://shop/workers/x1",
  "pool:manage": "flow://shop/worker-pools",
  "authorization:grant": "flow://shop/grants",
  "authorization:revoke": "flow://shop/grants",
  "run:create": "flow://shop/runs/x1",
  "run:read": "flow://shop/runs/x1",
  "run:cancel": "flow://shop/runs/x1",
};

describe("the capabilities", () => {
  it("are checked on the resources of the contract", () => {
    expect(Object.fromEntries(capabilities.map((name) => [name, resourceOf(name, "shop", "x1")]))).toEqual(resources);
    expect(resourceOf("run:create", "shop")).toBe("flow://shop/runs");
  });

  it("exist by name alone", () => {
    for (const name of [...capabilities, "worker:capability:gpu"])
      expect([name, isCapability(name)]).toEqual([name, true]);
    for (const name of ["", "workload", "workload:*", "*", "toString", "worker:capability:", "WORKLOAD:READ"])
      expect([name, isCapability(name)]).toEqual([name, false]);
  });

  it("of workers are those that the registration grant names", () => {
    expect(grantedWorkerCapabilities(["worker:register", "worker:capability:gpu", "worker:capability:a:b"])).toEqual([
      "gpu",
      "a:b",
    ]);
  });
});

/** A resource of each kind that reaches a URI, and one that does not. */
const reaching = (kind: GrantResource["kind"], uri: string): readonly [GrantResource, GrantResource] => {
  if (kind === "APPLICATION")
    return [
      { kind, uri: "flow://shop" },
      { kind, uri: `${uri}/below` },
    ];
  if (kind === "RESOURCE_PREFIX")
    return [
      { kind, uri: `${uri}*` },
      { kind, uri: `${uri}x*` },
    ];
  return [
    { kind, uri },
    { kind, uri: `${uri}/*` },
  ];
};

describe.each(capabilities)("the capability %s", (capability) => {
  const uri = resources[capability];
  const request = requestOf({ capability, resource: uri });

  it.each(resourceKinds)("is let through by a resource of kind %s that reaches, and by no other", (kind) => {
    const [near, far] = reaching(kind, uri);
    expect(verdictOf(grantOf({ capabilities: [capability], resources: [near] }), { request })).toBe("allowed");
    expect(verdictOf(grantOf({ capabilities: [capability], resources: [far] }), { request })).toBe(
      "GRANT_SCOPE_DENIED",
    );
    expect(verdictOf(grantOf({ capabilities: [capability], resources: [far, near] }), { request })).toBe("allowed");
    expect(verdictOf(grantOf({ capabilities: [capability], resources: [] }), { request })).toBe("GRANT_SCOPE_DENIED");
  });

  it("is not in a grant that has all others", () => {
    const others = capabilities.filter((name) => name !== capability);
    expect(verdictOf(grantOf({ capabilities: others }), { request })).toBe("GRANT_SCOPE_DENIED");
  });

  it("is passed on by delegation, and not gained by it", () => {
    const parent = grantOf({ capabilities: [capability] });
    const child = childOf(parent);
    const other = childOf(grantOf({ capabilities: [] }), { capabilities: [capability] });
    expect(verdictOf(child, { chain: [parent], request })).toBe("allowed");
    expect(verdictOf(other, { chain: [grantOf({ capabilities: [] })], request })).toBe("GRANT_DELEGATION_INVALID");
  });
});

const revoked = (target: Parameters<RevocationSet["add"]>[0]["target"], applicationId = "shop"): RevocationSet => {
  const set = new RevocationSet();
  set.add({
    contractVersion: 1,
    tenantId: "acme",
    applicationId,
    target,
    revokedBy: { kind: "human", id: "ops" },
    grantId: "g-ops",
    revokedAt: NOW - 1,
  });
  return set;
};

describe("the order of checks", () => {
  it("names the first fault of many", () => {
    const everything: Grant = grantOf({
      tenantId: "other",
      subject: { kind: "agent", id: "mallory" },
      applicationId: "other",
      resources: [{ kind: "RESOURCE", uri: "nonsense" }],
      issuedAt: NOW + SKEW_MS + 1,
      expiresAt: NOW,
      status: "SUPERSEDED",
      capabilities: [],
      constraints: { workloadId: "w2" },
      parentGrant: "missing",
    });
    const asked = { request: requestOf({ subject: { kind: "service", id: "orders" }, resource: "flow://shop//" }) };
    const trail: [Partial<Grant>, object, string][] = [
      [{}, {}, "GRANT_SCOPE_DENIED the grant is another subject's"],
      [{ subject: { kind: "service", id: "orders" } }, {}, "GRANT_SCOPE_DENIED the grant is of another tenant"],
      [{ tenantId: "acme" }, {}, "GRANT_SCOPE_DENIED the grant is of another application"],
      [{ applicationId: "shop" }, {}, "GRANT_SCOPE_DENIED the resource is no URI of the application"],
      [{}, { request: requestOf() }, "GRANT_SCOPE_DENIED a resource of the grant is no URI of its application"],
      [
        { resources: [{ kind: "WORKLOAD", uri: "flow://shop/a" }] },
        {},
        "GRANT_INVALID the grant was issued in the future",
      ],
      [{ issuedAt: NOW + SKEW_MS }, {}, "GRANT_EXPIRED the grant has expired"],
      [
        { expiresAt: NOW + 1 },
        { revocations: revoked({ kind: "tenant" }) },
        "GRANT_REVOKED the grant, or one that it was delegated from, was revoked",
      ],
      [
        {},
        { revocations: noRevocations },
        "GRANT_REVOKED the grant, or one that it was delegated from, was superseded",
      ],
      [{ status: "ACTIVE" }, {}, "GRANT_SCOPE_DENIED the grant lacks the capability"],
      [{ capabilities: ["workload:read"] }, {}, "GRANT_SCOPE_DENIED the grant does not reach the resource"],
      [
        { resources: [{ kind: "WORKLOAD", uri: "flow://shop/workloads/w1" }] },
        {},
        "GRANT_SCOPE_DENIED the constraint workloadId does not hold",
      ],
      [{ constraints: {} }, {}, "GRANT_DELEGATION_INVALID the parent of a grant is missing"],
    ];
    let grant = everything;
    let how = { chain: [], revocations: noRevocations, now: NOW, skewMs: SKEW_MS, ...asked };
    for (const [change, more, expected] of trail) {
      grant = { ...grant, ...change };
      how = { ...how, ...more };
      const decision = decideAuthorization({ grant, ...how });
      expect(decision.allowed ? "allowed" : `${decision.refusal.code} ${decision.refusal.message}`).toBe(expected);
    }
    const { parentGrant: _gone, ...mended } = grant;
    expect(decideAuthorization({ grant: mended, ...how })).toEqual({ allowed: true });
  });

  it("lets a grant through from its issue, less the skew, until just before its expiry", () => {
    const at = (now: number): string => verdictOf(grantOf(), { now });
    const { issuedAt, expiresAt } = grantOf();
    expect(at(issuedAt - SKEW_MS - 1)).toBe("GRANT_INVALID");
    expect(at(issuedAt - SKEW_MS)).toBe("allowed");
    expect(at(expiresAt - 1)).toBe("allowed");
    expect(at(expiresAt)).toBe("GRANT_EXPIRED");
  });

  it.each([
    ["ACTIVE", "allowed"],
    ["REVOKED", "GRANT_REVOKED"],
    ["EXPIRED", "GRANT_EXPIRED"],
    ["SUPERSEDED", "GRANT_REVOKED"],
  ] as const)("takes a grant of status %s as %s", (status, expected) => {
    expect(verdictOf(grantOf({ status }))).toBe(expected);
  });

  it("asks for the capability alone where what it is about is not known yet", () => {
    const request: AccessRequest = { ...requestOf(), target: "any" };
    const grant = grantOf({ resources: [], constraints: { workloadId: "w9" } });
    expect(verdictOf(grant, { request })).toBe("allowed");
    expect(verdictOf({ ...grant, capabilities: [] }, { request })).toBe("GRANT_SCOPE_DENIED");
  });

  it("asks for everything below a resource where it can't be known what will be taken", () => {
    const request: AccessRequest = {
      ...requestOf(),
      target: { resource: "flow://shop/workloads", everythingBelow: true, facts: {} },
    };
    const verdict = (kind: GrantResource["kind"], uri: string): string =>
      verdictOf(grantOf({ resources: [{ kind, uri }] }), { request });
    expect(verdict("APPLICATION", "flow://shop")).toBe("allowed");
    expect(verdict("COLLECTION", "flow://shop/workloads/*")).toBe("allowed");
    expect(verdict("COLLECTION", "flow://shop/workloads")).toBe("GRANT_SCOPE_DENIED");
    expect(verdict("WORKLOAD", "flow://shop/workloads/w1")).toBe("GRANT_SCOPE_DENIED");
    expect(verdict("RESOURCE_PREFIX", "flow://shop/workloads/w1*")).toBe("GRANT_SCOPE_DENIED");
  });

  it("binds the subject where one is asked for", () => {
    const request = requestOf({ subject: { kind: "human", id: "orders" } });
    expect(verdictOf(grantOf(), { request })).toBe("GRANT_SCOPE_DENIED");
    expect(verdictOf(grantOf({ subject: { kind: "human", id: "orders" } }), { request })).toBe("allowed");
  });
});

describe("a revocation", () => {
  const parent = grantOf();
  const child = childOf(parent);
  const verdict = (revocations: RevocationSet, grant: Grant = child): string =>
    verdictOf(grant, { chain: grant === child ? [parent] : [], revocations });

  it.each([
    ["of the grant", { kind: "grant", grantId: "grant-1.child" }, true],
    ["of its parent", { kind: "grant", grantId: "grant-1" }, true],
    ["of another grant", { kind: "grant", grantId: "grant-2" }, false],
    ["of its subject", { kind: "subject", subject: { kind: "agent", id: "helper of grant-1" } }, true],
    ["of its parent's subject", { kind: "subject", subject: { kind: "service", id: "orders" } }, true],
    ["of a subject of another kind", { kind: "subject", subject: { kind: "human", id: "orders" } }, false],
    ["of the first issuer", { kind: "subject", subject: { kind: "service", id: "issuer" } }, false],
    ["of the application", { kind: "application" }, true],
    ["of the tenant", { kind: "tenant" }, true],
  ] as const)("%s", (_what, target, ends) => {
    expect(verdict(revoked(target))).toBe(ends ? "GRANT_REVOKED" : "allowed");
  });

  it("stays within its application, but for the tenant's", () => {
    for (const target of [
      { kind: "application" },
      { kind: "grant", grantId: "grant-1" },
      { kind: "subject", subject: { kind: "service", id: "orders" } },
    ] as const)
      expect(verdict(revoked(target, "bank"))).toBe("allowed");
    expect(verdict(revoked({ kind: "tenant" }, "bank"))).toBe("GRANT_REVOKED");
    expect(verdict(revoked({ kind: "tenant" }), grantOf({ tenantId: "acme2" }))).toBe("GRANT_SCOPE_DENIED");
  });

  it("below a revision ends what was issued before it", () => {
    const set = revoked({ kind: "grant", grantId: "grant-1", belowRevision: 3 });
    expect(verdict(set, grantOf({ revision: 2 }))).toBe("GRANT_REVOKED");
    expect(verdict(set, grantOf({ revision: 3 }))).toBe("allowed");
    expect(verdict(set)).toBe("GRANT_REVOKED");
  });

  it("once whole is not undone by one below a revision", () => {
    const set = revoked({ kind: "grant", grantId: "grant-1" });
    for (const target of [{ kind: "grant", grantId: "grant-1", belowRevision: 1 } as const])
      set.add({
        contractVersion: 1,
        tenantId: "acme",
        applicationId: "shop",
        target,
        revokedBy: { kind: "human", id: "ops" },
        grantId: "g-ops",
        revokedAt: NOW,
      });
    expect(verdict(set, grantOf({ revision: 9 }))).toBe("GRANT_REVOKED");
    expect(set.size).toBe(1);
  });

  it("fells a grant whatever it is to be used for", () => {
    const how = { now: NOW, skewMs: SKEW_MS };
    expect(findFallen({ grant: child, chain: [parent], revocations: noRevocations, ...how })).toBeUndefined();
    expect(findFallen({ grant: child, chain: [parent], revocations: revoked({ kind: "tenant" }), ...how })?.code).toBe(
      "GRANT_REVOKED",
    );
    expect(
      findFallen({ grant: child, chain: [parent], revocations: noRevocations, ...how, now: child.expiresAt })?.code,
    ).toBe("GRANT_EXPIRED");
  });
});
