import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNatsCluster } from "../cluster/nats-cluster.ts";
import { silentLog } from "./base/log.ts";
import type { Clock } from "./base/clock.ts";
import { Authority } from "./authority/authority.ts";
import { MandateError } from "./core/errors.ts";
import type { WorkloadRules } from "./core/workload/rules.ts";
import { openJetstreamStore } from "./store/jetstream/jetstream-store.ts";
import { SimulatedLog } from "./store/simulated/simulated-log.ts";
import type { Store } from "./store/store.ts";

export { Authority, MandateError };

/** A clock that stands still until it is set; it may be set back. */
export class TestClock implements Clock {
  #now: number;
  readonly #listeners = new Set<() => void>();

  constructor(now: number) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  /** Sets the time, epoch ms. */
  set(now: number): void {
    this.#now = now;
    for (const listener of this.#listeners) listener();
  }

  /** Moves the time, ms. */
  advance(byMs: number): void {
    this.set(this.#now + byMs);
  }

  /** Tells whenever the time is set. */
  onSet(listener: () => void): void {
    this.#listeners.add(listener);
  }
}

export interface TestClusterOptions {
  /** How many authorities share the store; 1 if absent. */
  readonly nodes?: number;
  /** The clock's first reading, epoch ms; 0 if absent. */
  readonly now?: number;
  /** `memory`, the default: everything in this process. `jetstream`: a real nats-server, found or fetched. */
  readonly store?: "memory" | "jetstream";
  readonly shards?: number;
  readonly rules?: Partial<WorkloadRules>;
}

/** Several authorities over one store, with a clock of its own and no background passes (contract 6.1). */
export interface TestCluster {
  readonly clock: TestClock;
  readonly nodes: readonly Authority[];
  /** The node's view stops following the store until {@link TestCluster.release}. */
  hold(node: Authority): Promise<void>;
  /** The node's view takes in what it missed. */
  release(node: Authority): Promise<void>;
  /** A fresh view, rebuilt from the store alone. */
  restart(node: Authority): Promise<void>;
  close(): Promise<void>;
}

/** How long a view may take to catch up in a test cluster, ms. */
const CATCH_UP_MS = 10_000;

interface Backing {
  open(nodeId: string): Promise<Store>;
  close(): Promise<void>;
}

function memoryBacking(clock: Clock, shards: number): Backing {
  const log = new SimulatedLog({ clock, shards });
  return { open: () => Promise.resolve(log.client()), close: () => Promise.resolve() };
}

async function jetstreamBacking(shards: number): Promise<Backing> {
  const directory = await mkdtemp(join(tmpdir(), "mandate-test-"));
  const servers = await startNatsCluster({ servers: 1, directory });
  return {
    open: (nodeId) =>
      openJetstreamStore({
        servers: servers.urls,
        epoch: "test",
        shards,
        replicas: 1,
        storage: "memory",
        create: true,
        clientId: nodeId,
      }),
    close: async () => {
      await servers.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const awaitCaughtUp = async (node: Authority): Promise<void> => {
  if (!(await node.caughtUp(CATCH_UP_MS)))
    throw new MandateError("AUTHORITY_NOT_READY", "the view did not catch up with the store");
};

/** Starts a test cluster; close it when done. */
export async function createTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const { nodes: count = 1, now = 0, store: kind = "memory", shards = 1, rules } = options;
  const clock = new TestClock(now);
  const backing = kind === "memory" ? memoryBacking(clock, shards) : await jetstreamBacking(shards);
  const stores: Store[] = [];
  const nodes: Authority[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.close()));
    await Promise.all(stores.map((store) => store.close()));
    await backing.close();
  };
  try {
    for (let index = 1; index <= count; index++) {
      const nodeId = `node-${index}`;
      const store = await backing.open(nodeId);
      stores.push(store);
      const nonce = randomBytes(4).toString("hex");
      const node = new Authority({
        store,
        nodeId,
        nonce,
        clock,
        log: silentLog,
        ...(rules === undefined ? {} : { rules }),
      });
      clock.onSet(() => node.clockMoved());
      nodes.push(node);
      node.open();
      await awaitCaughtUp(node);
    }
  } catch (cause) {
    await close();
    throw cause;
  }
  return {
    clock,
    nodes,
    hold: (node) => {
      node.holdView();
      return Promise.resolve();
    },
    release: (node) => {
      node.releaseView();
      return awaitCaughtUp(node);
    },
    restart: async (node) => {
      await node.resync();
      await awaitCaughtUp(node);
    },
    close,
  };
}
