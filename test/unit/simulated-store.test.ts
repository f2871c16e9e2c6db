/**
 * Goal: each fault of the simulated store does what its name says, when it is asked for and not otherwise; virtual time
 * runs in order, and costs nothing when it drives itself.
 * Method: one fault at a time at probability 1, or one call on the log, in virtual time driven by the test.
 */
import { describe, expect, it } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { EventQueue } from "../../src/store/simulated/event-queue.ts";
import { noFaults } from "../../src/store/simulated/faults.ts";
import type { Faults } from "../../src/store/simulated/faults.ts";
import { SimulatedLog } from "../../src/store/simulated/simulated-log.ts";
import type { SimulatedStore } from "../../src/store/simulated/simulated-store.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import type { Commit, FollowState, Shard } from "../../src/store/store.ts";

const commitOf = (operationId: string, key = "w.a"): Commit => ({
  operationId,
  puts: [{ key, value: utf8(operationId), base: "absent" }],
});

interface World {
  readonly queue: EventQueue;
  readonly log: SimulatedLog;
  readonly client: SimulatedStore;
  readonly shard: Shard;
}

function world(faults: Partial<Faults> = {}): World {
  const queue = new EventQueue();
  const log = new SimulatedLog({ clock: queue, queue, seed: 3, history: true });
  const client = log.client({ faults });
  const [shard] = client.shards;
  if (shard === undefined) throw new TypeError("no shard");
  return { queue, log, client, shard };
}

interface Followed {
  readonly keys: string[];
  readonly states: FollowState["kind"][];
  cursor(): number;
  resets(): number;
}

function follow(shard: Shard): Followed {
  const keys: string[] = [];
  const states: FollowState["kind"][] = [];
  const follower = shard.follow({
    families: ["w"],
    onEntry: (entry) => keys.push(entry.key),
    onState: (state) => states.push(state.kind),
  });
  return { keys, states, cursor: () => follower.cursor(), resets: () => follower.resets() };
}

describe("virtual time", () => {
  it("runs events in order of their instant, and of scheduling within one", async () => {
    const queue = new EventQueue({ startAt: 100 });
    const ran: string[] = [];
    for (const [delayMs, name] of [
      [5, "c"],
      [1, "a"],
      [5, "d"],
      [3, "b"],
    ] as const)
      queue.after(delayMs, () => ran.push(`${name}${queue.now()}`));
    queue.after(2, () => ran.push("never"))();
    await queue.advance(4);
    expect(ran).toEqual(["a101", "b103"]);
    expect(queue.now()).toBe(104);
    expect(await queue.runUntilIdle()).toBe(true);
    expect(ran).toEqual(["a101", "b103", "c105", "d105"]);
  });

  it("lets the program come to rest between two events", async () => {
    const queue = new EventQueue();
    const ran: string[] = [];
    const sleeper = async (): Promise<void> => {
      await queue.sleep(1);
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
      ran.push("first");
    };
    const both = Promise.all([sleeper(), queue.sleep(1).then(() => ran.push("second"))]);
    await queue.settle(both);
    expect(ran).toEqual(["first", "second"]);
  });

  it("fails when a promise can't be settled", async () => {
    await expect(new EventQueue().settle(new Promise(() => undefined))).rejects.toThrow("not settled");
  });

  it("keeps order while thousands are scheduled and taken back", async () => {
    const queue = new EventQueue();
    const ran: number[] = [];
    for (let index = 0; index < 6000; index += 1) {
      const at = (index * 7919) % 6000;
      const cancel = queue.after(at, () => ran.push(at));
      if (index % 3 !== 0) cancel();
    }
    await queue.runUntilIdle();
    expect(ran).toHaveLength(2000);
    expect(ran).toEqual([...ran].sort((left, right) => left - right));
  });

  it("costs nothing when it drives itself", async () => {
    const queue = new EventQueue({ automatic: true });
    await queue.sleep(86_400_000);
    expect(queue.now()).toBe(86_400_000);
  });
});

