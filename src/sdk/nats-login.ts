import { AuthorizationError, credsAuthenticator, nkeyAuthenticator, type TlsOptions } from "@nats-io/nats-core";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import { MandateError } from "../core/errors.ts";
import { workerInboxPrefix, type WorkerScope } from "../wire/nats-rights.ts";
import { isUntrusted } from "./problem.ts";

/** Who a worker is to NATS, and how it makes sure of NATS. Plain data: a second thread connects with it as well. */
export interface NatsLogin {
  readonly user?: string;
  readonly pass?: string;
  readonly token?: string;
  /** Seed of the user's nkey, `SU…`. */
  readonly nkeySeed?: string;
  /** JWT and seed, the text of a file that `nsc` writes. */
  readonly credentials?: string;
  /** With it, even empty, nothing is said to a server without TLS. `caFile` names who may vouch for the servers. */
  readonly tls?: TlsOptions;
  /** Where answers are awaited. With a seed or credentials the default is what {@link workerInboxPrefix} answers, else `_INBOX`. */
  readonly inboxPrefix?: string;
}

const SEED = /^\s*SU[A-Z2-7]{56}\s*$/;
const CREDENTIALS = /-BEGIN NATS USER JWT-[^]*-BEGIN USER NKEY SEED-/;

/** What is wrong with a login: the option and the rule that it breaks, never its value. */
export function brokenLoginRule(login: NatsLogin): readonly [option: string, rule: string] | undefined {
  if (login.nkeySeed !== undefined && !SEED.test(login.nkeySeed))
    return ["login.nkeySeed", "is no seed of a user's nkey"];
  if (login.credentials !== undefined && !CREDENTIALS.test(login.credentials))
    return ["login.credentials", "are no NATS credentials"];
  if (login.inboxPrefix !== undefined && !/^[^\s.*>]+(\.[^\s.*>]+)*$/.test(login.inboxPrefix))
    return ["login.inboxPrefix", "is no subject without wildcards"];
  return undefined;
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A login as the client library takes it. */
export function loginOptions(login: NatsLogin, worker: WorkerScope): NodeConnectionOptions {
  const { credentials, inboxPrefix, nkeySeed, ...plain } = login;
  const restricted = nkeySeed !== undefined || credentials !== undefined;
  const prefix = inboxPrefix ?? (restricted ? workerInboxPrefix(worker) : undefined);
  return {
    ...plain,
    ...(nkeySeed === undefined ? {} : { authenticator: nkeyAuthenticator(bytes(nkeySeed.trim())) }),
    ...(credentials === undefined ? {} : { authenticator: credsAuthenticator(bytes(`${credentials.trim()}\n`)) }),
    ...(prefix === undefined ? {} : { inboxPrefix: prefix }),
  };
}

/** The refusal, when trying to connect once more would not help. */
export function refusalOfDial(thrown: unknown): MandateError | undefined {
  if (thrown instanceof AuthorizationError)
    return new MandateError("WORKLOAD_UNAUTHORIZED", "NATS does not take the credentials", { cause: thrown });
  for (let cause = thrown; cause instanceof Error; cause = cause.cause)
    if ("code" in cause && typeof cause.code === "string" && isUntrusted(cause.code))
      return new MandateError("WORKLOAD_UNAUTHORIZED", `NATS's certificate is not trusted: ${cause.code}`, {
        cause: thrown,
      });
  return undefined;
}
