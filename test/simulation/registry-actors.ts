import type { Claim } from "../../src/core/workload/record.ts";
import { poolIdOf, workerIdOf } from "../../src/core/worker/identity.ts";
import { fenceOf } from "../unit/authority/stage.ts";
import type { Actor } from "./actors.ts";
import { scopes, type Piece } from "./plan.ts";
import type { World } from "./world.ts";

const scope = scopes[0];
const names = ["press-1", "press-2", "press-3"] as const;
type Name = (typeof names)[number];

export const pool = {
  ...scope,
  name: "presses",
  maxConcurrency: 2,
  workerIds: [workerIdOf({ ...scope, name: "press-1" })],
};
export const poolId = poolIdOf(pool);

/** Some so long that only a successor, or an end, takes the claim away. */
const LEASES_MS = [1500, 4000, 120_000] as const;

/** What a name's processes have been so far: several may believe to be the one. */
class Identity {
  readonly name: Name;
  readonly workerId: string;
  incarnation = 0;

  constructor(name: Name) {
    this.name = name;
    this.workerId = workerIdOf({ ...scope, name });
  }
}

const ask = (world: World, name: Parameters<World["want"]>[0], call: object, workloadId?: string) =>
  world.want(name, { mark: world.ledger.nextMark(), arguments: { ...call }, workloadId, repeatable: true });

async function register(world: World, identity: Identity): Promise<void> {
  const { draw } = world;
  await ask(world, "registerWorker", {
    ...scope,
    name: identity.name,
    runtime: "process",
    version: "1",
    concurrency: world.phase === "liveness" ? 2 : draw.between(1, 3),
    declaredCapabilities: world.phase === "liveness" || draw.chance(0.6) ? ["gpu"] : [],
    labels: { zone: world.phase === "liveness" ? "north" : draw.pick(["north", "south"]) },
    heartbeatTimeoutMs: 8000,
    incarnation: `${identity.name}-${identity.incarnation}`,
  });
}

async function beat(world: World, identity: Identity): Promise<void> {
  const told = {
    ...scope,
    workerId: identity.workerId,
    version: "1",
    capabilityVersion: 0,
    timestamp: Math.floor(world.queue.now()),
    incarnation: `${identity.name}-${identity.incarnation}`,
  };
  const sick = world.phase === "safety" && world.draw.chance(0.1);
  const heard = await ask(world, "heartbeatWorker", {
    ...told,
    health: sick ? "DEGRADED" : "HEALTHY",
    runningClaims: [],
  });
  // In the end everything is as it should be, whatever it was before.
  if (world.phase === "liveness") await register(world, identity);
  if (heard === undefined || !("code" in heard)) return;
  if (heard.code === "WORKER_RECOVERY_REQUIRED") await ask(world, "reconcileWorker", told);
  else if (heard.code === "WORKER_NOT_FOUND" || heard.code === "WORKER_SUPERSEDED") {
    if (heard.code === "WORKER_SUPERSEDED") identity.incarnation += 1;
    await register(world, identity);
  }
}

const identities = (): readonly Identity[] => names.map((name) => new Identity(name));

const isThere = (heard: Awaited<ReturnType<typeof ask>>): boolean =>
  heard !== undefined && ("answer" in heard || heard.code === "WORKER_POOL_EXISTS");

/** Work that says where it may run, among other work of the registry's application. */
export const placedPieces = (world: World, pieces: readonly Piece[]): readonly Piece[] =>
  pieces.map((piece) => {
    if (piece.scope !== scope || world.draw.chance(0.4)) return piece;
    const placement = world.draw.pick([
      { poolId },
      { requiredLabels: { zone: "north" } },
      { antiAffinity: { zone: "south" }, affinity: { zone: "north" } },
    ]);
    const [first, second] = piece.variants;
    return {
      ...piece,
      variants: [
        { ...first, placement },
        { ...second, placement },
      ],
    };
  });

