/**
 * Goal: of a worker or a pool that was removed nothing stays in the store for good (contract 5.2).
 * Method: what the log holds after the removal, in virtual time.
 */
import { expect, it } from "vitest";
import { decodePool, decodeSlot, decodeWorker } from "../../../src/wire/worker-codec.ts";
import { fenceOf } from "./stage.ts";
import { MINUTE, scope, World } from "./virtual-world.ts";

/** Keys of the registry that hold something other than the mark of what was removed, which vanishes by itself. */
function leftIn(world: World): readonly string[] {
  const readers = { k: decodeWorker, p: decodePool, s: decodeSlot } as const;
  return world.log
    .shard(0)
    .since(0, Object.keys(readers))
    .filter(({ key, value }) => readers[key.charAt(0) as keyof typeof readers](value)?.value !== undefined)
    .map(({ key }) => key);
}

it("slots go with the worker and with the pool, those that are free", async () => {
  const world = new World();
  const [one] = await world.nodes("n1");
  if (one === undefined) throw new Error("a node");
  const { authority } = one;
  const { workerId } = await world.worker(one, { concurrency: 2 });
  const described = { ...scope, name: "presses", workerIds: [workerId], maxConcurrency: 3 };
  const { poolId } = await world.settle(authority.createPool(described));
  for (let index = 0; index < 3; index++) await world.settle(authority.admit(world.request({ placement: { poolId } })));
  const next = { ...scope, workerId, leaseMs: MINUTE, max: 2, start: true };
  const claims = [...(await world.settle(authority.claimNext(next)))];
  const [first, second] = claims;
  if (first === undefined || second === undefined) throw new Error("two claims");
  await world.settle(authority.complete({ ...fenceOf(first), output: 1 }));
  await world.settle(authority.deletePool({ ...scope, poolId }));
  expect(leftIn(world).filter((key) => key.includes(poolId))).toHaveLength(1);
  await world.settle(authority.complete({ ...fenceOf(second), output: 1 }));
  await world.settle(authority.removeWorker({ ...scope, workerId }));
  expect(leftIn(world).filter((key) => key.includes(workerId))).toEqual([]);
  // The same worker again: its slots are as good as new.
  await world.worker(one, { concurrency: 2 });
  await world.settle(authority.admit(world.request()));
  expect(await world.settle(authority.claimNext(next))).toHaveLength(1);
});
