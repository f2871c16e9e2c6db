import { randomInt } from "node:crypto";
import { once } from "node:events";
import type { Server } from "node:net";
import { createServer } from "node:net";
import { ClusterError } from "./cluster-error.ts";

const HOST = "127.0.0.1";
/**
 * Free ports are picked below the range that systems hand out to outgoing connections, so that a server that is killed
 * and started again finds its port still free.
 */
const PICK_FROM = 24_000;
const PICK_BELOW = 32_000;
const PICKS_MAX = 200;

async function hold(port: number): Promise<Server | undefined> {
  const server = createServer();
  server.listen({ port, host: HOST, exclusive: true });
  try {
    await once(server, "listening");
    return server;
  } catch {
    return undefined;
  }
}

async function release(server: Server): Promise<void> {
  server.close();
  await once(server, "close");
}

async function holdAny(): Promise<{ readonly port: number; readonly server: Server }> {
  for (let pick = 0; pick < PICKS_MAX; pick++) {
    const port = randomInt(PICK_FROM, PICK_BELOW);
    const server = await hold(port);
    if (server !== undefined) return { port, server };
  }
  throw new ClusterError("NO_FREE_PORT", `no free port between ${PICK_FROM} and ${PICK_BELOW} on ${HOST}`);
}

/**
 * For each wanted port, that one if nobody listens on it at 127.0.0.1, else a free one; `undefined` asks for any. All
 * differ. They are free when this answers; nothing keeps another program from taking one before it is used.
 *
 * @throws ClusterError `NO_FREE_PORT`.
 */
export async function freePorts(wanted: readonly (number | undefined)[]): Promise<number[]> {
  const held: { readonly port: number; readonly server: Server }[] = [];
  try {
    // The wanted ones first, so that a substitute never takes a port that another place asked for.
    const own = new Map<number, Server>();
    for (const port of wanted) {
      if (port === undefined || own.has(port)) continue;
      const server = await hold(port);
      if (server !== undefined) {
        own.set(port, server);
        held.push({ port, server });
      }
    }
    const ports: number[] = [];
    for (const port of wanted) {
      if (port !== undefined && own.delete(port)) {
        ports.push(port);
        continue;
      }
      const any = await holdAny();
      held.push(any);
      ports.push(any.port);
    }
    return ports;
  } finally {
    await Promise.all(held.map(({ server }) => release(server)));
  }
}
