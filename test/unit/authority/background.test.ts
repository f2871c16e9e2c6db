/**
 * Goal: a node serves only while its view is fresh and its clock is right, judges leases by the store's time and only
 * after it could have taken renewals, and does by itself, on time, what has to be done (contract 5.4, 5.5).
 * Method: nodes with all their background work over the simulated store, in virtual time: outages of minutes cost nothing.
 */
import { describe, expect, it } from "vitest";
import type { Claim } from "../../../src/core/workload/record.ts";
import type { VirtualNode } from "../../simulation/virtual-node.ts";
import { fenceOf, refusal, refusedWith } from "./stage.ts";
import { HOUR, MINUTE, reasonsOf, scope, World } from "./virtual-world.ts";

describe("a node that comes and goes", () => {
  it("is not ready before it has seen its own heartbeat, and then is", async () => {
    const world = new World();
    const node = world.node("n1");
    expect(node.readiness().ready).toBe(false);
    const error = await refusal(world.settle(node.authority.admit(world.request())));
    expect(error).toMatchObject({ code: "AUTHORITY_NOT_READY", definite: true, retry: true });
    await node.becomeReady();
    expect(node.readiness()).toMatchObject({ ready: true, reasons: [], clockOffsetMs: expect.any(Number) });
    expect(node.readiness().viewAgeMs).toBeLessThan(1500);
    await world.settle(node.authority.admit(world.request()));
  });

  it("is not ready as soon as the store is known to be away, and back without a restart", async () => {
    const world = new World();
    const [node] = await world.nodes("n1");
    if (node === undefined) return;
    const claim = await world.running(node, MINUTE);
    world.log.beginOutage();
    expect(await refusedWith(world.settle(node.authority.admit(world.request())))).toBe("AUTHORITY_NOT_READY");
    await world.queue.advance(5 * MINUTE);
    expect(reasonsOf(node)).toContain("can't be reached");
    world.log.endOutage();
    await node.becomeReady(5000);
    expect(await world.stateOf(node, claim.workloadId)).toBe("RUNNING");
  });

  it("is not ready once its view is three seconds old, though nobody told it that it hears nothing", async () => {
    const world = new World();
    const [node] = await world.nodes("n1");
    if (node === undefined) return;
    node.client.hold();
    await world.queue.advance(2000);
    expect(node.readiness().ready).toBe(true);
    await world.queue.advance(3000);
    expect(reasonsOf(node)).toContain("ms old");
    node.client.release();
    await world.queue.advance(1500);
    expect(node.readiness().ready).toBe(true);
  });

  it("is not ready while its view is rebuilt, and knows everything afterwards", async () => {
    const world = new World();
    const [one, two] = await world.nodes("n1", "n2");
    if (one === undefined || two === undefined) return;
    const claim = await world.running(one, MINUTE);
    two.client.resetFollowers("the stream was made anew");
    expect(reasonsOf(two)).toContain("loading");
    await two.becomeReady(5000);
    expect(two.authority.counts().get("RUNNING")).toBe(1);
    expect(await world.stateOf(two, claim.workloadId)).toBe("RUNNING");
  });

  it("says that it is going away before it does", async () => {
    const world = new World();
    const [node] = await world.nodes("n1");
    if (node === undefined) return;
    node.authority.drain();
    expect(reasonsOf(node)).toContain("stopping");
    await world.settle(node.authority.close());
  });
});

