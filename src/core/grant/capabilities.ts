import { renderResourceUri } from "./resource-uri.ts";

/** What each capability is checked on, below `flow://APP` (contract 4.1). */
const pathOf = {
  "workload:create": ["workloads"],
  "workload:read": ["workloads", "id"],
  "workload:cancel": ["workloads", "id"],
  "workload:retry": ["workloads", "id"],
  "workload:approve": ["workloads", "id"],
  "workload:claim": ["workloads", "id"],
  "workload:execute": ["workloads", "id"],
  "worker:register": ["workers"],
  "worker:read": ["workers", "id"],
  "worker:heartbeat": ["workers", "id"],
  "worker:manage": ["workers", "id"],
  "pool:manage": ["worker-pools"],
  "authorization:grant": ["grants"],
  "authorization:revoke": ["grants"],
  "run:create": ["runs", "id?"],
  "run:read": ["runs", "id?"],
  "run:cancel": ["runs", "id?"],
} as const satisfies Record<string, readonly [string, ("id" | "id?")?]>;

export type Capability = keyof typeof pathOf;

export const capabilities = Object.keys(pathOf) as readonly Capability[];

/** A capability that a worker may declare, and bear only if its registration grant has it. */
const WORKER_CAPABILITY = "worker:capability:";

/** Whether a text is a capability that exists. */
export const isCapability = (text: string): boolean =>
  Object.hasOwn(pathOf, text) || (text.startsWith(WORKER_CAPABILITY) && text.length > WORKER_CAPABILITY.length);

/** The capabilities of a worker that a registration grant gives out (contract 2.2, 4.1). */
export const grantedWorkerCapabilities = (granted: readonly string[]): readonly string[] =>
  granted.filter((name) => name.startsWith(WORKER_CAPABILITY)).map((name) => name.slice(WORKER_CAPABILITY.length));

/** The resource below which all of those lie that a capability is checked on. */
export const collectionOf = (capability: Capability, applicationId: string): string =>
  renderResourceUri(applicationId, pathOf[capability][0]);

/** The resource that a capability is checked on. `id` names the workload, worker or run, where it is about one. */
export function resourceOf(capability: Capability, applicationId: string, id?: string): string {
  const [collection, member] = pathOf[capability];
  if (member === undefined || (member === "id?" && id === undefined))
    return renderResourceUri(applicationId, collection);
  // Without an id the URI ends in an empty part, which no grant reaches.
  return renderResourceUri(applicationId, collection, id ?? "");
}
