import { Draw } from "../draw.ts";

/** A tenant of a run in secure mode. */
export interface Tenant {
  readonly tenantId: string;
  /** A word that is in all that is the tenant's, and in nothing of anybody else. */
  readonly mark: string;
}

/** Two tenants that name everything alike. */
export const tenantsOf = (seed: number): readonly Tenant[] =>
  ["north", "south"].map((tenantId) => ({ tenantId, mark: new Draw(seed).child(`tenant-${tenantId}`).word() }));
