import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { Check } from "../doctor/check.ts";
import { examineServers, standingFailures, type DoctorOptions } from "../doctor/doctor.ts";
import { checkStore } from "../doctor/store-checks.ts";
import { openJetstreamStore, type JetstreamStore } from "../store/jetstream/jetstream-store.ts";
import { StoreRefusal } from "../store/jetstream/store-refusal.ts";
import { StoreUnavailable } from "../store/store.ts";
import { natsConnectionOf } from "./nats-login.ts";
import { GrowingPause } from "./growing-pause.ts";
import { NodeRefusal } from "./node-error.ts";
import { StoreMemory } from "./store-memory.ts";

/** Between two looks for a store that is away, ms. */
const LOOK_AGAIN_MS = 1_000;
const OPEN_TIMEOUT_MS = 5_000;

/** What doctor needs to know of a configuration. */
export const doctorOptionsOf = (config: Config): DoctorOptions => ({
  servers: config.natsServers,
  connection: natsConnectionOf(config),
  monitorUrls: config.monitorUrls,
  sync: config.sync,
  storage: config.storage,
  clockSkewMaxMs: config.clockSkewMaxMs,
  epoch: config.epoch,
  shards: config.shards,
  replicas: config.replicas,
});

function logChecks(log: Log, checks: readonly Check[]): void {
  for (const { name, verdict, explanation } of checks)
    if (verdict === "warning") log.warn({ check: name }, explanation);
    else if (verdict === "failure") log.error({ check: name }, explanation);
}

/** @throws NodeRefusal when a check failed that is not allowed by name. */
function refuseFailures(checks: readonly Check[], config: Config): void {
  const failures = standingFailures(checks, config.allow);
  if (failures.length === 0) return;
  const told = failures.map(({ name, explanation }) => `${name}: ${explanation}`).join("\n");
  throw new NodeRefusal(
    `${told}\nThe node does not start. Mend this, or start with --allow ${failures.map(({ name }) => name).join(",")}`,
  );
}

export interface OpenNodeStoreOptions {
  readonly config: Config;
  readonly log: Log;
  readonly onWaiting: (reason: string) => void;
  readonly signal: AbortSignal;
}

/** Waits for the servers and looks at them; a server that is away is waited for, one that is unfit is refused. */
async function awaitServers({ config, log, onWaiting, signal }: OpenNodeStoreOptions): Promise<void> {
  const toldPause = new GrowingPause();
  for (;;) {
    const checks = await examineServers(doctorOptionsOf(config));
    if (checks.length > 1) {
      logChecks(log, checks);
      refuseFailures(checks, config);
      return;
    }
    const cause = checks[0]?.explanation;
    if (toldPause.over())
      log.warn({ servers: config.natsServers, cause }, "no NATS server can be reached; trying again every second");
    onWaiting("no NATS server can be reached");
    await delay(LOOK_AGAIN_MS, undefined, { signal });
  }
}

/**
 * Opens the store, however long it takes for it to be reachable, and looks at all that its safety rests on (contract 5.6).
 *
 * @throws NodeRefusal when an operator must act first. An abort rejects with the signal's reason.
 */
export async function openNodeStore(options: OpenNodeStoreOptions): Promise<JetstreamStore> {
  const { config, log, onWaiting, signal } = options;
  const memory = new StoreMemory(config.stateDirectory);
  await memory.prepare();
  const startedAt = systemClock.now();
  await awaitServers(options);
  const create = !(await memory.hasSeen(config.epoch));
  const connection = natsConnectionOf(config);
  const toldPause = new GrowingPause();
  for (;;) {
    signal.throwIfAborted();
    try {
      const store = await openJetstreamStore({
        servers: config.natsServers,
        connection,
        epoch: config.epoch,
        shards: config.shards,
        replicas: config.replicas,
        storage: config.storage,
        ...(config.history === undefined ? {} : { history: config.history }),
        create,
        clientId: config.nodeId,
        log,
        openTimeoutMs: OPEN_TIMEOUT_MS,
      });
      try {
        const checks = await checkStore(doctorOptionsOf(config));
        logChecks(log, checks);
        refuseFailures(checks, config);
        if (store.meta.createdAt >= startedAt)
          log.warn({ epoch: config.epoch }, "there was no store of this epoch: an empty one has been made");
        await memory.note(config.epoch);
        return store;
      } catch (thrown) {
        await store.close();
        throw thrown;
      }
    } catch (thrown) {
      if (thrown instanceof StoreRefusal) throw refusalOf(thrown, memory.file);
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      if (toldPause.over())
        log.warn({ cause: thrown.message }, "the store can't be opened yet; trying again every second");
      onWaiting(`the store can't be opened yet: ${thrown.message}`);
      await delay(LOOK_AGAIN_MS, undefined, { signal });
    }
  }
}

function refusalOf(refusal: StoreRefusal, memoryFile: string | undefined): NodeRefusal {
  const lost =
    refusal.reason === "absent" && memoryFile !== undefined
      ? `\nThis node has seen that store before (${memoryFile}), so it makes no empty one in its place. Restore it, or name a new epoch.`
      : "";
  return new NodeRefusal(`the store can't be used: ${refusal.message}${lost}`, { cause: refusal });
}
