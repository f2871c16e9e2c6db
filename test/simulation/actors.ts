import type { Claim } from "../../src/core/workload/record.ts";
import { fenceOf } from "../unit/authority/stage.ts";
import { approvers, scopes, type Piece } from "./plan.ts";
import type { World } from "./world.ts";

const LEASES_MS = [1500, 4000, 9000] as const;

/** Somebody who does something again and again until the run is over. */
export type Actor = (world: World, pieces: readonly Piece[]) => Promise<void>;

/** With a requestId more often than not: the others are callers who don't repeat what they are not sure of. */
const requestIdOf = (world: World, mark: string): { readonly requestId?: string } =>
  world.phase === "liveness" || world.draw.chance(0.6) ? { requestId: mark } : {};

/** Admits the pieces, several times, in both variants. */
export const requesting: Actor = async (world, pieces) => {
  const { draw } = world;
  const queue = [...pieces];
  while (world.phase !== "over") {
    const piece = queue.shift() ?? draw.pick(pieces);
    const mark = world.ledger.nextMark();
    const variant = piece.variants[draw.chance(0.8) ? 0 : 1];
    const wish = { mark, arguments: { ...variant, trigger: mark }, workloadId: piece.workloadId, repeatable: true };
    await world.want("admit", wish);
    await world.sleep(draw.between(50, queue.length > 0 ? 1500 : 8000));
  }
};

/** Decides about gated work, not of one mind with the others. */
export const approving: Actor = async (world, pieces) => {
  const { draw } = world;
  const gated = pieces.filter((piece) => piece.gated);
  while (gated.length > 0 && world.phase !== "over") {
    await world.sleep(draw.between(200, 5000));
    const { workloadId } = draw.pick(gated);
    const read = await world.want("get", {
      mark: world.ledger.nextMark(),
      arguments: { workloadId },
      workloadId,
      repeatable: true,
    });
    if (read === undefined || "code" in read) continue;
    const mark = world.ledger.nextMark();
    const approves = world.phase === "liveness" || draw.chance(0.7);
    const call = {
      workloadId,
      decider: { kind: "human", id: draw.pick(approvers) },
      outcome: approves ? "approved" : "rejected",
      reason: mark,
      grantId: "g2",
      inputHash: read.answer.inputHash,
      ...requestIdOf(world, mark),
    };
    await world.want("decide", { mark, arguments: call, workloadId, repeatable: true });
  }
};

/** Cancels, times out and re-arms, until the run is to come to its end. */
export const operating: Actor = async (world, pieces) => {
  const { draw } = world;
  while (world.phase === "safety") {
    await world.sleep(draw.between(500, 7000));
    if (world.phase !== "safety") return;
    const { workloadId } = draw.pick(pieces);
    const mark = world.ledger.nextMark();
    const request = requestIdOf(world, mark);
    const wish = {
      mark,
      arguments: { workloadId, actor: mark, ...request },
      workloadId,
      repeatable: request.requestId !== undefined,
    };
    const name = draw.pick(["cancel", "timeout", "retry", "retry", "retry"] as const);
    await world.want(name, wish);
  }
};

/** Re-arms work that is dead at the very moment at which somebody claims the work that waited for its death. */
export const reviving: Actor = async (world, pieces) => {
  const { draw } = world;
  const mourners = pieces.filter(({ mourned }) => mourned !== undefined);
  while (mourners.length > 0 && world.phase === "safety") {
    await world.sleep(draw.between(50, 400));
    const mourner = draw.pick(mourners);
    const workloadId = mourner.mourned ?? "";
    const mark = world.ledger.nextMark();
    const read = await world.want("get", { mark, arguments: { workloadId }, workloadId, repeatable: true });
    if (read === undefined || "code" in read || read.answer.state !== "DEAD_LETTER") continue;
    const own = world.ledger.nextMark();
    const call = { workloadId, actor: own, requestId: own };
    const claiming = claimOne(world, [mourner]);
    await world.want("retry", { mark: own, arguments: call, workloadId, repeatable: true });
    await Promise.all((await claiming).map((claim) => execute(world, claim)));
  }
};

/** Claims and executes, more or less well; in the end always well. */
export const working: Actor = async (world, pieces) => {
  const { draw } = world;
  while (world.phase !== "over") {
    const claims = await (draw.chance(0.75) || world.phase === "liveness" ? claimNext(world) : claimOne(world, pieces));
    await Promise.all(claims.map((claim) => execute(world, claim)));
    await world.sleep(draw.between(0, claims.length > 0 ? 300 : 1200));
  }
};

