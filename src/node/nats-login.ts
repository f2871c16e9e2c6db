import { readFileSync } from "node:fs";
import { credsAuthenticator, nkeyAuthenticator, type Authenticator } from "@nats-io/nats-core";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import type { NatsClientConfig } from "../config.ts";
import type { NatsLogin } from "../sdk/nats-login.ts";

/**
 * What a file holds, read again at every call, so that a key is rotated by writing its file and needs no restart. While
 * the file can't be read, what it held last counts.
 */
function rereadFile(file: string): () => Uint8Array {
  let held = new Uint8Array();
  return () => {
    try {
      held = new TextEncoder().encode(readFileSync(file, "utf8").trim());
    } catch {
      // It was there when the configuration was checked: somebody is writing it, or it comes back.
    }
    return held;
  };
}

/** The credentials' form ends with a line end, which the parser needs. */
const withLineEnd = (read: () => Uint8Array) => (): Uint8Array => Uint8Array.from([...read(), 0x0a]);

function authenticatorOf(config: NatsClientConfig): Authenticator | undefined {
  if (config.natsNkeySeedFile !== undefined) return nkeyAuthenticator(rereadFile(config.natsNkeySeedFile));
  if (config.natsCredsFile !== undefined) return credsAuthenticator(withLineEnd(rereadFile(config.natsCredsFile)));
  return undefined;
}

function tlsOf({ natsTlsCa, natsTlsCert, natsTlsKey }: NatsClientConfig): Pick<NatsLogin, "tls"> {
  if (natsTlsCa === undefined && natsTlsCert === undefined) return {};
  return {
    tls: {
      ...(natsTlsCa === undefined ? {} : { caFile: natsTlsCa }),
      ...(natsTlsCert === undefined ? {} : { certFile: natsTlsCert }),
      ...(natsTlsKey === undefined ? {} : { keyFile: natsTlsKey }),
    },
  };
}

/**
 * How the configuration says to connect to NATS. Where it names certificates, nothing is said to a server without TLS.
 * A server that refuses the login is asked again: rights are given and taken while nodes run.
 */
export function natsConnectionOf(config: NatsClientConfig): NodeConnectionOptions {
  const { natsInboxPrefix, natsPassword, natsToken, natsUser } = config;
  const authenticator = authenticatorOf(config);
  return {
    ignoreAuthErrorAbort: true,
    ...(natsToken === undefined ? {} : { token: natsToken }),
    ...(natsUser === undefined || natsPassword === undefined ? {} : { user: natsUser, pass: natsPassword }),
    ...(authenticator === undefined ? {} : { authenticator }),
    ...(natsInboxPrefix === undefined ? {} : { inboxPrefix: natsInboxPrefix }),
    ...tlsOf(config),
  };
}

/** The same for a worker of the library, whose second thread needs it as plain data. */
export function workerLoginOf(config: NatsClientConfig): NatsLogin {
  const { natsCredsFile, natsInboxPrefix, natsNkeySeedFile, natsPassword, natsToken, natsUser } = config;
  return {
    ...(natsToken === undefined ? {} : { token: natsToken }),
    ...(natsUser === undefined || natsPassword === undefined ? {} : { user: natsUser, pass: natsPassword }),
    ...(natsNkeySeedFile === undefined ? {} : { nkeySeed: readFileSync(natsNkeySeedFile, "utf8") }),
    ...(natsCredsFile === undefined ? {} : { credentials: readFileSync(natsCredsFile, "utf8") }),
    ...(natsInboxPrefix === undefined ? {} : { inboxPrefix: natsInboxPrefix }),
    ...tlsOf(config),
  };
}
