/**
 * Goal: what is easily overlooked on a bad day: an answer that can't be read back after its commit, a long poll that begins
 * while its node stops, a server whose clock is off, an outage that nobody asked about.
 * Method: nodes with all their background work over the simulated store, in virtual time; each fault is timed exactly.
 */
import { describe, expect, it } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import type { ChangeEvent } from "../../../src/authority/api.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import type { VirtualNode } from "../../simulation/virtual-node.ts";
import { fenceOf, refusal, type FenceArguments } from "./stage.ts";
import { HOUR, MINUTE, scope, World } from "./virtual-world.ts";

const large = "x".repeat(10_000);

describe("an answer that can't be read back after its commit", () => {
  /** A node that loses the store as soon as it has committed what is named. */
  const nodeThatLoses = async (world: World, action: string): Promise<VirtualNode> => {
    let node: VirtualNode | undefined;
    const onCommit = (done: string): void => {
      if (done === action) node?.client.setFaults({ replyLost: 1 });
    };
    node = world.node("n1", { options: { onCommit } });
    await node.becomeReady();
    return node;
  };

  const calls: readonly (readonly [string, (node: VirtualNode, fence: FenceArguments) => Promise<unknown>])[] = [
    ["complete", ({ authority }, fence) => authority.complete({ ...fence, output: large })],
    ["checkpoint", ({ authority }, fence) => authority.checkpoint({ ...fence, state: large })],
  ];

  it.each(calls)("is answered all the same by %s", async (action, call) => {
    const world = new World();
    const node = await nodeThatLoses(world, action);
    const claim = await world.running(node, MINUTE);
    const answer = await world.settle(call(node, fenceOf(claim)));
    expect(JSON.stringify(answer)).toContain(large);
  });

  it("is never said not to have happened, when a replayed admission's result can't be read", async () => {
    const world = new World();
    const node = await nodeThatLoses(world, "none");
    const request = world.request({ input: large });
    const { workload } = await world.settle(node.authority.admit(request));
    const claims = node.authority.claim({
      workloadId: workload.workloadId,
      workerId: "w",
      leaseMs: MINUTE,
      start: true,
    });
    const claim = await world.settle(claims);
    await world.settle(node.authority.complete({ ...fenceOf(claim), output: large }));
    node.client.setFaults({ delayMs: [2, 2] });
    const replay = node.authority.admit(request);
    // Time enough for the record itself to be read, and not for what is kept beside it.
    await world.queue.advance(5);
    node.client.setFaults({ replyLost: 1 });
    const error = await refusal(world.settle(replay));
    expect(error).toMatchObject({ code: "WORKLOAD_OUTCOME_UNKNOWN", definite: false, retry: true });
  });
});

describe("a long poll", () => {
  it.each(Array.from({ length: 24 }, (_, index) => index))(
    "that was asked for %i ms before its node stops holds nothing up",
    async (beforeMs) => {
      const world = new World();
      const [node] = await world.nodes("n1");
      assert(node !== undefined, "the node is there");
      const poll = node.authority.claimNext({
        ...scope,
        workerId: "w",
        leaseMs: MINUTE,
        waitMs: 60_000,
        requestId: "r1",
      });
      await world.queue.advance(beforeMs);
      const closed = node.authority.close();
      const { value, tookMs } = await world.timed(poll);
      expect(value).toEqual([]);
      expect(tookMs).toBeLessThan(5000);
      await world.settle(closed);
    },
  );
});

describe("a server whose clock is off while it leads", () => {
  it.each([HOUR, -HOUR])("by %i ms moves nothing, then or later", async (offMs) => {
    const world = new World();
    const [one, two] = await world.nodes("n1", "n2");
    assert(one !== undefined && two !== undefined, "the nodes are there");
    const claim = await world.running(one, 10 * MINUTE, { timeouts: { executionMs: 30 * MINUTE } });
    const early = world.request({ notBefore: world.queue.now() + 30 * MINUTE });
    const { workload } = await world.settle(one.authority.admit(early));
    world.serverOffsetMs = offMs;
    await world.queue.advance(15_000);
    for (const node of [one, two]) expect(node.readiness().ready).toBe(false);
    world.serverOffsetMs = 0;
    await world.queue.advance(3000);
    for (const node of [one, two]) await node.becomeReady(20_000);
    await world.queue.advance(60_000);
    expect(await world.stateOf(two, claim.workloadId)).toBe("RUNNING");
    const call = two.authority.claim({ workloadId: workload.workloadId, workerId: "w", leaseMs: MINUTE });
    expect((await refusal(world.settle(call))).code).toBe("WORKLOAD_NOT_YET_ELIGIBLE");
    const beat = await world.settle(one.authority.heartbeat({ ...fenceOf(claim), extendMs: 20_000 }));
    expect(Math.abs(beat.claim.expiresAt - world.queue.now() - 20_000)).toBeLessThan(1000);
  });
});

