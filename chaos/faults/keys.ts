import { pause } from "../../src/sdk/backoff.ts";
import type { Planner } from "./fault.ts";
import { workerLock } from "./processes.ts";

/** Nodes look at their keys every second, and one may stand still or start meanwhile. */
const SEEN_MS = 2_500;

/**
 * A rotation as the manual has it: another key is published, then signed by, and when all workers have a grant of it the
 * keys before it are taken away. No fault by itself, but nodes come and go meanwhile.
 */
export const rotateKeys: Planner = ({ system, draw }) => {
  const { keys, crew } = system;
  if (keys === undefined) return undefined;
  return {
    fault: "rotate-keys",
    target: "keys",
    locks: ["keys", ...crew.workers.map(({ name }) => workerLock(name))],
    lastMs: draw.whole(500, 3_000),
    begin: async () => {
      await keys.publish();
      await pause(SEEN_MS);
      await keys.use();
    },
    end: async () => {
      await keys.use();
      for (const { kept } of crew.workers) {
        await kept.down("SIGTERM");
        await kept.up();
      }
      await keys.retire();
    },
  };
};