describe("a node's clock", () => {
  it.each([5 * MINUTE, -5 * MINUTE])(
    "keeps a node from serving when it is %i ms off, and others serve",
    async (offMs) => {
      const world = new World();
      const off = world.node("off", { wallOffsetMs: offMs });
      const [right] = await world.nodes("n1");
      if (right === undefined) return;
      const claim = await world.running(right, 10_000);
      await world.queue.advance(5000);
      expect(off.readiness()).toMatchObject({ ready: false });
      expect(Math.abs((off.readiness().clockOffsetMs ?? 0) - offMs)).toBeLessThan(100);
      expect(await world.stateOf(right, claim.workloadId)).toBe("RUNNING");
      off.wallOffsetMs = 0;
      expect(off.readiness().ready).toBe(true);
    },
  );

  it.each([HOUR, -HOUR])("moves nothing when it steps by %i ms", async (stepMs) => {
    const world = new World();
    const [one, two] = await world.nodes("n1", "n2");
    if (one === undefined || two === undefined) return;
    const claim = await world.running(one, 20_000, { timeouts: { executionMs: 30 * MINUTE } });
    const early = world.request({ notBefore: world.queue.now() + 10 * MINUTE });
    const { workload } = await world.settle(one.authority.admit(early));
    for (const node of [one, two]) node.wallOffsetMs = stepMs;
    await world.queue.advance(10_000);
    for (const node of [one, two]) {
      expect(node.readiness().ready).toBe(false);
      node.wallOffsetMs = 0;
    }
    const beat = await world.settle(one.authority.heartbeat({ ...fenceOf(claim), extendMs: 20_000 }));
    expect(beat.claim.expiresAt - world.queue.now()).toBeGreaterThan(19_000);
    expect(await world.stateOf(two, claim.workloadId)).toBe("RUNNING");
    const call = two.authority.claim({ workloadId: workload.workloadId, workerId: "w", leaseMs: 5 });
    expect(await refusedWith(world.settle(call))).toBe("WORKLOAD_NOT_YET_ELIGIBLE");
  });

  it("stamps what it decides with the store's time, late by a round trip at most", async () => {
    const world = new World();
    const node = world.node("n1", { wallOffsetMs: 1500, rate: 1.0002 });
    await node.becomeReady();
    for (let round = 0; round < 20; round++) {
      const before = world.queue.now();
      const { workload } = await world.settle(node.authority.admit(world.request()));
      expect(workload.createdAt).toBeGreaterThanOrEqual(before - 50);
      expect(workload.createdAt).toBeLessThanOrEqual(world.queue.now() + 1);
      await world.queue.advance(377);
    }
  });
});

describe("leases after the control plane was away", () => {
  it("lets a healthy worker go on after an outage of the store that outlived its lease", async () => {
    const world = new World();
    const [one, two] = await world.nodes("n1", "n2");
    if (one === undefined || two === undefined) return;
    const claim = await world.running(one, 10_000);
    world.log.beginOutage();
    await world.queue.advance(10 * MINUTE);
    world.log.endOutage();
    await two.becomeReady();
    await world.queue.advance(8000);
    const beat = await world.settle(two.authority.heartbeat({ ...fenceOf(claim), extendMs: 10_000 }));
    expect(beat.claim.fencingToken).toBe(1);
    await world.queue.advance(9000);
    const call = one.authority.complete({ ...fenceOf(claim), output: 1 });
    expect(await world.settle(call)).toMatchObject({ provenance: { fencingToken: 1 } });
  });

  it("gives the work of a lost worker to another once the lease could have been renewed for its length", async () => {
    const world = new World();
    const [one] = await world.nodes("n1");
    if (one === undefined) return;
    const { workloadId } = await world.running(one, 10_000);
    world.log.beginOutage();
    await world.queue.advance(10 * MINUTE);
    world.log.endOutage();
    await one.becomeReady();
    await world.queue.advance(8500);
    expect(await world.stateOf(one, workloadId)).toBe("RUNNING");
    await world.queue.advance(3500);
    expect(await world.stateOf(one, workloadId)).toBe("READY");
  });

  it("holds also after all nodes were killed and started again, and for 30 s at most", async () => {
    const world = new World();
    const old = await world.nodes("n1", "n2", "n3");
    const [first] = old;
    if (first === undefined) return;
    const healthy = await world.running(first, 20_000);
    const lost = await world.running(first, 20 * MINUTE);
    for (const node of old) node.kill();
    await world.queue.advance(HOUR);
    const [node] = await world.nodes("n4", "n5", "n6");
    if (node === undefined) return;
    await world.queue.advance(15_000);
    await world.settle(node.authority.heartbeat({ ...fenceOf(healthy), extendMs: 60_000 }));
    expect(await world.stateOf(node, lost.workloadId)).toBe("RUNNING");
    await world.queue.advance(20_000);
    expect(await world.stateOf(node, lost.workloadId)).toBe("READY");
    expect(await world.stateOf(node, healthy.workloadId)).toBe("RUNNING");
  });

  it("takes no lease that was renewed elsewhere while the process was stopped", async () => {
    const world = new World();
    const [one, two] = await world.nodes("n1", "n2");
    if (one === undefined || two === undefined) return;
    const claim = await world.running(one, 10_000);
    two.pause();
    for (let round = 0; round < 20; round++) {
      await world.queue.advance(5000);
      await world.settle(one.authority.heartbeat({ ...fenceOf(claim), extendMs: 10_000 }));
    }
    two.resume();
    expect(two.readiness().ready).toBe(false);
    await two.becomeReady(5000);
    await world.queue.advance(3000);
    expect(await world.stateOf(two, claim.workloadId)).toBe("RUNNING");
  });

  it("holds also after the machine slept, and its clocks with it", async () => {
    const world = new World();
    const [one] = await world.nodes("n1");
    if (one === undefined) return;
    const claim = await world.running(one, 10_000);
    await world.queue.advance(60);
    one.pause();
    await world.queue.advance(10 * MINUTE);
    one.wakeUp();
    await one.becomeReady(5000);
    await world.queue.advance(5000);
    await world.settle(one.authority.heartbeat({ ...fenceOf(claim), extendMs: 10_000 }));
    expect(await world.stateOf(one, claim.workloadId)).toBe("RUNNING");
  });

  it("recovers a lost lease within two seconds on an ordinary day", async () => {
    const world = new World();
    const [one] = await world.nodes("n1", "n2", "n3");
    if (one === undefined) return;
    await world.queue.advance(30_000);
    const { workloadId } = await world.running(one, 5000);
    await world.queue.advance(4900);
    expect(await world.stateOf(one, workloadId)).toBe("RUNNING");
    await world.queue.advance(4000);
    expect(await world.stateOf(one, workloadId)).toBe("READY");
  });
});

