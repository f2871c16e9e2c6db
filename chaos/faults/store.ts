import type { ChildProcess } from "node:child_process";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect } from "@nats-io/transport-node";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { streamOf } from "../system/setting.ts";
import type { System } from "../system/system.ts";
import type { Planner } from "./fault.ts";
import { serverLock, stutterServer } from "./processes.ts";

const CALL_MS = 2_000;

/** Uses a connection of the harness's own, which no link stands before; `undefined` when other faults are in the way. */
async function withNats<Answer>(
  system: System,
  use: (nats: NatsConnection) => Promise<Answer>,
): Promise<Answer | undefined> {
  try {
    const servers = system.ring.servers.map(({ server }) => server.url);
    const nats = await connect({ servers, timeout: CALL_MS, reconnect: false });
    try {
      return await use(nats);
    } finally {
      await nats.close();
    }
  } catch {
    return undefined;
  }
}

const noEnd = (): Promise<void> => Promise.resolve();

/** Somebody deletes the consumers that the nodes follow the store with. */
export const deleteConsumers: Planner = ({ system, draw }) => {
  const stream = streamOf(draw.whole(0, system.shape.shards - 1));
  const share = draw.chance(0.5) ? 1 : 0.4;
  return {
    fault: "delete-consumers",
    target: stream,
    locks: ["consumers"],
    lastMs: 0,
    begin: () =>
      withNats(system, async (nats) => {
        const manager = await jetstreamManager(nats, { checkAPI: false, timeout: CALL_MS });
        const names: string[] = [];
        for await (const { name } of manager.consumers.list(stream)) names.push(name);
        const chosen = names.filter(() => draw.chance(share));
        await Promise.all(chosen.map((name) => manager.consumers.delete(stream, name).catch(() => undefined)));
        return { deleted: chosen.length, of: names.length };
      }),
    end: noEnd,
  };
};

/** The leader hands over. */
export const stepDown: Planner = ({ system, draw }) => {
  const stream = streamOf(draw.whole(0, system.shape.shards - 1));
  return {
    fault: "step-down",
    target: stream,
    locks: ["leadership"],
    lastMs: 0,
    begin: () =>
      withNats(system, async (nats) => {
        await nats.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, "", { timeout: CALL_MS });
      }),
    end: noEnd,
  };
};

/** Nothing more fits on one server's disk; it is started anew when there is room again, as an operator would. */
export const fillDisk: Planner = ({ system, draw }) => {
  const { disk, ring } = system;
  const server = ring.servers.find(({ name }) => name === "n3");
  if (disk === undefined || server === undefined) return undefined;
  return {
    fault: "full-disk",
    target: server.name,
    locks: [serverLock(server.name)],
    lastMs: draw.whole(1_500, 7_000),
    begin: () => disk.fill(),
    end: async () => {
      await disk.release();
      await server.kept.down("SIGKILL");
      await server.kept.up();
    },
  };
};

let tracer: boolean | undefined;
const hasTracer = (): boolean => (tracer ??= spawnSync("strace", ["-V"], { stdio: "ignore" }).status === 0);

/** Every flush to the disk of one server takes long. Without strace to do it, the whole server stutters. */
export const slowDisk: Planner = async (world) => {
  const { system, draw } = world;
  const stream = streamOf(draw.whole(0, system.shape.shards - 1));
  const leader = await system.ring.someLeader(stream);
  const server = draw.chance(0.6) ? leader : (draw.pick(system.ring.servers) ?? leader);
  if (!hasTracer()) return stutterServer(world);
  const delayMs = draw.whole(20, 250);
  let process: ChildProcess | undefined;
  return {
    fault: "slow-disk",
    target: server.name,
    locks: [serverLock(server.name)],
    lastMs: draw.whole(2_000, 8_000),
    begin: () => {
      const { pid } = server.server;
      if (pid === undefined) return Promise.resolve("it does not run");
      const calls = "fsync,fdatasync";
      process = spawn(
        "strace",
        [
          "-f",
          "-q",
          "-o",
          "/dev/null",
          "-p",
          String(pid),
          "-e",
          `trace=${calls}`,
          "-e",
          `inject=${calls}:delay_exit=${delayMs * 1_000}`,
        ],
        { stdio: "ignore" },
      );
      return Promise.resolve({ delayMs });
    },
    end: async () => {
      if (process === undefined || process.exitCode !== null) return;
      process.kill("SIGINT");
      const patience = setTimeout(() => process?.kill("SIGKILL"), 2_000);
      await once(process, "exit");
      clearTimeout(patience);
    },
  };
};
