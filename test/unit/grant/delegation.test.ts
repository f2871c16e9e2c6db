/**
 * Goal: a delegated grant holds only within its parent, and only by an unbroken chain (contract 4.2).
 * Method: a child that is allowed, then the same with one thing changed at a time; chains of every length.
 */
import { describe, expect, it } from "vitest";
import { CHAIN_LENGTH_MAX, type Grant } from "../../../src/core/grant/grant.ts";
import { childOf, grantOf, NOW, verdictOf } from "./grant-fixtures.ts";

const parent = grantOf({ constraints: { environments: ["test", "staging"] } });
const request = {
  tenantId: "acme",
  applicationId: "shop",
  capability: "workload:read",
  target: { resource: "flow://shop/workloads/w1", facts: { environment: "test", workloadId: "w1" } },
};
const judge = (child: Grant, chain: readonly Grant[] = [parent]): string => verdictOf(child, { chain, request });

/** A chain of so many grants, the child first. */
function chainOf(length: number): readonly Grant[] {
  const chain = [grantOf()];
  while (chain.length < length) chain.unshift(childOf(chain[0] ?? grantOf(), { id: `grant-${chain.length + 1}` }));
  return chain;
}

describe("a delegated grant", () => {
  it("is good within its parent", () => {
    expect(judge(childOf(parent))).toBe("allowed");
  });

  it.each<[string, Partial<Grant>]>([
    ["fewer capabilities", { capabilities: ["workload:read"] }],
    ["a narrower resource", { resources: [{ kind: "RESOURCE", uri: "flow://shop/workloads/*" }] }],
    ["a shorter time", { issuedAt: NOW - 1, expiresAt: NOW + 1 }],
    ["a tighter constraint", { constraints: { environments: ["test"] } }],
    ["one constraint more", { constraints: { environments: ["test"], workloadId: "w1" } }],
  ])("may have %s", (_what, changes) => {
    expect(judge(childOf(parent, changes))).toBe("allowed");
  });

  it.each<[string, Partial<Grant>]>([
    ["another issuer than the parent's subject", { issuer: { kind: "service", id: "issuer" } }],
    ["an issuer of another kind", { issuer: { kind: "human", id: "orders" } }],
    ["one capability more", { capabilities: ["workload:read", "workload:cancel"] }],
    ["an earlier issue", { issuedAt: parent.issuedAt - 1 }],
    ["a later expiry", { expiresAt: parent.expiresAt + 1 }],
    ["no constraints", { constraints: {} }],
    ["a looser constraint", { constraints: { environments: ["test", "production"] } }],
    ["the parent's id", { id: parent.id }],
    ["another parent", { parentGrant: "grant-2" }],
  ])("may not have %s", (_what, changes) => {
    expect(judge(childOf(parent, changes))).toBe("GRANT_DELEGATION_INVALID");
  });

  it("may not reach outside its parent's resources", () => {
    const narrow = grantOf({ resources: [{ kind: "WORKLOAD", uri: "flow://shop/workloads/w1" }] });
    const ask = (changes: Partial<Grant>): string => judge(childOf(narrow, changes), [narrow]);
    expect(ask({})).toBe("allowed");
    expect(ask({ resources: [...narrow.resources, { kind: "WORKLOAD", uri: "flow://shop/workloads/w2" }] })).toBe(
      "GRANT_DELEGATION_INVALID",
    );
    expect(ask({ resources: [{ kind: "APPLICATION", uri: "flow://shop" }] })).toBe("GRANT_DELEGATION_INVALID");
  });

  it("is not of another tenant or application than its parent", () => {
    const foreign = grantOf({ tenantId: "other" });
    expect(judge(childOf(foreign, { tenantId: "acme" }), [foreign])).toBe("GRANT_DELEGATION_INVALID");
    const elsewhere = grantOf({ applicationId: "bank", resources: [] });
    expect(judge(childOf(elsewhere, { applicationId: "shop", resources: grantOf().resources }), [elsewhere])).toBe(
      "GRANT_DELEGATION_INVALID",
    );
  });

  it("falls with its parent's status", () => {
    for (const [status, code] of [
      ["REVOKED", "GRANT_REVOKED"],
      ["SUPERSEDED", "GRANT_REVOKED"],
      ["EXPIRED", "GRANT_DELEGATION_INVALID"],
    ] as const) {
      const fallen = { ...parent, status };
      expect(judge(childOf(fallen, { status: "ACTIVE" }), [fallen])).toBe(code);
    }
  });
});

describe("a chain", () => {
  it(`is at most ${CHAIN_LENGTH_MAX} long`, () => {
    for (let length = 1; length <= CHAIN_LENGTH_MAX + 1; length++) {
      const [grant, ...chain] = chainOf(length);
      const expected = length <= CHAIN_LENGTH_MAX ? "allowed" : "GRANT_DELEGATION_INVALID";
      expect([length, verdictOf(grant ?? grantOf(), { chain })]).toEqual([length, expected]);
    }
  });

  it("has no gap, no cycle and nothing beyond its first grant", () => {
    const [grant = grantOf(), middle = grantOf(), first = grantOf()] = chainOf(3);
    const ask = (chain: readonly Grant[]): string => verdictOf(grant, { chain });
    expect(ask([middle, first])).toBe("allowed");
    expect(ask([])).toBe("GRANT_DELEGATION_INVALID");
    expect(ask([middle])).toBe("GRANT_DELEGATION_INVALID");
    expect(ask([first])).toBe("GRANT_DELEGATION_INVALID");
    expect(ask([first, middle])).toBe("GRANT_DELEGATION_INVALID");
    expect(ask([middle, first, grantOf({ id: "stranger" })])).toBe("GRANT_DELEGATION_INVALID");
    const loop = { ...middle, parentGrant: grant.id, issuer: grant.subject };
    expect(ask([loop, { ...grant, parentGrant: loop.id }])).toBe("GRANT_DELEGATION_INVALID");
    expect(ask([middle, { ...first, parentGrant: middle.id }])).toBe("GRANT_DELEGATION_INVALID");
  });

  it("is checked in each of its links", () => {
    const [grant = grantOf(), middle = grantOf(), first = grantOf()] = chainOf(3);
    const narrowed = { ...first, capabilities: ["workload:create"] };
    expect(verdictOf(grant, { chain: [middle, narrowed] })).toBe("GRANT_DELEGATION_INVALID");
  });
});
