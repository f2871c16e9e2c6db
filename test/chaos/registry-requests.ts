import { poolIdOf, workerIdOf } from "../../src/core/worker/identity.ts";
import type { CallName } from "../../src/authority/api.ts";

/** Random calls of workers of the registry: several processes under few names, who know little of each other. */

interface Request {
  readonly call: CallName;
  readonly args: { readonly [name: string]: unknown };
}

/** What the play draws from. */
export interface Chance {
  draw(below: number): number;
  pick<Item>(items: readonly Item[]): Item;
  chance(share: number): boolean;
  now(): number;
}

const scope = { tenantId: "acme", applicationId: "invoices" } as const;
const names = ["press", "oven"] as const;
const pools = ["few", "more"] as const;

export const poolIds: readonly string[] = pools.map((name) => poolIdOf({ ...scope, name }));
const workerIds = names.map((name) => workerIdOf({ ...scope, name }));

/** Draws what a worker of the registry, or its operator, asks for. */
export class RegistryRequests {
  readonly #play: Chance;
  /** The processes that a name has had. */
  readonly #processes = new Map<string, string[]>(workerIds.map((workerId) => [workerId, ["process-1"]]));

  constructor(play: Chance) {
    this.#play = play;
  }

  /** A call on the worker itself. */
  draw(): Request {
    const { draw, pick } = this.#bound();
    const kind = draw(14);
    if (kind < 4) return this.#register();
    if (kind < 9) return this.#heartbeat();
    if (kind === 9) return { call: "reconcileWorker", args: this.#reconcile() };
    if (kind === 10) return { call: pick(["drainWorker", "recoverWorker"] as const), args: this.#named() };
    if (kind === 11) return { call: pick(["recoverWorker", "removeWorker"] as const), args: this.#named() };
    return this.#pool();
  }

  /** A request for work, which may wait for it. */
  next(): Request {
    const { draw, pick, chance } = this.#bound();
    const { workerId, incarnation } = this.#named();
    const ask = {
      max: 1 + draw(3),
      waitMs: chance(0.2) ? 1 : 0,
      leaseMs: pick([700, 3000, 20_000]),
      start: chance(0.7),
    };
    return { call: "claimNext", args: { ...scope, workerId, incarnation, capabilities: [], ...ask } };
  }

  /** What makes a worker ready for work, what changes before all have seen it, a rush for work, and a word of it. */
  rush(): {
    readonly ready: readonly Request[];
    readonly before: readonly Request[];
    readonly calls: readonly Request[];
    readonly after: Request;
  } {
    const { draw, pick, chance } = this.#bound();
    const name = pick(names);
    const workerId = workerIdOf({ ...scope, name });
    const incarnation = this.#processes.get(workerId)?.at(-1) ?? "process-1";
    const named = { ...scope, workerId, incarnation };
    const said = { version: "1", capabilityVersion: 0, timestamp: Math.round(this.#play.now()) };
    const ask = { capabilities: [], max: 1 + draw(2), waitMs: 0, leaseMs: 3000, start: true };
    return {
      ready: [
        { call: "registerWorker", args: this.#description(name, incarnation) },
        { call: "reconcileWorker", args: { ...named, ...said } },
      ],
      after: { call: "heartbeatWorker", args: { ...named, ...said, health: "HEALTHY" } },
      before: chance(0.5) ? [this.#pool()] : [],
      calls: Array.from({ length: 4 }, () => ({ call: "claimNext", args: { ...named, ...ask } })),
    };
  }

  /** Who claims: a worker of the registry, as one of its processes. */
  claimant(): Request["args"] {
    const { workerId, incarnation } = this.#named();
    return { workerId, incarnation };
  }

  #bound(): Pick<Chance, "draw" | "pick" | "chance"> {
    const play = this.#play;
    return {
      draw: (below) => play.draw(below),
      pick: (items) => play.pick(items),
      chance: (share) => play.chance(share),
    };
  }

  #named(): {
    readonly tenantId: string;
    readonly applicationId: string;
    readonly workerId: string;
    incarnation: string;
  } {
    const { pick, chance } = this.#bound();
    const workerId = pick(workerIds);
    const processes = this.#processes.get(workerId) ?? [];
    const incarnation = chance(0.8) ? (processes.at(-1) ?? "process-1") : pick(processes);
    return { ...scope, workerId, incarnation };
  }

  #register(): Request {
    const { pick, chance } = this.#bound();
    const name = pick(names);
    const processes = this.#processes.get(workerIdOf({ ...scope, name })) ?? [];
    if (chance(0.3)) processes.push(`process-${processes.length + 1}`);
    const incarnation = chance(0.85) ? (processes.at(-1) ?? "") : pick(processes);
    return { call: "registerWorker", args: this.#description(name, incarnation) };
  }

  #description(name: string, incarnation: string): Request["args"] {
    const { draw, pick } = this.#bound();
    return {
      ...scope,
      name,
      runtime: "process",
      version: "1",
      concurrency: 1 + draw(3),
      declaredCapabilities: pick([["cpu"], ["cpu", "gpu"]]),
      heartbeatTimeoutMs: 4000,
      incarnation,
    };
  }

  #heartbeat(): Request {
    const { chance, pick } = this.#bound();
    const health = chance(0.9) ? "HEALTHY" : pick(["DEGRADED", "UNHEALTHY"]);
    const timestamp = Math.round(this.#play.now()) - (chance(0.05) ? 60_000 : 0);
    const args = { ...this.#named(), version: chance(0.95) ? "1" : "2", capabilityVersion: 0, health, timestamp };
    return { call: "heartbeatWorker", args };
  }

  #reconcile(): Request["args"] {
    return { ...this.#named(), version: "1", capabilityVersion: 0, timestamp: Math.round(this.#play.now()) };
  }

  #pool(): Request {
    const { draw, pick } = this.#bound();
    const name = pick(pools);
    const poolId = poolIdOf({ ...scope, name });
    const kind = draw(4);
    if (kind < 2)
      return {
        call: "createPool",
        args: { ...scope, name, workerIds: workerIds.slice(0, draw(3)), maxConcurrency: 1 + draw(2) },
      };
    const change = { ...scope, poolId, [pick(["add", "remove"])]: [pick(workerIds)] };
    return kind === 2 ? { call: "changePool", args: change } : { call: "deletePool", args: { ...scope, poolId } };
  }
}