describe("an outage that nobody asked about", () => {
  it("counts as one all the same: a lease that nobody could renew in it goes on", async () => {
    const world = new World();
    // Passes so rare that none runs during the outage, and one soon after it.
    const node = world.node("n1", { options: { passIntervalMs: 15_000 } });
    await node.becomeReady();
    await world.queue.advance(60_000);
    const claim = await world.running(node, 6000);
    world.log.beginOutage();
    await world.queue.advance(10_000);
    world.log.endOutage();
    await world.queue.advance(6000);
    expect(await world.stateOf(node, claim.workloadId)).toBe("RUNNING");
    await world.queue.advance(20_000);
    expect(await world.stateOf(node, claim.workloadId)).toBe("READY");
  });
});

describe("a view that is built anew", () => {
  it("loses nobody who watches", async () => {
    const world = new World();
    const [node] = await world.nodes("n1");
    assert(node !== undefined, "the node is there");
    const seen: ChangeEvent[] = [];
    const stop = node.authority.watch((event) => seen.push(event));
    await world.settle(node.authority.resync());
    await node.becomeReady(5000);
    const { workload } = await world.settle(node.authority.admit(world.request()));
    await world.queue.advance(100);
    expect(seen.map(({ workloadId }) => workloadId)).toContain(workload.workloadId);
    stop();
    const count = seen.length;
    await world.settle(node.authority.admit(world.request()));
    await world.queue.advance(100);
    expect(seen).toHaveLength(count);
  });
});

describe("a rival that wins every race", () => {
  it("makes a call end in WORKLOAD_CONFLICT after a bounded number of tries, with nothing of it committed", async () => {
    const world = new World();
    const [rival] = await world.nodes("rival");
    assert(rival !== undefined, "the node is there");
    const claim = await world.running(rival, HOUR);
    const client = world.log.client();
    const [shard] = client.shards;
    assert(shard !== undefined, "there is a shard");
    let tries = 0;
    const commit: typeof shard.commit = async (request, options) => {
      if (request.puts.some(({ key }) => key.startsWith("w."))) {
        tries += 1;
        await rival.authority.heartbeat({ ...fenceOf(claim), extendMs: HOUR });
      }
      return shard.commit(request, options);
    };
    const beaten = world.node("beaten", {
      options: {
        store: {
          shards: [{ index: 0, read: (...asked) => shard.read(...asked), commit, follow: (how) => shard.follow(how) }],
          reachable: () => client.reachable(),
          close: () => client.close(),
        },
      },
    });
    await beaten.becomeReady();
    const { workloadId } = claim;
    const error = await refusal(world.settle(beaten.authority.cancel({ workloadId, actor: "olga" })));
    expect(error).toMatchObject({ code: "WORKLOAD_CONFLICT", definite: true, retry: true, details: { workloadId } });
    expect(tries).toBe(24);
    expect(await world.stateOf(rival, workloadId)).toBe("RUNNING");
  });
});

describe("a store that can hold less than the rules allow", () => {
  it("refuses an output by its size, which the worker can report, and the work ends", async () => {
    const world = new World();
    const limits = { valueBytesMax: 100_000 };
    const log = new SimulatedLog({ clock: world.queue, queue: world.queue, limits });
    const node = world.node("n1", { log });
    await node.becomeReady();
    const claim = await world.running(node, MINUTE, { retryPolicy: { maxAttempts: 1 } });
    const completed = node.authority.complete({ ...fenceOf(claim), output: "x".repeat(200_000) });
    expect(await refusal(world.settle(completed))).toMatchObject({
      code: "WORKLOAD_TOO_LARGE",
      definite: true,
      retry: false,
    });
    const failed = node.authority.fail({ ...fenceOf(claim), kind: "result_rejected", error: "too large" });
    expect(await world.settle(failed)).toEqual({ state: "DEAD_LETTER" });
  });
});
