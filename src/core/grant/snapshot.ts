import type { Json } from "../../base/json.ts";
import type { GrantSnapshot } from "../workload/record.ts";
import type { Grant } from "./grant.ts";
import type { GrantFate, GrantName, Revocations } from "./revocation.ts";

/** A verified grant as a workload's record keeps it: enough to see later whether it still stands. Never the token. */
export const snapshotOf = (grant: Grant, chain: readonly Grant[]): GrantSnapshot => ({
  grantId: grant.id,
  issuer: grant.issuer,
  subject: grant.subject,
  tenantId: grant.tenantId,
  applicationId: grant.applicationId,
  capabilities: grant.capabilities,
  resources: grant.resources.map(({ kind, uri }) => ({ kind, uri })),
  constraints: { ...(grant.constraints as { readonly [name: string]: Json }) },
  issuedAt: grant.issuedAt,
  expiresAt: grant.expiresAt,
  revision: grant.revision,
  ...(chain.length === 0
    ? {}
    : { ancestors: chain.map(({ id, subject, revision }) => ({ grantId: id, subject, revision })) }),
});

/** A grant and those that it stems from: what ends one of them ends it. */
export const grantNamesOf = (snapshot: GrantSnapshot): readonly GrantName[] =>
  [snapshot, ...(snapshot.ancestors ?? [])].map(({ grantId, subject, revision }) => ({ grantId, subject, revision }));

/** What became of the first of them that was ended. */
export function findEnded(
  names: readonly GrantName[],
  scope: Pick<Grant, "tenantId" | "applicationId">,
  revocations: Revocations,
): GrantFate | undefined {
  const { tenantId, applicationId } = scope;
  for (const { grantId, subject, revision } of names) {
    const fate = revocations.fateOf({ id: grantId, subject, tenantId, applicationId, revision });
    if (fate !== undefined) return fate;
  }
  return undefined;
}

/** Why a grant that work was admitted under no longer stands. */
export function findLost(
  snapshot: GrantSnapshot,
  how: { readonly now: number; readonly revocations: Revocations | undefined },
): GrantFate | "expired" | undefined {
  if (how.now >= snapshot.expiresAt) return "expired";
  return how.revocations === undefined ? undefined : findEnded(grantNamesOf(snapshot), snapshot, how.revocations);
}
