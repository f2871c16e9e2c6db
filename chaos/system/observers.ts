import type { Issuer } from "./issuer.ts";
import { APPLICATIONS, TENANT } from "./setting.ts";
import type { Tenant } from "./tenants.ts";

/** Who looks at one application of a tenant when a run ends, and brings what is left there to its end. */
export interface Observer {
  readonly tenantId: string;
  readonly applicationId: string;
  /** The grant of a subject (`kind:id`); `undefined` in open mode. */
  readonly tokenOf: (subject: string) => string | undefined;
}

const capabilities = ["workload:read", "workload:approve", "worker:read"];

/** One of each application of each tenant; without tenants, of the one that open mode has. */
export const observersOf = (secure?: {
  readonly issuer: Issuer;
  readonly tenants: readonly Tenant[];
}): readonly Observer[] =>
  (secure?.tenants ?? [{ tenantId: TENANT }]).flatMap(({ tenantId }) =>
    APPLICATIONS.map((applicationId) => ({
      tenantId,
      applicationId,
      tokenOf: (subject: string) => secure?.issuer.issue({ tenantId, applicationId, subject, capabilities }),
    })),
  );

const WATCHER = "service:observer";

/** The headers of a request by an observer. */
export function headersOf({ tokenOf }: Observer): { readonly [name: string]: string } {
  const token = tokenOf(WATCHER);
  return token === undefined ? { "x-mandate-subject": WATCHER } : { authorization: `Bearer ${token}` };
}
