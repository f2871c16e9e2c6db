/**
 * Goal: nodes that drain one queue rarely want the same, and a worker that is alone is never made to wait for nobody.
 * Method: one picker over a queue of equals, told by hand what other nodes do; the time is set by hand.
 */
import { describe, expect, it } from "vitest";
import { QueuePicker, queueHashOf } from "../../../src/authority/queue-picker.ts";
import { ownerOf } from "../../../src/authority/spread.ts";
import { abilityOf } from "../../../src/store/projection/ability.ts";
import { queueOf, ReadyQueues } from "../../../src/store/projection/ready-queues.ts";
import { admitted, T0 } from "../core/fixtures.ts";

const queue = queueOf(admitted());
const nodes = ["here", "there", "elsewhere"];

interface Stage {
  readonly picker: QueuePicker;
  readonly clock: { now: number };
  /** What nodes said of waiting workers. */
  readonly waiting: { nodeId: string; ageMs: number }[];
  /** Owners of what is picked for a worker, in the order of the pick. */
  readonly owners: (
    workerId: string,
    options: { readonly max?: number; readonly steal?: boolean },
  ) => (string | undefined)[];
}

function stage(size: number, living: readonly string[] = []): Stage {
  const ready = new ReadyQueues({ onReady: () => undefined, onLater: () => undefined });
  for (let index = 0; index < size; index++)
    ready.file(admitted({ idempotencyKey: `key-${index}` }, T0 + index), { now: T0 + size, dependencies: new Map() });
  const clock = { now: 10_000 };
  const waiting: Stage["waiting"] = [];
  const picker = new QueuePicker({
    nodeId: "here",
    ready,
    waitingNodes: (hash) => (hash === queueHashOf(queue) ? waiting : []),
    livingNodes: () => living,
    monotonic: () => clock.now,
    spread: true,
  });
  return {
    picker,
    clock,
    waiting,
    owners: (workerId, { max = 1, steal = false }) => {
      const picked = picker.pick({ queue, workerId, ability: abilityOf([]), max, steal });
      picker.done(picked);
      return picked.map((rank) => ownerOf(rank.workloadId, nodes));
    },
  };
}

const only = (owners: readonly (string | undefined)[]): readonly (string | undefined)[] => [...new Set(owners)];

describe("a picker", () => {
  it("asks nothing about a worker that has no room", () => {
    const { picker } = stage(40);
    const accepts = (): boolean => expect.fail("it was asked what it can do");
    expect(picker.pick({ queue, workerId: "w", ability: { name: "", accepts }, max: 0, steal: true })).toEqual([]);
  });

  it("leaves others their share while they are seen claiming for other workers", () => {
    const { picker, clock, owners } = stage(40);
    picker.noteClaim(queue, "there", "w-there");
    picker.noteClaim(queue, "elsewhere", "w-elsewhere");
    expect(picker.isShared(queue, "w")).toBe(true);
    expect(only(owners("w", { max: 40 }))).toEqual(["here"]);
    clock.now += 1001;
    expect(picker.isShared(queue, "w")).toBe(false);
    expect(owners("w", { max: 40 })).toHaveLength(40);
  });

  it("counts a node that claimed for others as well, whoever came last", () => {
    const { picker, clock, owners } = stage(40);
    picker.noteClaim(queue, "elsewhere", "w-elsewhere");
    picker.noteClaim(queue, "there", "another");
    picker.noteClaim(queue, "there", "w");
    picker.noteClaim(queue, "there", "w");
    expect(only(owners("w", { max: 40 }))).toEqual(["here"]);
    clock.now += 900;
    picker.noteClaim(queue, "there", "w");
    clock.now += 200;
    expect(picker.isShared(queue, "w")).toBe(false);
    expect(picker.isShared(queue, "another")).toBe(true);
  });

  it("leaves nothing to a node that claims only for the worker that asks here now", () => {
    const { picker, waiting, owners } = stage(40);
    picker.noteClaim(queue, "there", "w");
    expect(picker.isShared(queue, "w")).toBe(false);
    expect(owners("w", { max: 40 })).toHaveLength(40);
    waiting.push({ nodeId: "there", ageMs: 500 });
    expect(picker.isShared(queue, "w")).toBe(false);
    expect(picker.isShared(queue, "another")).toBe(true);
  });

  it("believes a node that said after its last claim that workers wait there", () => {
    const { picker, clock, waiting } = stage(40);
    picker.noteClaim(queue, "there", "w");
    clock.now += 300;
    waiting.push({ nodeId: "there", ageMs: 100 });
    expect(picker.isShared(queue, "w")).toBe(true);
  });

  it("begins a deep queue with its own share, though nobody has been seen in it yet", () => {
    const { owners } = stage(200, ["there", "elsewhere"]);
    expect(only(owners("w", { max: 20, steal: true }))).toEqual(["here"]);
  });

  it("goes on with what belongs to nodes that are alive and do nothing, and leaves alone what others are at work on", () => {
    const { picker, owners } = stage(100, ["there", "elsewhere"]);
    picker.noteClaim(queue, "there", "w-there");
    const picked = owners("w", { max: 100 });
    expect(only(picked)).toEqual(["here"]);
    const { picker: other, owners: ownersOfOther } = stage(100, ["there", "elsewhere"]);
    other.noteClaim(queue, "there", "w-there");
    other.pick({ queue, workerId: "w", ability: abilityOf([]), max: picked.length, steal: false });
    expect(only(ownersOfOther("w", { max: 100 }))).toEqual(["elsewhere"]);
  });

  it("passes nothing over for long: what is left lying at the head is taken first", () => {
    const { picker, clock } = stage(40);
    picker.noteClaim(queue, "there", "w-there");
    picker.noteClaim(queue, "elsewhere", "w-elsewhere");
    const pick = (): string | undefined =>
      picker.pick({ queue, workerId: "w", ability: abilityOf([]), max: 1, steal: false })[0]?.workloadId;
    const ids = Array.from({ length: 40 }, (_, index) => admitted({ idempotencyKey: `key-${index}` }).workloadId);
    const left = ids.find((id) => ownerOf(id, nodes) !== "here");
    expect(pick()).not.toBe(left);
    clock.now += 8 * 15;
    expect(pick()).not.toBe(left);
    clock.now += 1;
    expect(pick()).toBe(left);
  });

  it("begins a shallow queue at its head", () => {
    const { owners } = stage(20, ["there", "elsewhere"]);
    expect(owners("w", { max: 20, steal: true })).toHaveLength(20);
  });

  it("waits for others the longer, the longer claims take, within bounds", () => {
    const { picker } = stage(1);
    expect(picker.stealAfterMs()).toBe(15);
    for (let round = 0; round < 100; round++) picker.noteDuration(20);
    expect(picker.stealAfterMs()).toBeCloseTo(60, 0);
    for (let round = 0; round < 100; round++) picker.noteDuration(5000);
    expect(picker.stealAfterMs()).toBe(100);
    for (let round = 0; round < 200; round++) picker.noteDuration(1);
    expect(picker.stealAfterMs()).toBe(15);
  });

  it("leaves it the shortest time again once nothing has been claimed for a while, however long claims took under load", () => {
    const { picker, clock } = stage(1);
    for (let round = 0; round < 100; round++) picker.noteDuration(5000);
    clock.now += 1000;
    expect(picker.stealAfterMs()).toBe(100);
    clock.now += 1;
    expect(picker.stealAfterMs()).toBe(15);
    picker.noteDuration(2);
    expect(picker.stealAfterMs()).toBe(15);
  });
});
