/**
 * A process that loads what is measured, so that no event loop is shared with it. It is told what to do by its parent,
 * one job after the other, and ends when the parent goes.
 */
import { connect } from "@nats-io/transport-node";
import type { NatsConnection } from "@nats-io/nats-core";
import { subjectPrefix } from "../src/store/jetstream/bucket.ts";
import { directLives, directPhases } from "./direct-load.ts";
import type { Figures } from "./figures.ts";
import { HttpConnection } from "./http-client.ts";
import { ProductClient } from "./product-client.ts";
import {
  drainQueue,
  fillQueue,
  loneJobs,
  productHeartbeats,
  productLives,
  productPhases,
  registeredLives,
} from "./product-load.ts";
import {
  rawHeartbeats,
  rawLives,
  rawPhases,
  rawRegisteredLives,
  type Load,
  type Phases,
  type RecordedLife,
} from "./raw-load.ts";
import { RawStore } from "./raw-store.ts";
import { fillRecords } from "./record-filler.ts";
import { openAuthority, openStore, type StoreAddress } from "./store-access.ts";

export interface GeneratorSetting {
  readonly address: StoreAddress;
  readonly life: RecordedLife;
  /** HTTP addresses of the nodes. */
  readonly urls: readonly string[];
}

const waitingAt = async (connection: HttpConnection): Promise<number> => {
  const { body } = await connection.get("/metrics");
  return Number(/^mandate_worker_requests_under_way(?:\{[^}]*\})? (\d+)/m.exec(body)?.[1] ?? 0);
};

/** Finds a lane whose node is not the one that holds the only worker's poll. */
function laneBeside(connections: readonly HttpConnection[]): () => Promise<number> {
  return async () => {
    for (;;) {
      const waiting = await Promise.all(connections.map(waitingAt));
      const holder = waiting.findIndex((count) => count > 0);
      if (holder >= 0) return connections.length === 1 ? 0 : (holder + 1) % connections.length;
    }
  };
}

class Jobs {
  readonly #setting: GeneratorSetting;
  readonly #nats: NatsConnection;
  readonly #raw: RawStore;

  constructor(setting: GeneratorSetting, nats: NatsConnection) {
    this.#setting = setting;
    this.#nats = nats;
    this.#raw = new RawStore(nats, subjectPrefix(setting.address.epoch, 0));
  }

  rawPhases = (load: Load & { readonly requested: boolean }): Promise<Phases> =>
    rawPhases(this.#raw, this.#setting.life, load);

  rawLives = (load: Load): Promise<Figures> => rawLives(this.#raw, this.#setting.life, load);

  rawHeartbeats = (load: Load): Promise<Figures> => rawHeartbeats(this.#raw, this.#setting.life, load);

  phases = (load: Load & { readonly requested: boolean }): Promise<Phases> =>
    this.#asClient(load.inFlight, (client) => productPhases(client, load));

  lives = (load: Load): Promise<Figures> => this.#asClient(load.inFlight, (client) => productLives(client, load));

  rawRegisteredLives = (load: Load): Promise<Figures> => rawRegisteredLives(this.#raw, this.#setting.life, load);

  registeredLives = (load: Load): Promise<Figures> =>
    this.#asClient(load.inFlight, (client) => registeredLives(client, load));

  heartbeats = (load: Load & { readonly batch: boolean }): Promise<Figures> =>
    this.#asClient(1, (client) => productHeartbeats(client, load));

  fillQueue = (queue: { readonly name: string; readonly run: string; readonly size: number }): Promise<void> =>
    this.#asClient(1, (client) => fillQueue(client, queue));

  drainQueue = (queue: {
    readonly name: string;
    readonly run: string;
    readonly size: number;
    readonly workers: number;
  }): Promise<Figures> => this.#asClient(1, (client) => drainQueue(client, queue));

  loneJobs = async (jobs: {
    readonly run: string;
    readonly count: number;
  }): Promise<{ readonly total: Figures; readonly held: Figures }> => {
    const connections = await Promise.all(this.#setting.urls.map((url) => HttpConnection.open(url)));
    try {
      return await this.#asClient(connections.length, (client) =>
        loneJobs(client, { ...jobs, otherLane: laneBeside(connections) }),
      );
    } finally {
      for (const connection of connections) connection.close();
    }
  };

  fillRecords = (records: { readonly count: number }): Promise<Figures> =>
    fillRecords(this.#nats, subjectPrefix(this.#setting.address.epoch, 0), records.count);

  directPhases = (load: Load & { readonly requested: boolean }): Promise<Phases> =>
    this.#asAuthority((authority) => directPhases(authority, load));

  directLives = (load: Load): Promise<Figures> => this.#asAuthority((authority) => directLives(authority, load));

  async #asClient<Answer>(lanes: number, use: (client: ProductClient) => Promise<Answer>): Promise<Answer> {
    const client = await ProductClient.open(this.#nats, this.#setting.urls, lanes);
    try {
      return await use(client);
    } finally {
      client.close();
    }
  }

  async #asAuthority<Answer>(
    use: (authority: Awaited<ReturnType<typeof openAuthority>>) => Promise<Answer>,
  ): Promise<Answer> {
    const store = await openStore(this.#setting.address, "bench-direct");
    const authority = await openAuthority(store, "bench-direct");
    try {
      return await use(authority);
    } finally {
      await authority.close();
      await store.close();
    }
  }
}

export type JobName = Exclude<keyof Jobs, symbol>;
export type JobArguments<Name extends JobName> = Parameters<Jobs[Name]>[0];
export type JobAnswer<Name extends JobName> = Awaited<ReturnType<Jobs[Name]>>;

/** What the parent sends: first the setting, then jobs. */
export type Order = { readonly setting: GeneratorSetting } | { readonly name: JobName; readonly arguments: unknown };

/** What comes back for each order. */
export type Reply = { readonly answer: unknown } | { readonly failure: string };

let jobs: Jobs | undefined;

async function obey(order: Order): Promise<unknown> {
  if ("setting" in order) {
    const nats = await connect({ servers: [...order.setting.address.servers], noAsyncTraces: true });
    jobs = new Jobs(order.setting, nats);
    return undefined;
  }
  const job = jobs?.[order.name] as ((value: unknown) => Promise<unknown>) | undefined;
  if (job === undefined) throw new RangeError(`no job ${order.name}`);
  return job(order.arguments);
}

if (process.send !== undefined) {
  process.on("message", (order: Order) => {
    void obey(order).then(
      (answer) => process.send?.({ answer } satisfies Reply),
      (thrown: unknown) =>
        process.send?.({ failure: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) }),
    );
  });
  process.on("disconnect", () => process.exit(0));
}
