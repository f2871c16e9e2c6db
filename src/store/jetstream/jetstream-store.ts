import type { NodeConnectionOptions } from "@nats-io/transport-node";
import { monotonicMs } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import type { Log } from "../../base/log.ts";
import { StoreUnavailable } from "../store.ts";
import type { Store } from "../store.ts";
import type { CommitReport } from "./committer.ts";
import { StoreConnection } from "./connection.ts";
import type { StoreMeta } from "./meta.ts";
import { openBuckets } from "./open-buckets.ts";
import { pause, repeatDelayMs } from "./pause.ts";
import { JetstreamShard } from "./shard.ts";

export interface JetstreamStoreOptions {
  /** `host:port` of every server. */
  readonly servers: readonly string[];
  /** Credentials, TLS and the like. What the store depends on can't be changed by it. */
  readonly connection?: NodeConnectionOptions;
  /** Names the deployment's data: 1 to 32 of A-Za-z0-9-. */
  readonly epoch: string;
  readonly shards: number;
  readonly replicas: number;
  readonly storage: "file" | "memory";
  /** Revisions kept of each key: 1 if absent; -1 keeps all, for tests that look back. */
  readonly history?: number;
  /** Make the store if no part of it is there. */
  readonly create: boolean;
  /** Unique among the clients that are open at the same time, such as the node's id. */
  readonly clientId: string;
  readonly log?: Log;
  /** Called at the end of every commit. */
  readonly onCommit?: (report: CommitReport & { readonly shard: number }) => void;
  /** How long to go on trying while the servers give no answer, ms (15 s). */
  readonly openTimeoutMs?: number;
}

const OPEN_TIMEOUT_MS = 15_000;

/** The store port over NATS JetStream. */
export class JetstreamStore implements Store {
  readonly shards: readonly JetstreamShard[];
  /** What the store says of itself: format, layout. */
  readonly meta: StoreMeta;
  readonly #connection: StoreConnection;

  constructor(connection: StoreConnection, meta: StoreMeta, shards: readonly JetstreamShard[]) {
    this.#connection = connection;
    this.meta = meta;
    this.shards = shards;
  }

  reachable(): boolean {
    return this.#connection.connected;
  }

  async close(): Promise<void> {
    await Promise.all(this.shards.map((shard) => shard.close()));
    await this.#connection.close();
  }
}

/**
 * Opens a store, or makes it.
 *
 * @throws StoreRefusal when it is not what the options say, can't be read by this program, or lost shards.
 * @throws StoreUnavailable when no server gave an answer in time.
 */
export async function openJetstreamStore(options: JetstreamStoreOptions): Promise<JetstreamStore> {
  const log = options.log ?? silentLog;
  const end = monotonicMs() + (options.openTimeoutMs ?? OPEN_TIMEOUT_MS);
  const persist = async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
    for (let tries = 1; ; tries++) {
      try {
        return await ask();
      } catch (thrown) {
        const delayMs = repeatDelayMs(tries + 3);
        if (!(thrown instanceof StoreUnavailable) || monotonicMs() + delayMs > end) throw thrown;
        await pause(delayMs);
      }
    }
  };
  const { servers, clientId } = options;
  const connection = await persist(() =>
    StoreConnection.open({ servers, clientId, connection: options.connection, log }),
  );
  try {
    const meta = await persist(() => openBuckets(connection, options));
    const shards = Array.from({ length: options.shards }, (_, index) => {
      const { onCommit } = options;
      const onReport =
        onCommit === undefined ? undefined : (report: CommitReport) => onCommit({ ...report, shard: index });
      return new JetstreamShard(connection, { index, epoch: options.epoch, clientId, log, onReport });
    });
    return new JetstreamStore(connection, meta, shards);
  } catch (thrown) {
    await connection.close();
    throw thrown;
  }
}
