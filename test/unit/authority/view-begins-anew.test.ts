/**
 * Goal: nobody is told that a worker does not exist because a node's view was empty for a moment.
 * Method: a view that begins anew at every moment of a call, in virtual time.
 */
import { describe, expect, it } from "vitest";
import { outcomeOf } from "./stage.ts";
import { MINUTE, scope, World } from "./virtual-world.ts";

/** Two nodes, and a worker that may be given work. */
async function worldWithWorker() {
  const world = new World();
  const [one, two] = await world.nodes("n1", "n2");
  if (one === undefined || two === undefined) throw new Error("two nodes");
  const { workerId } = await world.worker(one);
  const { workload } = await world.settle(one.authority.admit(world.request()));
  await world.queue.advance(100);
  /** What a call of the second node comes to whose view begins anew meanwhile. */
  const whileAnew = async (call: Promise<unknown>, delayMs: number): ReturnType<typeof outcomeOf> => {
    const outcome = outcomeOf(call);
    await world.queue.advance(delayMs);
    two.client.resetFollowers("the stream was made anew");
    return world.queue.settle(outcome, MINUTE);
  };
  return { node: two.authority, workerId, workloadId: workload.workloadId, whileAnew };
}

describe.each(Array.from({ length: 30 }, (_, delayMs) => delayMs))(
  "a view that begins anew %i ms after the question",
  (delayMs) => {
    it("does not make work unplaceable", async () => {
      const { node, workerId, workloadId, whileAnew } = await worldWithWorker();
      const outcome = await whileAnew(node.place({ ...scope, workloadId }), delayMs);
      if ("code" in outcome) expect(outcome.code).toBe("AUTHORITY_NOT_READY");
      else expect(outcome.answer).toMatchObject({ selectedWorker: workerId });
    });

    it("does not make a member of a pool unknown", async () => {
      const { node, workerId, whileAnew } = await worldWithWorker();
      const outcome = await whileAnew(node.createPool({ ...scope, name: "presses", workerIds: [workerId] }), delayMs);
      if ("code" in outcome) expect(outcome.code).toBe("AUTHORITY_NOT_READY");
      else expect(outcome.answer).toMatchObject({ workerIds: [workerId] });
    });

    it("does not make a worker unknown that is to be removed", async () => {
      const { node, workerId, whileAnew } = await worldWithWorker();
      const outcome = await whileAnew(node.removeWorker({ ...scope, workerId }), delayMs);
      if ("code" in outcome) expect(outcome.code).toBe("AUTHORITY_NOT_READY");
      else expect(outcome.answer).toMatchObject({ workerId });
    });
  },
);
