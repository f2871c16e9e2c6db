import { sha256Hex } from "../base/hash.ts";
import { encodeToken } from "../base/token.ts";
import { PROTOCOL_VERSION } from "./version.ts";

/** What a NATS user may publish to and subscribe to: subjects and patterns, and nothing else. */
export interface NatsRights {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** Whose worker it is; without a name, any worker of the application. */
export interface WorkerScope {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly name?: string | undefined;
}

/** Beside a subject with the same identifiers, three longer tokens would not fit into a line of the protocol. */
const INBOX_TOKEN_MAX = 64;

/** No encoded text begins like a shortened one: `h` is no digit. */
function inboxToken(text: string): string {
  const token = encodeToken(text);
  return token.length <= INBOX_TOKEN_MAX ? token : `=h${sha256Hex(text)}`;
}

/**
 * Where a worker awaits its answers. No two names, applications or tenants share one, and nobody else may listen there;
 * only a user of a whole application hears all of its workers.
 */
export const workerInboxPrefix = ({ tenantId, applicationId, name }: WorkerScope): string =>
  ["_INBOX", inboxToken(tenantId), inboxToken(applicationId), ...(name === undefined ? [] : [inboxToken(name)])].join(
    ".",
  );

/** Every request that the workers of an application may send (contract 6.3). */
export const applicationSubjects = ({ tenantId, applicationId }: WorkerScope): string =>
  `mandate.v${PROTOCOL_VERSION}.${encodeToken(tenantId)}.${encodeToken(applicationId)}.>`;

/** The same of all applications: what the nodes answer. */
export const ALL_WORK_SUBJECTS = `mandate.v${PROTOCOL_VERSION}.*.*.>`;

/**
 * The rights of a worker's NATS user (contract 4.3): to ask for its own application, and to hear its own answers. No
 * bucket, no JetStream, no discovery, nobody else's requests, replies or inboxes.
 */
export const workerRights = (scope: WorkerScope): NatsRights => ({
  publish: [applicationSubjects(scope)],
  subscribe: [`${workerInboxPrefix(scope)}.>`],
});