describe("a fault of the simulated store", () => {
  it("answers unknown when every reply is lost, though the commit landed", async () => {
    const { queue, log, shard } = world({ replyLost: 1 });
    expect(await queue.settle(shard.commit(commitOf("one")))).toMatchObject({ kind: "unknown" });
    expect(log.history(0)).toHaveLength(1);
  });

  it("answers unknown when every request is lost, and nothing lands", async () => {
    const { queue, log, shard } = world({ requestLost: 1 });
    const started = queue.now();
    const outcome = await queue.settle(shard.commit(commitOf("one"), { deadlineMs: 700 }));
    expect(outcome).toMatchObject({ kind: "unknown" });
    expect(queue.now() - started).toBe(700);
    expect(log.history(0)).toHaveLength(0);
    await expect(queue.settle(shard.read(["w.a"]))).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it("lets a request land after its sender gave it up", async () => {
    const { queue, log, shard } = world({ requestLate: 1, lateMs: [5000, 5000] });
    expect(await queue.settle(shard.commit(commitOf("one"), { deadlineMs: 1000 }))).toMatchObject({ kind: "unknown" });
    expect(log.history(0)).toHaveLength(0);
    await queue.runUntilIdle();
    expect(log.history(0)).toHaveLength(1);
  });

  it("finds the truth behind false refusals", async () => {
    const { queue, log, shard } = world({ falseRefusal: 1 });
    for (let count = 0; count < 20; count += 1) {
      const outcome = await queue.settle(shard.commit(commitOf(`op-${count}`, `w.${count}`)));
      expect(outcome).toEqual({ kind: "committed", revisions: [count + 1] });
    }
    expect(log.history(0)).toHaveLength(20);
  });

  it("answers ordinary reads from the past, fresh ones never", async () => {
    const { queue, client, shard } = world();
    await queue.settle(shard.commit(commitOf("one")));
    client.setFaults({ staleRead: 1 });
    expect((await queue.settle(shard.read(["w.a"]))).size).toBe(0);
    expect((await queue.settle(shard.read(["w.a"], { fresh: true }))).size).toBe(1);
    client.setFaults(noFaults);
    expect((await queue.settle(shard.read(["w.a"]))).size).toBe(1);
  });

  it("keeps requests waiting while the servers are paused, and serves them afterwards", async () => {
    const { queue, log, shard } = world();
    log.pause();
    const outcome = shard.commit(commitOf("one"));
    await queue.advance(3000);
    log.resume();
    expect(await queue.settle(outcome)).toEqual({ kind: "committed", revisions: [1] });
    expect(log.history(0)).toHaveLength(1);
  });

  it("answers at once that nobody is there during an outage, commits until the deadline, and mends itself", async () => {
    const { queue, log, client, shard } = world();
    const followed = follow(shard);
    await queue.runUntilIdle();
    log.beginOutage();
    expect(client.reachable()).toBe(false);
    await expect(queue.settle(shard.read(["w.a"]))).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await queue.settle(shard.commit(commitOf("one")))).toMatchObject({ kind: "unreached" });
    const outcome = shard.commit(commitOf("two"));
    await queue.advance(2000);
    log.endOutage();
    expect(client.reachable()).toBe(true);
    expect(await queue.settle(outcome)).toEqual({ kind: "committed", revisions: [1] });
    await queue.runUntilIdle();
    expect(followed.keys).toEqual(["w.a"]);
    expect(followed.states).toEqual(["loading", "current", "interrupted", "loading", "current"]);
    expect(followed.resets()).toBe(0);
  });

  it("loses what is on its way in a restart, and nothing that was acknowledged", async () => {
    const { queue, log, shard } = world({ delayMs: [10, 10] });
    await queue.settle(shard.commit(commitOf("one")));
    const outcome = shard.commit(commitOf("two", "w.b"));
    await queue.advance(15);
    log.restart();
    expect(await queue.settle(outcome)).toEqual({ kind: "committed", revisions: [2] });
    expect(log.history(0).map((commit) => commit.operationId)).toEqual(["one", "two"]);
  });

  it("cuts off one client and no other, then brings its follower up to date", async () => {
    const { queue, log, client, shard } = world();
    const followed = follow(shard);
    const [other] = log.client().shards;
    await queue.runUntilIdle();
    client.cutOff();
    await queue.settle(other?.commit(commitOf("one")) ?? Promise.reject(new TypeError("no shard")));
    await queue.runUntilIdle();
    expect(followed.keys).toEqual([]);
    client.reconnect();
    await queue.runUntilIdle();
    expect(followed.keys).toEqual(["w.a"]);
    expect(followed.cursor()).toBe(1);
  });

  it("holds a client's view where it is, and hands everything over at the release", async () => {
    const { queue, client, shard } = world();
    const followed = follow(shard);
    await queue.runUntilIdle();
    client.hold();
    await queue.settle(shard.commit(commitOf("one")));
    await queue.settle(shard.commit(commitOf("two", "w.b")));
    await queue.runUntilIdle();
    expect([followed.keys, followed.cursor()]).toEqual([[], 0]);
    client.release();
    expect([followed.keys, followed.cursor()]).toEqual([["w.a", "w.b"], 2]);
    expect(followed.states).toEqual(["loading", "current"]);
  });

  it("makes a follower begin from scratch", async () => {
    const { queue, client, shard } = world();
    await queue.settle(shard.commit(commitOf("one")));
    const followed = follow(shard);
    await queue.runUntilIdle();
    client.resetFollowers("asked for");
    await queue.runUntilIdle();
    expect(followed.keys).toEqual(["w.a", "w.a"]);
    expect(followed.states).toEqual(["loading", "current", "reset", "loading", "current"]);
    expect(followed.resets()).toBe(1);
  });

  it("delivers what got lost on the way, after the loss was noticed", async () => {
    const { queue, client, shard } = world();
    const followed = follow(shard);
    await queue.runUntilIdle();
    client.setFaults({ followLost: 1 });
    await queue.settle(shard.commit(commitOf("one")));
    client.setFaults({ followLost: 0 });
    await queue.settle(shard.commit(commitOf("two", "w.b")));
    expect([followed.keys, followed.cursor()]).toEqual([[], 0]);
    await queue.runUntilIdle();
    expect(followed.keys).toEqual(["w.a", "w.b"]);
    expect(followed.states).toContain("interrupted");
  });

  it("says that a deleted stream is missing, and takes nothing any more", async () => {
    const { queue, log, shard } = world();
    const followed = follow(shard);
    await queue.runUntilIdle();
    log.remove();
    log.endOutage();
    expect(followed.states.at(-1)).toBe("missing");
    expect(await queue.settle(shard.commit(commitOf("one")))).toMatchObject({ kind: "unreached" });
  });
});
