/**
 * Goal: what the commit of a claim insists on is what its slot was chosen by, whatever the view has come to meanwhile.
 * Method: slots over a view of the simulated store, between whose choice and commit another writer commits.
 */
import { afterEach, describe, expect, it } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import { systemTimers } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Slots, type HeldValue } from "../../../src/authority/slots.ts";
import type { WorkerRecord } from "../../../src/core/worker/record.ts";
import { slotKey, workerKey } from "../../../src/store/keys.ts";
import { Projection } from "../../../src/store/projection/projection.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import type { CommitOutcome, Put } from "../../../src/store/store.ts";
import { encodeSlot, encodeWorker } from "../../../src/wire/worker-codec.ts";
import { running } from "../core/fixtures.ts";
import { registered } from "../worker/fixtures.ts";

class Desk {
  readonly #store = new SimulatedLog({ clock: { now: () => 1_000_000 }, shards: 1 }).client();
  readonly projection = new Projection({
    store: this.#store,
    log: silentLog,
    now: () => 1_000_000,
    timers: systemTimers,
    onReady: () => undefined,
    onLater: () => undefined,
  });
  readonly slots = new Slots(this.projection, "n1");
  #operations = 0;

  constructor() {
    this.projection.start();
  }

  async commit(
    puts: readonly Put[],
    asserts: readonly { key: string; revision: number }[] = [],
  ): Promise<CommitOutcome> {
    const [shard] = this.#store.shards;
    assert(shard !== undefined, "there is a shard");
    return shard.commit({ operationId: `:0:o${(this.#operations += 1)}`, puts, asserts });
  }

  /** Commits, and waits until the view has seen it. */
  async see(...puts: readonly Put[]): Promise<void> {
    const outcome = await this.commit(puts);
    assert(outcome.kind === "committed", `it was ${outcome.kind}`);
    expect(await this.projection.waitFor(0, Math.max(...outcome.revisions), 5000)).toBe(true);
  }

  worker(record: WorkerRecord): HeldValue<WorkerRecord> {
    const held = this.projection.registry.workers.get(workerKey(record, record.workerId));
    assert(held?.value !== undefined, "the view has the worker");
    return { ...held, value: held.value };
  }
}

const workerPut = (record: WorkerRecord, base: Put["base"]): Put => ({
  key: workerKey(record, record.workerId),
  value: encodeWorker(record),
  base,
});

describe("a slot that is about to be taken", () => {
  const record = registered({ concurrency: 1 });
  const claim = running().currentClaim;
  assert(claim !== undefined, "work that runs has a claim");
  let desk = new Desk();

  afterEach(async () => {
    await desk.projection.stop();
    desk = new Desk();
  });

  it("is not taken from a claim that got it in between", async () => {
    await desk.see(workerPut(record, "absent"));
    const grab = desk.slots.grab(desk.worker(record), undefined);
    assert(grab !== undefined, "a slot is free");
    const { workerId } = record;
    const held = { claimId: "claim_other", workloadId: "workload_other", workerId, incarnation: 1 };
    const key = slotKey(record, workerId, 0);
    await desk.see({ key, value: encodeSlot({ ownerId: workerId, index: 0, held }), base: "absent" });
    expect((await desk.commit(grab.putsFor(claim), grab.asserts)).kind).toBe("refused");
    expect(desk.slots.of(record, workerId)).toMatchObject([{ held: { claimId: "claim_other" } }]);
  });

  it("is not taken by a worker that has changed in between", async () => {
    await desk.see(workerPut(record, "absent"));
    const grab = desk.slots.grab(desk.worker(record), undefined);
    assert(grab !== undefined, "a slot is free");
    await desk.see(workerPut({ ...record, lifecycle: "DRAINING" }, desk.worker(record)));
    expect((await desk.commit(grab.putsFor(claim), grab.asserts)).kind).toBe("refused");
  });

  it("is not chosen while the view may not have every claim that came before the worker's record", async () => {
    await desk.see(workerPut(record, "absent"));
    const held = desk.worker(record);
    const later = { key: held.key, value: encodeWorker(record), revision: 99, operations: [], at: 0, provenance: {} };
    desk.projection.adoptEntry(0, later);
    expect(desk.slots.grab(desk.worker(record), undefined)).toBeUndefined();
  });
});

describe("the slots of a worker", () => {
  it("are put together once for each change, not for each look", async () => {
    const desk = new Desk();
    const { workerId } = registered();
    const scope = registered();
    const key = slotKey(scope, workerId, 0);
    await desk.see({ key, value: encodeSlot({ ownerId: workerId, index: 0 }), base: "absent" });
    const before = desk.slots.of(scope, workerId);
    expect(before).toEqual([{ ownerId: workerId, index: 0 }]);
    expect(desk.slots.of(scope, workerId)).toBe(before);
    await desk.see({
      key: slotKey(scope, workerId, 1),
      value: encodeSlot({ ownerId: workerId, index: 1 }),
      base: "absent",
    });
    expect(desk.slots.of(scope, workerId)).toHaveLength(2);
    desk.projection.registry.forget(key, desk.projection.registry.revisionOf(key));
    expect(desk.slots.of(scope, workerId)).toEqual([{ ownerId: workerId, index: 1 }]);
    desk.projection.registry.forgetShard(0);
    expect(desk.slots.of(scope, workerId)).toEqual([]);
    await desk.projection.stop();
  });
});
