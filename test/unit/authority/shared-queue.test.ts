/**
 * Goal: work that is left to another node for a moment is not left to it for long, whoever could take it by then.
 * Method: two nodes that share a queue, in virtual time, and work that is known to be the other's.
 */
import { describe, expect, it } from "vitest";
import { ownerOf } from "../../../src/authority/spread.ts";
import type { VirtualNode } from "../../simulation/virtual-node.ts";
import { fenceOf } from "./stage.ts";
import { MINUTE, scope, World } from "./virtual-world.ts";

/** Admits work that is the share of one of the two nodes. */
async function admittedFor(world: World, { authority }: VirtualNode, owner: "n1" | "n2"): Promise<string> {
  for (;;) {
    const { workload } = await world.settle(authority.admit(world.request({ capabilities: ["gpu"] })));
    const { workloadId } = workload;
    if (ownerOf(workloadId, ["n1", "n2"]) === owner) return workloadId;
    await world.settle(authority.cancel({ workloadId, actor: "billing" }));
  }
}

describe("a worker whose place goes free", () => {
  it("is given what another node may take first, though its own node found it full when it looked", async () => {
    const world = new World();
    const [one, two] = await world.nodes("n1", "n2");
    if (one === undefined || two === undefined) throw new Error("two nodes");
    const { workerId } = await world.worker(one, { name: "gpu", declaredCapabilities: ["gpu"] });
    const plain = await world.worker(one, { name: "plain" });
    const next = { ...scope, leaseMs: MINUTE };
    await admittedFor(world, one, "n1");
    const [held] = await world.settle(one.authority.claimNext({ ...next, workerId, start: true }));
    if (held === undefined) throw new Error("the work was there");
    // Somebody waits at the other node, so that it has its share of the queue.
    const polled = two.authority.claimNext({ ...next, workerId: plain.workerId, waitMs: 20_000 });
    await world.queue.advance(2500);
    const waiting = one.authority.claimNext({ ...next, workerId, waitMs: 15_000 });
    await world.queue.advance(300);
    const workloadId = await admittedFor(world, one, "n2");
    await world.queue.advance(1000);
    await world.settle(one.authority.complete({ ...fenceOf(held), output: 1 }));
    const { value, tookMs } = await world.timed(waiting);
    expect(value).toMatchObject([{ workloadId }]);
    expect(tookMs).toBeLessThan(1000);
    await world.settle(polled);
  });
});
