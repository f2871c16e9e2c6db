import type { Fence } from "../core/workload/fence.ts";
import type { WorkConnectionOptions } from "./work-connection.ts";

/** What the worker and its renewal thread tell each other. Plain data. */

/** The thread is born with this. */
export interface RenewalStart {
  readonly connection: WorkConnectionOptions;
  readonly leaseMs: number;
  /** The memory of the {@link TrustTable}. */
  readonly trust: SharedArrayBuffer;
}

/** A lease to keep alive. */
export interface HeldLease extends Fence {
  /** Its place in the trust table. */
  readonly place: number;
  /** When the request that was granted it was sent, ms of the shared clock. */
  readonly sentAt: number;
}

export type ToRenewal =
  | { readonly kind: "hold"; readonly lease: HeldLease }
  | { readonly kind: "release"; readonly place: number; readonly claimId: string }
  | { readonly kind: "renew-now"; readonly place: number; readonly claimId: string }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "stop" };

export type FromRenewal =
  | { readonly kind: "ready" }
  | { readonly kind: "cancel"; readonly place: number; readonly claimId: string }
  | { readonly kind: "renewed"; readonly place: number; readonly claimId: string }
  | { readonly kind: "lost"; readonly place: number; readonly claimId: string; readonly code: string };
