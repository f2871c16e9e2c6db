import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNatsCluster } from "../../cluster/nats-cluster.ts";
import type { NatsCluster, NatsClusterOptions } from "../../cluster/nats-cluster.ts";
import { openJetstreamStore } from "../../src/store/jetstream/jetstream-store.ts";
import type { JetstreamStore, JetstreamStoreOptions } from "../../src/store/jetstream/jetstream-store.ts";
import type { JetstreamShard } from "../../src/store/jetstream/shard.ts";

/** Real servers in a folder of their own, and stores on them; everything is gone after {@link StoreSetting.close}. */
export class StoreSetting {
  readonly cluster: NatsCluster;
  readonly #directory: string;
  readonly #stores: JetstreamStore[] = [];
  #clients = 0;

  private constructor(cluster: NatsCluster, directory: string) {
    this.cluster = cluster;
    this.#directory = directory;
  }

  static async start(options: Omit<NatsClusterOptions, "directory">): Promise<StoreSetting> {
    const directory = await mkdtemp(join(tmpdir(), "mandate-store-"));
    try {
      return new StoreSetting(await startNatsCluster({ ...options, directory }), directory);
    } catch (thrown) {
      await rm(directory, { recursive: true, force: true });
      throw thrown;
    }
  }

  /** Opens a client; the store is made if it is not there. */
  async open(options: Partial<JetstreamStoreOptions> & { readonly epoch: string }): Promise<JetstreamStore> {
    this.#clients += 1;
    const store = await openJetstreamStore({
      servers: this.cluster.urls,
      shards: 1,
      replicas: this.cluster.servers.length,
      storage: "file",
      create: true,
      clientId: `client-${this.#clients}`,
      ...options,
    });
    this.#stores.push(store);
    return store;
  }

  async close(): Promise<void> {
    for (const server of this.cluster.servers) if (server.paused) server.resume();
    await Promise.all(this.#stores.map((store) => store.close()));
    await this.cluster.killAll();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** The store's first shard. */
export function firstShard(store: JetstreamStore): JetstreamShard {
  const [shard] = store.shards;
  if (shard === undefined) throw new TypeError("a store has a shard");
  return shard;
}
