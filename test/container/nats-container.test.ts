/**
 * Goal: the store works on a nats-server in a container as on any other, and what it acknowledged is there after the
 * container was killed and started again.
 * Method: the official image through testcontainers; one client that stays connected over the restart, and a fresh one.
 */
import { NatsContainer, type StartedNatsContainer } from "@testcontainers/nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePorts } from "../../cluster/free-ports.ts";
import { poll } from "../../cluster/poll.ts";
import { assert } from "../../src/base/assert.ts";
import { utf8 } from "../../src/base/bytes.ts";
import { openJetstreamStore, type JetstreamStore } from "../../src/store/jetstream/jetstream-store.ts";
import { StoreUnavailable, type Commit } from "../../src/store/store.ts";
import { firstShard } from "../integration/store-setting.ts";
import { missingEngine, NATS_IMAGE } from "./docker.ts";

const CLIENT_PORT = 4222;
const PREFERRED_PORT = 28_422;
const COMMITS = 50;

const missing = await missingEngine();

/** The container's port may answer a little after the container says that it runs. */
async function openInTime(options: Parameters<typeof openJetstreamStore>[0]): Promise<JetstreamStore> {
  const opened = await poll(
    () =>
      openJetstreamStore(options).catch((thrown: unknown) => {
        if (thrown instanceof StoreUnavailable) return undefined;
        throw thrown;
      }),
    { timeoutMs: 30_000, intervalMs: 200 },
  );
  assert(opened !== undefined, "the container answers within half a minute");
  return opened;
}

describe.skipIf(missing !== undefined)("a store on a nats-server in a container", () => {
  let container: StartedNatsContainer;
  const stores: JetstreamStore[] = [];

  const open = async (clientId: string, create: boolean): Promise<JetstreamStore> => {
    const { servers, user, pass } = container.getConnectionOptions();
    const store = await openInTime({
      servers: [String(servers)],
      connection: { user: user ?? "", pass: pass ?? "" },
      epoch: "container",
      shards: 1,
      replicas: 1,
      storage: "file",
      create,
      clientId,
    });
    stores.push(store);
    return store;
  };

  beforeAll(async () => {
    const [port = PREFERRED_PORT] = await freePorts([PREFERRED_PORT]);
    container = await new NatsContainer(NATS_IMAGE)
      .withJetStream()
      .withArg("store_dir", "/data")
      // The same port after a restart, as a server that is not in a container has.
      .withExposedPorts({ container: CLIENT_PORT, host: port })
      .start();
  }, 180_000);

  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await container?.stop();
  });

  it("keeps what it acknowledged over a kill, and goes on with the clients it had", async () => {
    const store = await open("before", true);
    const shard = firstShard(store);
    const creation = (operationId: string, key: string): Commit => ({
      operationId,
      puts: [{ key, value: utf8(`${operationId} of ${key}`), base: "absent" }],
    });
    const keys = Array.from({ length: COMMITS }, (_, index) => `w.t.a.k${index}`);
    const outcomes = await Promise.all(keys.map((key, index) => shard.commit(creation(`first-${index}`, key))));
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["committed"]));

    await container.restart({ timeout: 0 });

    const fresh = firstShard(await open("after", false));
    const entries = await fresh.read(keys, { fresh: true });
    const values = keys.map((key) => new TextDecoder().decode(entries.get(key)?.value));
    expect(values).toEqual(keys.map((key, index) => `first-${index} of ${key}`));
    const later = await shard.commit(creation("later", "w.t.a.later"), { deadlineMs: 30_000 });
    expect(later).toMatchObject({ kind: "committed" });
    expect(await fresh.commit(creation("second", "w.t.a.k0"))).toMatchObject({ kind: "refused" });
  });
});
