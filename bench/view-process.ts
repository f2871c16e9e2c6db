/** A fresh node's view, loaded once in a process of its own: how long it takes and what it weighs. */
import { monotonicMs, systemTimers } from "../src/base/clock.ts";
import { silentLog } from "../src/base/log.ts";
import { Projection } from "../src/store/projection/projection.ts";
import { poll } from "../cluster/poll.ts";
import type { Store } from "../src/store/store.ts";
import { openStore, type StoreAddress } from "./store-access.ts";

export interface ViewFigures {
  readonly records: number;
  readonly elapsedMs: number;
  /** How long the same process took to be delivered the same entries without a view. */
  readonly bareMs: number;
  /** What the view added to the process, bytes: the heap after a collection, buffers beside it, and all of it as the system counts. */
  readonly heapBytes: number;
  readonly bufferBytes: number;
  readonly residentBytes: number;
}

const LOAD_TIMEOUT_MS = 600_000;

const settled = (): NodeJS.MemoryUsage => {
  globalThis.gc?.();
  return process.memoryUsage();
};

/** The floor: everything delivered, and nothing made of it. */
async function followBare(store: Store): Promise<number> {
  const from = monotonicMs();
  let bytes = 0;
  let current = false;
  const follower = store.shards[0]?.follow({
    families: ["w"],
    onEntry: ({ value }) => {
      bytes += value.length;
    },
    onState: ({ kind }) => {
      current = kind === "current";
    },
  });
  await poll(() => (current ? bytes : undefined), { timeoutMs: LOAD_TIMEOUT_MS, intervalMs: 5 });
  const elapsedMs = monotonicMs() - from;
  await follower?.stop();
  return elapsedMs;
}

async function load(address: StoreAddress): Promise<ViewFigures> {
  const store = await openStore(address, "bench-view");
  const bareMs = await followBare(store);
  const before = settled();
  const from = monotonicMs();
  const projection = new Projection({
    store,
    log: silentLog,
    now: () => Date.now(),
    onReady: () => undefined,
    onLater: () => undefined,
    timers: systemTimers,
  });
  projection.start();
  await poll(() => (projection.isCurrent() ? true : undefined), { timeoutMs: LOAD_TIMEOUT_MS, intervalMs: 5 });
  const elapsedMs = monotonicMs() - from;
  const after = settled();
  const records = projection.index.size;
  await projection.stop();
  await store.close();
  return {
    records,
    elapsedMs,
    bareMs,
    heapBytes: after.heapUsed - before.heapUsed,
    bufferBytes: after.external - before.external,
    residentBytes: after.rss - before.rss,
  };
}

if (process.send !== undefined)
  process.once("message", (address: StoreAddress) => {
    void load(address).then((figures) => process.send?.(figures, () => process.exit(0)));
  });
