import type { NatsAccount, NatsUser } from "../../cluster/nats-config.ts";
import { encodeToken } from "../base/token.ts";
import { storePublishRights } from "../store/jetstream/store-rights.ts";
import {
  ALL_WORK_SUBJECTS,
  applicationSubjects,
  workerRights,
  type NatsRights,
  type WorkerScope,
} from "../wire/nats-rights.ts";

/**
 * Who may do what on NATS (contract 4.3), as accounts of the server's configuration.
 *
 * The nodes have an account of their own, with the store in it. Each application has another, without JetStream, into
 * which nothing is let but the requests of that application. So a worker stands behind two walls: the rights of its user,
 * and an account in which there is nothing to reach. The account also takes the sting out of reply subjects: a node
 * answers wherever a request says, with its own rights, and within one account that could be a key of the bucket or the
 * inbox of another application. Between accounts the server itself carries the answer back, into the account of whoever
 * asked.
 */

/** The account of the nodes and of the store. */
export const AUTHORITY_ACCOUNT = "MANDATE";

/** What the data of a deployment are named and spread over. */
export interface StoreLayout {
  readonly epoch: string;
  readonly shards: number;
}

/** A user that is known by the public part of its nkey. */
interface KeyHolder {
  readonly publicKey: string;
}

export interface AccountsOptions extends StoreLayout {
  readonly authorities: readonly KeyHolder[];
  readonly workers: readonly (KeyHolder & WorkerScope)[];
}

/** The account of the workers of an application. */
export const applicationAccount = ({ tenantId, applicationId }: WorkerScope): string =>
  `${AUTHORITY_ACCOUNT}.${encodeToken(tenantId)}.${encodeToken(applicationId)}`;

/**
 * The rights of a node: its shards, the workers' requests and the answers to them, discovery. The server brings requests
 * of other accounts with reply subjects of its own, which begin with `_R_`. They are allowed by name: rights to answer
 * that come with each message (`allow_responses`) would be remembered for every message that a follower is sent.
 */
export const authorityRights = (layout: StoreLayout): NatsRights => ({
  publish: [...storePublishRights(layout), "_R_.>", "_INBOX.>", "$SRV.>"],
  subscribe: [ALL_WORK_SUBJECTS, "_INBOX.>", "$SRV.>"],
});

/** Rights in the form of the server's configuration: whatever is not allowed is refused. */
export const permissionsOf = ({ publish, subscribe }: NatsRights): NatsUser["permissions"] => ({
  publish: { allow: publish },
  subscribe: { allow: subscribe },
});

/** The one way out of an application's account. */
export const requestImport = (scope: WorkerScope): NonNullable<NatsAccount["imports"]>[number] => ({
  service: { account: AUTHORITY_ACCOUNT, subject: applicationSubjects(scope) },
});

/** The accounts of a deployment. */
export function natsAccounts(options: AccountsOptions): readonly NatsAccount[] {
  const applications = new Map<string, { readonly imports: NatsAccount["imports"]; users: readonly NatsUser[] }>();
  for (const worker of options.workers) {
    const name = applicationAccount(worker);
    const account = applications.get(name) ?? { imports: [requestImport(worker)], users: [] };
    account.users = [...account.users, { nkey: worker.publicKey, permissions: permissionsOf(workerRights(worker)) }];
    applications.set(name, account);
  }
  const permissions = permissionsOf(authorityRights(options));
  return [
    {
      name: AUTHORITY_ACCOUNT,
      jetstream: true,
      users: options.authorities.map(({ publicKey }) => ({ nkey: publicKey, permissions })),
      exports: [{ service: ALL_WORK_SUBJECTS, accounts: [...applications.keys()] }],
    },
    ...[...applications].map(([name, account]) => ({ name, ...account })),
  ];
}
