import { readFileSync } from "node:fs";
import { credsAuthenticator, nkeyAuthenticator, type Authenticator } from "@nats-io/nats-core";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import type { NatsClientConfig } from "../config.ts";

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

/**
 * How the configuration says to connect to NATS. Where it names certificates, nothing is said to a server without TLS.
 * A server that refuses the login is asked again: rights are given and taken while nodes run.
 */
export function natsConnectionOf(config: NatsClientConfig): NodeConnectionOptions {
  const { natsInboxPrefix, natsPassword, natsTlsCa, natsTlsCert, natsTlsKey, natsToken, natsUser } = config;
  const authenticator = authenticatorOf(config);
  const tls = natsTlsCa !== undefined || natsTlsCert !== undefined;
  return {
    ignoreAuthErrorAbort: true,
    ...(natsToken === undefined ? {} : { token: natsToken }),
    ...(natsUser === undefined || natsPassword === undefined ? {} : { user: natsUser, pass: natsPassword }),
    ...(authenticator === undefined ? {} : { authenticator }),
    ...(natsInboxPrefix === undefined ? {} : { inboxPrefix: natsInboxPrefix }),
    ...(tls
      ? {
          tls: {
            ...(natsTlsCa === undefined ? {} : { caFile: natsTlsCa }),
            ...(natsTlsCert === undefined ? {} : { certFile: natsTlsCert }),
            ...(natsTlsKey === undefined ? {} : { keyFile: natsTlsKey }),
          },
        }
      : {}),
  };
}
