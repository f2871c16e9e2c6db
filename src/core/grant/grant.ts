import type { Subject } from "../subject.ts";

/** Kinds of resources, which say what a URI stands for (contract 4.1). */
export const resourceKinds = [
  "APPLICATION",
  "RESOURCE_PREFIX",
  "COLLECTION",
  "RESOURCE",
  "WORKLOAD",
  "CONNECTION",
  "ARTIFACT",
] as const;
export type ResourceKind = (typeof resourceKinds)[number];

/** Only ACTIVE authorizes (contract 4.1). */
export const grantStatuses = ["ACTIVE", "REVOKED", "EXPIRED", "SUPERSEDED"] as const;
export type GrantStatus = (typeof grantStatuses)[number];

/** What a grant reaches: everything that its kind makes of its URI. */
export interface GrantResource {
  readonly kind: ResourceKind;
  readonly uri: string;
}

export type Attributes = { readonly [name: string]: string };

/** What must hold beside capability and resource, each optional, all together (contract 4.1). */
export interface GrantConstraints {
  /** The workload's environment is one of them. */
  readonly environments?: readonly string[];
  /** The worker's runtime. */
  readonly workerClass?: string;
  /** An address or a block (`10.0.0.0/8`) that the request comes from. */
  readonly network?: string;
  readonly workloadId?: string;
  /** Whether the workload uses connections. */
  readonly connectionEnabled?: boolean;
  /** The least contract version of the workload's record. */
  readonly minimumSchemaVersion?: number;
  readonly subjectAttributes?: Attributes;
  readonly resourceAttributes?: Attributes;
  readonly contextAttributes?: Attributes;
}

export const constraintNames = [
  "environments",
  "workerClass",
  "network",
  "workloadId",
  "connectionEnabled",
  "minimumSchemaVersion",
  "subjectAttributes",
  "resourceAttributes",
  "contextAttributes",
] as const satisfies readonly (keyof GrantConstraints)[];

/** *issuer* lets *subject* use *capabilities* on *resources* of one tenant and application, for a time (contract 4.1). */
export interface Grant {
  readonly contractVersion: 1;
  readonly id: string;
  readonly issuer: Subject;
  readonly subject: Subject;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly capabilities: readonly string[];
  readonly resources: readonly GrantResource[];
  readonly constraints: GrantConstraints;
  /** Epoch ms. */
  readonly issuedAt: number;
  /** Epoch ms; expired from this instant on. */
  readonly expiresAt: number;
  /** The id of the grant that this one was delegated from. */
  readonly parentGrant?: string;
  /** Grows when a grant is issued anew under its id. */
  readonly revision: number;
  readonly status: GrantStatus;
}

/** Most grants from a delegated one to the first, both counted (contract 4.2). */
export const CHAIN_LENGTH_MAX = 8;