describe("what a node does by itself", () => {
  it("hands early work to who waits for it at its instant, also when something earlier arrives meanwhile", async () => {
    const world = new World();
    const [one, two] = await world.nodes("n1", "n2");
    if (one === undefined || two === undefined) return;
    const admit = async (inMs: number): Promise<string> => {
      const request = world.request({ notBefore: world.queue.now() + inMs });
      return (await world.settle(one.authority.admit(request))).workload.workloadId;
    };
    const next = (): Promise<readonly Claim[]> =>
      two.authority.claimNext({ ...scope, workerId: "w", leaseMs: MINUTE, waitMs: 50_000 });
    const late = await admit(25_000);
    const poll = next();
    await world.queue.advance(1000);
    const soon = await admit(4000);
    const first = await world.timed(poll);
    expect(first.value.map(({ workloadId }) => workloadId)).toEqual([soon]);
    expect(first.tookMs).toBeGreaterThan(3900);
    expect(first.tookMs).toBeLessThan(4100);
    const second = await world.timed(next());
    expect(second.value.map(({ workloadId }) => workloadId)).toEqual([late]);
    expect(second.tookMs).toBeLessThan(20_100);
  });

  it("does not hand out at once what is months away", async () => {
    const world = new World();
    const [one] = await world.nodes("n1");
    if (one === undefined) return;
    const notBefore = world.queue.now() + 2_147_483_648 + HOUR;
    const { workload } = await world.settle(one.authority.admit(world.request({ notBefore })));
    const call = one.authority.claimNext({ ...scope, workerId: "w", leaseMs: MINUTE, waitMs: 60_000 });
    expect(await world.timed(call)).toMatchObject({ value: [] });
    expect(await world.stateOf(one, workload.workloadId)).toBe("READY");
  });

  it("passes deadlines on time, and none while it is not ready", async () => {
    const world = new World();
    const [one] = await world.nodes("n1");
    if (one === undefined) return;
    const { workloadId } = await world.running(one, HOUR, { timeouts: { executionMs: 5000 } });
    one.wallOffsetMs = HOUR;
    await world.queue.advance(60_000);
    expect(await world.stateOf(one, workloadId)).toBe("RUNNING");
    one.wallOffsetMs = 0;
    await world.queue.advance(1500);
    expect(await world.stateOf(one, workloadId)).toBe("READY");
  });

  it("shares the queue between nodes that drain it, so that they rarely meet", async () => {
    const world = new World();
    const nodes = await world.nodes("n1", "n2", "n3", "n4");
    const requests = Array.from({ length: 200 }, () => world.request());
    await world.settle(nodes[0]?.authority.admitMany(requests) ?? Promise.resolve([]));
    const taken: string[] = [];
    const drain = async (node: VirtualNode, worker: number): Promise<void> => {
      for (;;) {
        const claims = await node.authority.claimNext({ ...scope, workerId: `w${worker}`, leaseMs: HOUR });
        if (claims.length === 0) return;
        taken.push(...claims.map(({ workloadId }) => workloadId));
      }
    };
    await world.settle(
      Promise.all(nodes.flatMap((node, index) => [drain(node, 2 * index), drain(node, 2 * index + 1)])),
    );
    expect(taken).toHaveLength(200);
    expect(new Set(taken).size).toBe(200);
  });
});
