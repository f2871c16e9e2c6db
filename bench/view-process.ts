/** A fresh node's view, loaded once in a process of its own: how long it takes and what it weighs. */
import { monotonicMs, systemTimers } from "../src/base/clock.ts";
import { silentLog } from "../src/base/log.ts";
import { Projection } from "../src/store/projection/projection.ts";
import { poll } from "../cluster/poll.ts";
import { openStore, type StoreAddress } from "./store-access.ts";

export interface ViewFigures {
  readonly records: number;
  readonly elapsedMs: number;
  /** What the view added to the process, bytes: after a collection when the process allows one. */
  readonly heapBytes: number;
  readonly residentBytes: number;
}

const LOAD_TIMEOUT_MS = 600_000;

const settled = (): NodeJS.MemoryUsage => {
  globalThis.gc?.();
  return process.memoryUsage();
};

async function load(address: StoreAddress): Promise<ViewFigures> {
  const store = await openStore(address, "bench-view");
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
    heapBytes:
      after.heapUsed + after.external + after.arrayBuffers - before.heapUsed - before.external - before.arrayBuffers,
    residentBytes: after.rss - before.rss,
  };
}

if (process.send !== undefined)
  process.once("message", (address: StoreAddress) => {
    void load(address).then((figures) => process.send?.(figures, () => process.exit(0)));
  });
