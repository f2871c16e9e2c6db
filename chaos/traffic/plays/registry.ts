import { CREW_CAPABILITIES } from "../../system/setting.ts";
import type { HeldClaim, RawWorker } from "../raw-worker.ts";
import { RegisteredWorker, type Registration } from "../registered-worker.ts";
import { drawRawAdmission, type Admission } from "../requests.ts";
import type { Play, Stage } from "../stage.ts";
import { fenceOf } from "./holders.ts";

/** Names that several plays at once use: their processes take each other's place. */
const sharedNames = ["shared-1", "shared-2"] as const;

/** A worker that nobody has registered yet; one in five bears a name that others bear too. */
export function drawWorker(
  stage: Stage,
  changes: Partial<Registration> & { readonly applicationId?: string } = {},
): RegisteredWorker {
  const { draw } = stage;
  const { applicationId = drawRawAdmission(draw, "").applicationId, ...rest } = changes;
  const name = draw.chance(0.2) ? (draw.pick(sharedNames) ?? "shared-1") : stage.key();
  const [usual, rare] = CREW_CAPABILITIES;
  const registration = {
    incarnation: `${name}-${draw.word()}`,
    concurrency: draw.whole(1, 2),
    declaredCapabilities: draw.chance(0.6) ? [usual, rare] : [usual],
    heartbeatTimeoutMs: draw.whole(2_500, 5_000),
    ...rest,
  };
  return new RegisteredWorker(stage, { name, applicationId, registration });
}

/** Work for the workers of a play; some of it asks for more than every one of them can do. */
export async function admitWork(
  stage: Stage,
  applicationId: string,
  how: { readonly count: number; readonly rest?: Partial<Admission> },
): Promise<readonly string[]> {
  const { draw } = stage;
  const [usual, rare] = CREW_CAPABILITIES;
  const { requestedBy } = drawRawAdmission(draw, "");
  const seen = await Promise.all(
    Array.from({ length: how.count }, () =>
      stage.admit(
        drawRawAdmission(draw, stage.key(), {
          applicationId,
          requestedBy,
          capabilities: draw.chance(0.3) ? [usual, rare] : [usual],
          ...how.rest,
        }),
      ),
    ),
  );
  return seen.flatMap((one) => one?.workloadId ?? []);
}

/** Finishes a claim, lets it fail, goes on holding it, or forgets it: then only its lease ends it. */
async function endWork(
  stage: Stage,
  worker: RegisteredWorker,
  how: { raw: RawWorker; claim: HeldClaim },
): Promise<void> {
  const { draw } = stage;
  const { raw, claim } = how;
  const app = worker.applicationId;
  raw.run(claim);
  await stage.pause(draw.chance(0.5) ? 0 : draw.whole(1, 150));
  const act = draw.weighted([
    { item: "complete", weight: 6 },
    { item: "fail", weight: 2 },
    { item: "renew", weight: 1 },
    { item: "forget", weight: 1.5 },
  ]);
  if (act === "forget") return;
  if (act === "renew") {
    await raw.settle(app, "work.heartbeat", { ...fenceOf(claim), extendMs: 900 });
    return;
  }
  await (act === "complete"
    ? raw.settle(app, "work.complete", { ...fenceOf(claim), output: { by: worker.name } })
    : raw.settle(app, "work.fail", { ...fenceOf(claim), kind: "timeout", error: "it failed" }));
  worker.held.delete(claim.workloadId);
}

/** One connection of a worker: it asks for work in every way, and ends what it gets. */
export async function labour(
  stage: Stage,
  worker: RegisteredWorker,
  how: { readonly raw: RawWorker; readonly rounds: number; readonly workloadIds: readonly string[] },
): Promise<void> {
  const { draw } = stage;
  const { raw, rounds, workloadIds } = how;
  for (let round = 0; round < rounds && !stage.ending.aborted; round++) {
    const leaseMs = draw.whole(500, 1_400);
    const named = draw.pick(workloadIds);
    const ask = { max: draw.whole(1, 3), waitMs: draw.chance(0.6) ? 0 : draw.whole(50, 900), leaseMs };
    const way = draw.pick(["once", "once", "repeated", "twice"] as const);
    const claims =
      named !== undefined && draw.chance(0.35)
        ? await worker.claim(raw, named, leaseMs)
        : await worker.next(raw, ask, way);
    for (const claim of claims) await endWork(stage, worker, { raw, claim });
    if (claims.length === 0) await stage.pause(draw.whole(20, 250));
    if (draw.chance(0.3)) await worker.appear(raw);
  }
}

/** Registers a worker and lets it be heard; whether both went well. */
export async function enlist(worker: RegisteredWorker, raw: RawWorker): Promise<boolean> {
  if ((await worker.register(raw)).code !== "") return false;
  return (await worker.appear(raw)).code === "";
}

/** All connections ask for work under one name at once. */
export const together = (
  stage: Stage,
  worker: RegisteredWorker,
  how: { readonly rounds: number; readonly workloadIds: readonly string[] },
): Promise<unknown> => Promise.all(stage.raw.map((raw) => labour(stage, worker, { raw, ...how })));

