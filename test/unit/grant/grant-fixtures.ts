import { decideAuthorization, type AccessRequest, type Authorization } from "../../../src/core/grant/authorize.ts";
import type { RequestFacts } from "../../../src/core/grant/constraints.ts";
import type { Grant } from "../../../src/core/grant/grant.ts";
import { noRevocations } from "../../../src/core/grant/revocation.ts";

/** The instant that the tests of grants take place at, epoch ms. */
export const NOW = 1_800_000_000_000;
export const SKEW_MS = 2_000;

/** A grant that reaches everything of application `shop`, with what a test changes. */
export const grantOf = (changes: Partial<Grant> = {}): Grant => ({
  contractVersion: 1,
  id: "grant-1",
  issuer: { kind: "service", id: "issuer" },
  subject: { kind: "service", id: "orders" },
  tenantId: "acme",
  applicationId: "shop",
  capabilities: ["workload:create", "workload:read"],
  resources: [{ kind: "APPLICATION", uri: "flow://shop" }],
  constraints: {},
  issuedAt: NOW - 60_000,
  expiresAt: NOW + 3_600_000,
  revision: 1,
  status: "ACTIVE",
  ...changes,
});

/** A grant that `parent`'s subject delegated to somebody. */
export const childOf = (parent: Grant, changes: Partial<Grant> = {}): Grant => ({
  ...parent,
  id: `${parent.id}.child`,
  issuer: parent.subject,
  subject: { kind: "agent", id: `helper of ${parent.id}` },
  parentGrant: parent.id,
  ...changes,
});

/** A request to read workload `w1`. */
export const requestOf = (
  changes: Partial<AccessRequest> & { readonly facts?: RequestFacts; readonly resource?: string } = {},
): AccessRequest => {
  const { facts = {}, resource = "flow://shop/workloads/w1", ...rest } = changes;
  return {
    tenantId: "acme",
    applicationId: "shop",
    capability: "workload:read",
    target: { resource, facts },
    ...rest,
  };
};

/** What the rules say: `allowed`, or the code of the refusal. */
export function verdictOf(grant: Grant, how: Partial<Omit<Authorization, "grant">> = {}): string {
  const decision = decideAuthorization({
    grant,
    chain: [],
    revocations: noRevocations,
    now: NOW,
    skewMs: SKEW_MS,
    request: requestOf(),
    ...how,
  });
  return decision.allowed ? "allowed" : decision.refusal.code;
}
