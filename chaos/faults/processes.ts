import { pause } from "../../src/sdk/backoff.ts";
import type { Kept } from "../system/kept.ts";
import type { RingServer } from "../system/nats-ring.ts";
import { streamOf } from "../system/setting.ts";
import type { PlannedFault, Planner, World } from "./fault.ts";
import { Repeating } from "./repeating.ts";

const nothing = (): Promise<void> => Promise.resolve();

function killing(
  kept: Kept,
  what: { fault: string; lock: string; lastMs: number; signal?: "SIGKILL" | "SIGTERM" },
): PlannedFault {
  return {
    fault: what.fault,
    target: kept.name,
    locks: [what.lock],
    lastMs: what.lastMs,
    begin: () => kept.down(what.signal ?? "SIGKILL"),
    end: () => kept.up(),
  };
}

function pausing(kept: Kept, what: { fault: string; lock: string; lastMs: number }): PlannedFault {
  return {
    fault: what.fault,
    target: kept.name,
    locks: [what.lock],
    lastMs: what.lastMs,
    begin: () => kept.pause(),
    end: () => {
      kept.resume();
      return nothing();
    },
  };
}

export const nodeLock = (name: string): string => `node:${name}`;
export const workerLock = (name: string): string => `worker:${name}`;
export const serverLock = (name: string): string => `nats:${name}`;
/** Whoever changes which nodes there are. */
export const CREW_OF_NODES = "nodes";

export const killNode: Planner = ({ system, draw }) => {
  const node = draw.pick(system.nodes.present);
  if (node === undefined) return undefined;
  const lastMs = draw.chance(0.3) ? 0 : draw.whole(200, 4_000);
  return killing(node.kept, { fault: "kill-node", lock: nodeLock(node.name), lastMs });
};

export const stopNode: Planner = ({ system, draw }) => {
  const node = draw.pick(system.nodes.present);
  if (node === undefined) return undefined;
  const lastMs = draw.whole(0, 2_000);
  return killing(node.kept, { fault: "stop-node", lock: nodeLock(node.name), lastMs, signal: "SIGTERM" });
};

export const pauseNode: Planner = ({ system, draw }) => {
  const node = draw.pick(system.nodes.present);
  if (node === undefined) return undefined;
  return pausing(node.kept, { fault: "pause-node", lock: nodeLock(node.name), lastMs: draw.whole(500, 7_000) });
};

export const killWorker: Planner = ({ system, draw }) => {
  const worker = draw.pick(system.crew.workers);
  if (worker === undefined) return undefined;
  const what = { fault: "kill-worker", lock: workerLock(worker.name), lastMs: draw.whole(0, 4_000) };
  return killing(worker.kept, what);
};

export const stopWorker: Planner = ({ system, draw }) => {
  const worker = draw.pick(system.crew.workers);
  if (worker === undefined) return undefined;
  const what = { fault: "stop-worker", lock: workerLock(worker.name), lastMs: draw.whole(0, 2_000) };
  return killing(worker.kept, { ...what, signal: "SIGTERM" });
};

/** Longer than a lease, mostly: it goes on as if no time had passed. */
export const pauseWorker: Planner = ({ system, draw }) => {
  const worker = draw.pick(system.crew.workers);
  if (worker === undefined) return undefined;
  return pausing(worker.kept, { fault: "pause-worker", lock: workerLock(worker.name), lastMs: draw.whole(800, 8_000) });
};

async function leaderOrFollower(world: World): Promise<{ server: RingServer; role: "leader" | "follower" }> {
  const { system, draw } = world;
  const leader = await system.ring.someLeader(streamOf(draw.whole(0, system.shape.shards - 1)));
  const followers = system.ring.servers.filter(({ name }) => name !== leader.name);
  const follower = draw.pick(followers);
  return follower === undefined || draw.chance(0.6)
    ? { server: leader, role: "leader" }
    : { server: follower, role: "follower" };
}

export const killServer: Planner = async (world) => {
  const { server, role } = await leaderOrFollower(world);
  const lastMs = world.draw.whole(0, 6_000);
  return killing(server.kept, { fault: `kill-nats-${role}`, lock: serverLock(server.name), lastMs });
};

/** In good order, as for an upgrade. */
export const stopServer: Planner = async (world) => {
  const { server, role } = await leaderOrFollower(world);
  const what = { fault: `stop-nats-${role}`, lock: serverLock(server.name), lastMs: world.draw.whole(0, 3_000) };
  return killing(server.kept, { ...what, signal: "SIGTERM" });
};

export const pauseServer: Planner = async (world) => {
  const { server, role } = await leaderOrFollower(world);
  const lastMs = world.draw.whole(400, 9_000);
  return pausing(server.kept, { fault: `pause-nats-${role}`, lock: serverLock(server.name), lastMs });
};

/** As when the power fails in one place. */
export const killAllServers: Planner = ({ system, draw }) => ({
  fault: "kill-nats-all",
  target: "nats",
  locks: system.ring.servers.map(({ name }) => serverLock(name)),
  lastMs: draw.whole(0, 2_500),
  begin: () => Promise.all(system.ring.servers.map(({ kept }) => kept.down("SIGKILL"))),
  end: () => Promise.all(system.ring.servers.map(({ kept }) => kept.up())),
});

/** Slow as behind a slow disk, where nothing better can be done: it runs a part of the time only. */
export const stutterServer: Planner = async (world) => {
  const { server } = await leaderOrFollower(world);
  const { kept } = server;
  const onMs = world.draw.whole(5, 30);
  const offMs = world.draw.whole(30, 150);
  const stutter = async (): Promise<void> => {
    await kept.pause();
    await pause(offMs);
    kept.resume();
    await pause(onMs);
  };
  let stuttering: Repeating | undefined;
  return {
    fault: "slow-server",
    target: server.name,
    locks: [serverLock(server.name)],
    lastMs: world.draw.whole(2_000, 7_000),
    begin: () => {
      stuttering = new Repeating(stutter);
      return Promise.resolve({ onMs, offMs });
    },
    end: async () => {
      await stuttering?.stop();
      kept.resume();
    },
  };
};