/** A worker of little room is asked for through all nodes at once: it must never be given more than it has room for. */
export const fillSlots: Play = async (stage) => {
  const { draw } = stage;
  const worker = drawWorker(stage);
  const [raw] = stage.someRaw(1);
  if (raw === undefined || !(await enlist(worker, raw))) return;
  const workloadIds = await admitWork(stage, worker.applicationId, { count: draw.whole(3, 6) });
  await together(stage, worker, { rounds: 3, workloadIds });
};

/** A new process takes a worker's name while the old one still works, and the old one doesn't believe it. */
export const succeedWorker: Play = async (stage) => {
  const { draw } = stage;
  const first = drawWorker(stage, { concurrency: draw.whole(1, 3) });
  const [raw, other, third] = stage.someRaw(3);
  if (raw === undefined || other === undefined || third === undefined || !(await enlist(first, raw))) return;
  const workloadIds = await admitWork(stage, first.applicationId, { count: draw.whole(2, 5) });
  const second = first.successor({ concurrency: draw.whole(1, 3) });
  await Promise.all([
    labour(stage, first, { raw, rounds: 4, workloadIds }),
    labour(stage, first, { raw: third, rounds: 4, workloadIds }),
    (async () => {
      await stage.pause(draw.whole(0, 600));
      if (!(await enlist(second, other))) return;
      await labour(stage, second, { raw: other, rounds: 4, workloadIds });
    })(),
  ]);
  // The old one wakes up once more, as if nothing had happened.
  await Promise.all([first.beat(raw), first.register(third), first.reconcile(raw), second.appear(other)]);
};

/** The concurrency falls and rises while all connections claim. */
export const resizeWorker: Play = async (stage) => {
  const { draw } = stage;
  const worker = drawWorker(stage, { concurrency: 3 });
  const [raw] = stage.someRaw(1);
  if (raw === undefined || !(await enlist(worker, raw))) return;
  const workloadIds = await admitWork(stage, worker.applicationId, { count: draw.whole(4, 8) });
  const resize = async (): Promise<void> => {
    for (const concurrency of [1, draw.whole(1, 3), draw.whole(1, 2)]) {
      await stage.pause(draw.whole(50, 500));
      const [way] = stage.someRaw(1);
      const declared = draw.chance(0.3) ? { declaredCapabilities: [CREW_CAPABILITIES[0]] } : {};
      if (way !== undefined) await worker.register(way, { concurrency, ...declared });
      if (way !== undefined && draw.chance(0.4)) await worker.reconcile(way);
    }
  };
  await Promise.all([together(stage, worker, { rounds: 4, workloadIds }), resize()]);
};

/** A worker is drained, comes back, and is removed, while it is claimed for through all nodes. */
export const drainWorker: Play = async (stage) => {
  const { draw } = stage;
  const worker = drawWorker(stage);
  const [raw, other] = stage.someRaw(2);
  if (raw === undefined || other === undefined || !(await enlist(worker, raw))) return;
  const workloadIds = await admitWork(stage, worker.applicationId, { count: draw.whole(2, 5) });
  const operate = async (): Promise<void> => {
    await stage.pause(draw.whole(0, 500));
    await (draw.chance(0.5) ? worker.drain(other) : worker.operate("drain", { asItself: draw.chance(0.5) }));
    await stage.pause(draw.whole(0, 800));
    if (draw.chance(0.5)) await worker.operate("recover");
    await (draw.chance(0.5) ? worker.reconcile(other) : worker.appear(other));
    for (let tries = draw.whole(1, 4); tries > 0; tries--) {
      await stage.pause(draw.whole(0, 400));
      const removed = await worker.operate("remove");
      if (removed.kind === "acknowledged") break;
    }
    if (draw.chance(0.5)) await enlist(worker.successor(), other);
  };
  await Promise.all([together(stage, worker, { rounds: 4, workloadIds }), operate()]);
};

/** A worker falls silent until it is given up, and comes back with claims that it may have lost. */
export const silenceWorker: Play = async (stage) => {
  const { draw } = stage;
  const worker = drawWorker(stage, { heartbeatTimeoutMs: draw.whole(500, 1_200), concurrency: 2 });
  const [raw, other] = stage.someRaw(2);
  if (raw === undefined || other === undefined || !(await enlist(worker, raw))) return;
  const workloadIds = await admitWork(stage, worker.applicationId, { count: draw.whole(2, 4) });
  await worker.next(raw, { max: 2, waitMs: 200, leaseMs: 2_500 }, "repeated");
  const dueAt = stage.clock.now() + worker.registration.heartbeatTimeoutMs;
  await stage.pause(dueAt - stage.clock.now() + draw.whole(-300, 900));
  await Promise.all([worker.beat(raw), labour(stage, worker, { raw: other, rounds: 1, workloadIds })]);
  if (draw.chance(0.5)) await worker.operate("recover", { asItself: true });
  await (draw.chance(0.7) ? worker.reconcile(raw) : worker.beat(raw));
  await together(stage, worker, { rounds: 2, workloadIds });
};
