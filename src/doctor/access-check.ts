import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { streamName } from "../store/jetstream/bucket.ts";
import { failure, ok, skipped, type Check } from "./check.ts";
import type { StoreAddress } from "./store-address.ts";

const TIMEOUT_MS = 3_000;

/** Whether somebody without credentials can see the store's stream; whoever can see it there can write it. */
async function seenByAnybody({ connection, epoch, servers }: StoreAddress): Promise<boolean> {
  const { tls } = connection ?? {};
  try {
    const nats = await connect({
      ...(tls === undefined ? {} : { tls }),
      servers: [...servers],
      name: "mandate doctor (without credentials)",
      timeout: TIMEOUT_MS,
      reconnect: false,
      ignoreClusterUpdates: true,
    });
    try {
      const manager = await jetstreamManager(nats, { checkAPI: false, timeout: TIMEOUT_MS });
      await manager.streams.info(streamName(epoch, 0));
      return true;
    } finally {
      await nats.close();
    }
  } catch {
    // Not let in, or into an account without the store, or without the right to ask.
    return false;
  }
}

/** A node that shows who it is expects that others have to as well (contract 4.3, 5.6). */
export async function checkAccess(address: StoreAddress): Promise<Check> {
  const { authenticator, pass, token } = address.connection ?? {};
  if (authenticator === undefined && pass === undefined && token === undefined)
    return skipped("access", "this node shows no credentials: everybody who reaches NATS can write the store");
  return (await seenByAnybody(address))
    ? failure("access", "NATS lets anybody see and write the store, credentials or not; give it accounts and users")
    : ok("access", "without credentials nobody sees the store");
}
