import { closedLoop, figuresOf, type Figures } from "./figures.ts";
import type { ProductClient } from "./product-client.ts";
import type { Load, Phases } from "./raw-load.ts";
import { keyOf, type HeldClaim } from "./sample-work.ts";
import { monotonicMs } from "../src/base/clock.ts";

/** Workers of one load: each lane is one. */
const workerOf = (run: string, lane: number): string => `worker-${run}-${lane}`;

/** All is admitted over HTTP, then all is claimed and started over NATS, then all is completed over NATS. */
export async function productPhases(
  client: ProductClient,
  load: Load & { readonly requested: boolean },
): Promise<Phases> {
  const { run, inFlight, requested } = load;
  const admit = await closedLoop(load, (lane, index) => client.admit(lane, keyOf(run, index)));
  const claims: HeldClaim[] = [];
  const rest = { inFlight, end: { operations: admit.operations } };
  const claim = await closedLoop(rest, async (lane, index) => {
    const requestId = `${run}-${index}`;
    const taken = await client.claimNext(workerOf(run, lane), { waitMs: 1000, ...(requested ? { requestId } : {}) });
    if (taken === undefined) return false;
    claims.push(taken);
    return true;
  });
  const complete = await closedLoop({ inFlight, end: { operations: claims.length } }, async (_, index) => {
    const taken = claims[index];
    if (taken !== undefined) await client.complete(taken);
  });
  return { admit, claim, complete };
}

/** Each lane admits a piece of work over HTTP, takes what comes next over NATS, and completes it. */
export const productLives = (client: ProductClient, load: Load): Promise<Figures> =>
  closedLoop(load, async (lane, index) => {
    await client.admit(lane, keyOf(load.run, index));
    const claim = await client.claimNext(workerOf(load.run, lane), { waitMs: 5000 });
    if (claim === undefined) throw new Error("no work came");
    await client.complete(claim);
  });

/** The same by workers of the registry, one a lane, each of which has room for one claim. */
export async function registeredLives(client: ProductClient, load: Load): Promise<Figures> {
  const names = Array.from({ length: load.inFlight }, (_, lane) => workerOf(load.run, lane));
  const workerIds = await Promise.all(names.map((name) => client.register(name)));
  return closedLoop(load, async (lane, index) => {
    await client.admit(lane, keyOf(load.run, index));
    const claim = await client.claimNext(workerIds[lane] ?? "", { waitMs: 5000 });
    if (claim === undefined) throw new Error("no work came");
    await client.complete(claim);
  });
}

/** Each lane holds one claim and renews it over and over. With `batch` all claims are renewed in one message. */
export async function productHeartbeats(
  client: ProductClient,
  load: Load & { readonly batch: boolean },
): Promise<Figures> {
  const { run, inFlight, batch, end } = load;
  const claims: HeldClaim[] = [];
  for (let lane = 0; lane < inFlight; lane++) {
    await client.admit(0, keyOf(run, lane));
    const claim = await client.claimNext(workerOf(run, batch ? 0 : lane), { waitMs: 5000 });
    if (claim !== undefined) claims.push(claim);
  }
  const figures = batch
    ? await closedLoop({ inFlight: 1, end }, () => client.heartbeatMany(claims))
    : await closedLoop(load, async (lane) => {
        const claim = claims[lane];
        if (claim !== undefined) await client.heartbeat(claim);
      });
  for (const claim of claims) await client.complete(claim);
  return figures;
}

/** Admits work for a queue of its own, in batches. */
export async function fillQueue(
  client: ProductClient,
  queue: { readonly name: string; readonly run: string; readonly size: number },
): Promise<void> {
  const batch = 100;
  for (let first = 0; first < queue.size; first += batch) {
    const keys = Array.from({ length: Math.min(batch, queue.size - first) }, (_, index) =>
      keyOf(queue.run, first + index),
    );
    await client.admitMany(0, keys, queue.name);
  }
}

/** Workers take all that a queue holds, each asking for the next as soon as it has one. */
export const drainQueue = (
  client: ProductClient,
  queue: { readonly name: string; readonly run: string; readonly size: number; readonly workers: number },
): Promise<Figures> =>
  closedLoop({ inFlight: queue.workers, end: { operations: queue.size } }, async (lane) => {
    const claim = await client.claimNext(workerOf(queue.run, lane), { waitMs: 2000, queue: queue.name });
    return claim !== undefined;
  });

/** One job at a time while a worker waits: from the request over HTTP until its completion is acknowledged. */
export async function loneJobs(
  client: ProductClient,
  jobs: {
    readonly run: string;
    readonly count: number;
    /** Answers the lane whose node does not hold the worker's poll. */
    readonly otherLane: () => Promise<number>;
  },
): Promise<{ readonly total: Figures; readonly held: Figures }> {
  const totals: number[] = [];
  const helds: number[] = [];
  for (let index = 0; index < jobs.count; index++) {
    const polled = client.claimNext(workerOf(jobs.run, 0), { waitMs: 20_000 });
    const lane = await jobs.otherLane();
    const from = monotonicMs();
    const admitted = client.admit(lane, keyOf(jobs.run, index));
    const claim = await polled;
    const heldAt = monotonicMs();
    if (claim === undefined) throw new Error("the waiting worker was given nothing");
    await client.complete(claim);
    totals.push(monotonicMs() - from);
    helds.push(heldAt - from);
    await admitted;
  }
  const sum = (times: readonly number[]): number => times.reduce((total, time) => total + time, 0);
  return { total: figuresOf(totals, sum(totals)), held: figuresOf(helds, sum(helds)) };
}