async function claimNext(world: World): Promise<readonly Claim[]> {
  const { draw } = world;
  const mark = world.ledger.nextMark();
  const request = requestIdOf(world, mark);
  const call = {
    ...draw.pick(scopes),
    workerId: mark,
    capabilities: world.phase === "liveness" || draw.chance(0.6) ? ["gpu"] : [],
    leaseMs: draw.pick(LEASES_MS),
    max: draw.pick([1, 1, 3]),
    waitMs: draw.pick([0, 0, 1500]),
    start: draw.chance(0.5),
    ...request,
  };
  const repeatable = request.requestId !== undefined;
  const heard = await world.want("claimNext", { mark, arguments: call, workloadId: undefined, repeatable });
  return heard !== undefined && "answer" in heard ? heard.answer : [];
}

async function claimOne(world: World, pieces: readonly Piece[]): Promise<readonly Claim[]> {
  const { draw } = world;
  const mark = world.ledger.nextMark();
  const { workloadId } = draw.pick(pieces);
  const request = requestIdOf(world, mark);
  const call = {
    workloadId,
    workerId: mark,
    capabilities: ["gpu"],
    leaseMs: draw.pick(LEASES_MS),
    start: draw.chance(0.5),
    ...request,
  };
  const repeatable = request.requestId !== undefined;
  const heard = await world.want("claim", { mark, arguments: call, workloadId, repeatable });
  return heard !== undefined && "answer" in heard ? [heard.answer] : [];
}

/** One attempt: perhaps a start, some renewals and checkpoints, and one of many ends. */
async function execute(world: World, claim: Claim): Promise<void> {
  const { draw } = world;
  const { workloadId } = claim;
  const fence = fenceOf(claim);
  const leaseMs = Math.max(claim.expiresAt - claim.claimedAt, 1);
  const ask = (
    name: "start" | "heartbeat" | "checkpoint" | "confirmCancel",
    more: (mark: string) => object = () => ({}),
  ) => {
    const mark = world.ledger.nextMark();
    const call = { ...fence, ...more(mark), ...requestIdOf(world, mark) };
    return world.want(name, { mark, arguments: call, workloadId, repeatable: "requestId" in call });
  };
  await ask("start");
  const rounds = draw.between(0, 4);
  for (let round = 0; round < rounds; round++) {
    await world.sleep(draw.between(0, leaseMs / 2));
    const beat = await ask("heartbeat", () => ({ extendMs: leaseMs }));
    if (
      beat !== undefined &&
      "answer" in beat &&
      (beat.answer as { readonly cancellationRequested: boolean }).cancellationRequested
    ) {
      if (world.phase === "liveness" || draw.chance(0.7)) await ask("confirmCancel");
      return;
    }
    if (draw.chance(0.4))
      await ask("checkpoint", (mark) => ({ state: draw.chance(0.2) ? `${mark} ${"x".repeat(5000)}` : { by: mark } }));
  }
  if (world.phase === "safety" && draw.chance(0.15)) return;
  // Late, perhaps too late.
  if (world.phase === "safety" && draw.chance(0.2)) await world.sleep(leaseMs + draw.between(0, 4000));
  await (world.phase === "liveness" || draw.chance(0.6) ? complete(world, claim) : fail(world, claim));
}

async function complete(world: World, claim: Claim): Promise<void> {
  const { draw } = world;
  const mark = world.ledger.nextMark();
  const { workloadId } = claim;
  const call = {
    ...fenceOf(claim),
    output: draw.chance(0.2) ? `${mark} ${"x".repeat(5000)}` : { by: mark },
    // Few names, so that two workloads may want the same.
    ...(draw.chance(0.3) ? { resultId: `result-${draw.between(1, 3)}` } : {}),
    ...requestIdOf(world, mark),
  };
  const heard = await world.want("complete", { mark, arguments: call, workloadId, repeatable: true });
  if (heard !== undefined && "code" in heard && heard.code === "WORKLOAD_RESULT_DUPLICATE")
    await complete(world, claim);
}

async function fail(world: World, claim: Claim): Promise<void> {
  const { draw } = world;
  const mark = world.ledger.nextMark();
  const { workloadId } = claim;
  const call = {
    ...fenceOf(claim),
    kind: draw.pick(["timeout", "transient_connection", "bug"]),
    error: mark,
    ...(draw.chance(0.3) ? { effect: draw.pick(["none", "unknown"]) } : {}),
    ...requestIdOf(world, mark),
  };
  await world.want("fail", { mark, arguments: call, workloadId, repeatable: true });
}
