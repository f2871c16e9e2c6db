import type { NatsAccount, NatsUser } from "../../cluster/nats-config.ts";
import { ALL_WORK_SUBJECTS, workerInboxPrefix, workerRights, type WorkerScope } from "../wire/nats-rights.ts";
import {
  applicationAccount,
  AUTHORITY_ACCOUNT,
  authorityRights,
  permissionsOf,
  requestImport,
  type StoreLayout,
} from "./accounts.ts";

/** What `mandate nats-permissions` prints: one user's rights, and what its account needs for them to be of use. */
export interface PrintedPermissions {
  readonly account: string;
  /** Only an account with JetStream can hold the store. */
  readonly jetstream: boolean;
  readonly exports?: readonly { readonly service: string }[];
  readonly imports?: NatsAccount["imports"];
  /** What the user's client has to be told. */
  readonly inboxPrefix: string;
  readonly permissions: NatsUser["permissions"];
}

/** What a platform gives a worker's NATS user (contract 4.3). */
export const workerPermissions = (scope: WorkerScope): PrintedPermissions => ({
  account: applicationAccount(scope),
  jetstream: false,
  imports: [requestImport(scope)],
  inboxPrefix: workerInboxPrefix(scope),
  permissions: permissionsOf(workerRights(scope)),
});

/** What a platform gives a node's NATS user. */
export const authorityPermissions = (layout: StoreLayout): PrintedPermissions => ({
  account: AUTHORITY_ACCOUNT,
  jetstream: true,
  exports: [{ service: ALL_WORK_SUBJECTS }],
  inboxPrefix: "_INBOX",
  permissions: permissionsOf(authorityRights(layout)),
});
