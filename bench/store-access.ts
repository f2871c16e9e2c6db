import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Authority } from "../src/authority/authority.ts";
import { silentLog } from "../src/base/log.ts";
import { openJetstreamStore, type JetstreamStore } from "../src/store/jetstream/jetstream-store.ts";
import type { Store } from "../src/store/store.ts";

/** Where the measured store is. */
export interface StoreAddress {
  /** Servers that clients connect to, `nats://host:port`: the one that leads, so that nobody's luck decides. */
  readonly servers: readonly string[];
  readonly epoch: string;
  readonly replicas: 1 | 3;
  readonly storage: "file" | "memory";
}

/** Opens the measured store, or makes it. */
export const openStore = (address: StoreAddress, clientId: string, create = false): Promise<JetstreamStore> =>
  openJetstreamStore({ ...address, shards: 1, create, clientId });

const READY_TIMEOUT_MS = 30_000;

/** An authority in this process that serves as a node does: by the store's time, with its passes. */
export async function openAuthority(store: Store, nodeId: string): Promise<Authority> {
  const authority = new Authority({ store, nodeId, nonce: randomBytes(4).toString("hex"), log: silentLog });
  authority.open();
  for (let waitedMs = 0; !authority.readiness().ready; waitedMs += 5) {
    if (waitedMs > READY_TIMEOUT_MS) throw new Error(authority.readiness().reasons.join("; "));
    await delay(5);
  }
  return authority;
}