const selfOf = ({ workerId }: Identity): object => ({ ...scope, workerId });

/** What operators and new processes do to a worker. */
const changes: readonly ((world: World, identity: Identity) => Promise<unknown>)[] = [
  (world, identity) => {
    identity.incarnation += 1;
    return register(world, identity);
  },
  register,
  (world, identity) => ask(world, "drainWorker", selfOf(identity)),
  (world, identity) => ask(world, "recoverWorker", selfOf(identity)),
  (world, identity) => ask(world, "removeWorker", selfOf(identity)),
  (world, { workerId }) => ask(world, "changePool", { ...scope, poolId, add: [workerId] }),
];

/** Registers workers, lets them be heard, replaced, drained, recovered, removed and put into a pool, at any node. */
export const managing: Actor = async (world) => {
  const { draw } = world;
  const crew = identities();
  await Promise.all(crew.map((identity) => register(world, identity)));
  let pooled = false;
  while (world.phase !== "over") {
    const identity = draw.pick(crew);
    if (!pooled) pooled = isThere(await ask(world, "createPool", pool));
    if (world.phase === "liveness") await ask(world, "changePool", { ...scope, poolId, add: pool.workerIds });
    if (world.phase === "liveness" || draw.chance(0.8)) {
      for (const each of crew) await beat(world, each);
      if (draw.chance(0.25)) await register(world, identity);
    } else await draw.pick(changes)(world, identity);
    await world.sleep(draw.between(100, 2500));
  }
};

/** Asks for work in a worker's name, through any node, whatever others ask in the same name. */
export const pressing: Actor = async (world, pieces) => {
  const { draw } = world;
  const crew = identities();
  while (world.phase !== "over") {
    const { workerId } = draw.pick(crew);
    const leaseMs = draw.pick(LEASES_MS);
    const how = {
      workerId,
      leaseMs,
      start: draw.chance(0.7),
      ...(draw.chance(0.5) ? { requestId: world.ledger.nextMark() } : {}),
    };
    const { workloadId } = draw.pick(pieces);
    const heard = draw.chance(0.75)
      ? await world.want("claimNext", {
          mark: world.ledger.nextMark(),
          arguments: { ...scope, ...how, max: draw.pick([1, 1, 3]), waitMs: draw.pick([0, 0, 1500]) },
          workloadId: undefined,
          repeatable: "requestId" in how,
        })
      : await world.want("claim", {
          mark: world.ledger.nextMark(),
          arguments: { ...how, workloadId },
          workloadId,
          repeatable: "requestId" in how,
        });
    const given = heard !== undefined && "answer" in heard ? heard.answer : [];
    const claims: readonly Claim[] = Array.isArray(given) ? (given as readonly Claim[]) : [given as Claim];
    await Promise.all(claims.map((claim) => press(world, claim)));
    await world.sleep(draw.between(0, claims.length > 0 ? 300 : 900));
  }
};

/** One attempt: ended well, badly, by cancellation, or not at all. */
async function press(world: World, claim: Claim): Promise<void> {
  const { draw } = world;
  const fence = fenceOf(claim);
  const { workloadId } = claim;
  await world.sleep(draw.between(0, 2000));
  await ask(world, "start", fence, workloadId);
  if (world.phase === "safety" && draw.chance(0.2)) return;
  if (draw.chance(0.3)) await ask(world, "heartbeat", { ...fence, extendMs: 3000 }, workloadId);
  const mark = world.ledger.nextMark();
  if (world.phase === "liveness" || draw.chance(0.6))
    await ask(world, "complete", { ...fence, output: { by: mark }, requestId: mark }, workloadId);
  else if (draw.chance(0.8))
    await ask(
      world,
      "fail",
      { ...fence, kind: draw.pick(["timeout", "bug"]), error: mark, requestId: mark },
      workloadId,
    );
  else await ask(world, "confirmCancel", { ...fence, requestId: mark }, workloadId);
}
