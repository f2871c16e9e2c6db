import type { ChaosNode } from "../system/nodes.ts";
import { setClock } from "../system/nodes.ts";
import { pause } from "../../src/sdk/backoff.ts";
import type { Planner, World } from "./fault.ts";
import { CREW_OF_NODES, nodeLock, workerLock } from "./processes.ts";

const READY_MS = 20_000;

/** Every node once, one after the other, as an upgrade goes. */
export const rollNodes: Planner = ({ system, draw }) => {
  const nodes = system.nodes.present;
  const signal = draw.chance(0.8) ? "SIGTERM" : "SIGKILL";
  return {
    fault: "rolling-restart",
    target: "nodes",
    locks: [CREW_OF_NODES, ...nodes.map(({ name }) => nodeLock(name))],
    lastMs: 0,
    begin: async () => {
      for (const { kept, process } of nodes) {
        await kept.down(signal);
        await kept.up();
        // It may not be ready while NATS is down: then the next one goes all the same.
        await process.waitReady(READY_MS).catch(() => undefined);
      }
      return { signal };
    },
    end: () => Promise.all(nodes.map(({ kept }) => kept.up())),
  };
};

async function scaleTo(world: World, count: number): Promise<void> {
  const { nodes } = world.system;
  const wanted: readonly ChaosNode[] = nodes.all.slice(0, count);
  for (const { kept, process } of wanted) {
    if (kept.wanted) continue;
    await kept.up();
    await process.waitReady(READY_MS).catch(() => undefined);
    await world.system.announceNodes();
  }
  for (const node of nodes.all.slice(count)) {
    if (!node.kept.wanted) continue;
    await node.kept.down("SIGTERM");
    await world.system.announceNodes();
  }
}

/** Up to the most there may be, and back. */
export const scaleNodes: Planner = (world) => {
  const { shape, nodes } = world.system;
  if (shape.nodesMax <= shape.nodes) return undefined;
  return {
    fault: "scale",
    target: "nodes",
    locks: [CREW_OF_NODES, ...nodes.all.map(({ name }) => nodeLock(name))],
    lastMs: world.draw.whole(2_000, 6_000),
    begin: async () => {
      await scaleTo(world, shape.nodesMax);
      return { to: shape.nodesMax };
    },
    end: () => scaleTo(world, shape.nodes),
  };
};

/** A wall clock that is off: by minutes, so that the node must not serve, or by less than is allowed, so that it may. */
function drawOffset(world: World): number {
  const { draw } = world;
  const size = draw.chance(0.6) ? draw.whole(60_000, 300_000) : draw.whole(200, 1_900);
  return draw.chance(0.5) ? size : -size;
}

export const shiftNodeClock: Planner = (world) => {
  const { system, draw } = world;
  const node = draw.pick(system.nodes.present);
  if (node === undefined) return undefined;
  const offsets = Array.from({ length: draw.whole(1, 3) }, () => drawOffset(world));
  return {
    fault: "clock-node",
    target: node.name,
    locks: [`clock:${node.name}`],
    lastMs: draw.whole(1_000, 5_000),
    begin: async () => {
      for (const offset of offsets) {
        setClock(node.clockFile, offset);
        await pause(draw.whole(300, 1_500));
      }
      return { offsets };
    },
    end: () => {
      setClock(node.clockFile, 0);
      return Promise.resolve();
    },
  };
};

export const shiftWorkerClock: Planner = (world) => {
  const { system, draw } = world;
  const worker = draw.pick(system.crew.workers);
  if (worker === undefined) return undefined;
  const offset = drawOffset(world);
  return {
    fault: "clock-worker",
    target: worker.name,
    locks: [`clock:${workerLock(worker.name)}`],
    lastMs: draw.whole(1_000, 6_000),
    begin: () => {
      setClock(worker.clockFile, offset);
      return Promise.resolve({ offset });
    },
    end: () => {
      setClock(worker.clockFile, 0);
      return Promise.resolve();
    },
  };
};
