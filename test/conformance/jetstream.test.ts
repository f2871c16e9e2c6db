/**
 * Goal: the store over NATS JetStream keeps the promises of the port, on a single server and on three.
 * Method: the conformance suite against real servers that this test starts; each group of tests has an epoch of its own.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { JetstreamStoreOptions } from "../../src/store/jetstream/jetstream-store.ts";
import { StoreSetting } from "../integration/store-setting.ts";
import { describeStore } from "./store-suite.ts";

const settings = [
  { name: "one server, in memory", servers: 1, storage: "memory", sync: undefined },
  { name: "one server, on disk", servers: 1, storage: "file", sync: undefined },
  { name: "three servers, on disk, every write synced", servers: 3, storage: "file", sync: "always" },
] as const;

describe.each(settings)("$name", ({ name, servers, storage, sync }) => {
  let setting: StoreSetting;
  let epochs = 0;

  beforeAll(async () => {
    setting = await StoreSetting.start(sync === undefined ? { servers } : { servers, sync });
  });

  afterAll(async () => {
    await setting.close();
  });

  describeStore(name, async ({ shards }) => {
    epochs += 1;
    const options: Partial<JetstreamStoreOptions> & { epoch: string } = { epoch: `e${epochs}`, shards, storage };
    const store = await setting.open(options);
    return { store, another: () => setting.open(options), close: () => store.close() };
  });
});
