import type { Outcome } from "../../history.ts";
import type { Fence, HeldClaim, RawClaim, RawReply, RawWorker } from "../raw-worker.ts";
import { drawAdmission, drawRawAdmission, type Admission } from "../requests.ts";
import type { Play, Seen, Stage } from "../stage.ts";

interface Holder {
  readonly worker: RawWorker;
  readonly claim: HeldClaim;
}

export const fenceOf = ({ workloadId, claimId, workerId, fencingToken }: RawClaim): Fence => ({
  workloadId,
  claimId,
  workerId,
  fencingToken,
});

/** Several workers claim one workload at once; who got it. */
export async function claimTogether(
  stage: Stage,
  admission: Admission,
  workloadId: string,
  how: { readonly leaseMs: number; readonly start: boolean },
): Promise<Holder | undefined> {
  const claims = await Promise.all(
    stage.someRaw(stage.draw.whole(1, 3)).map(async (worker) => {
      const { capabilities } = admission;
      const claim = await worker.claim(admission.applicationId, workloadId, { ...how, capabilities });
      return claim === undefined ? undefined : { worker, claim };
    }),
  );
  return claims.find((claim) => claim !== undefined);
}

/** What the holder, its former self, its rivals and the operators may do at one moment. */
function endings(stage: Stage, admission: Admission, holder: Holder): readonly (() => Promise<RawReply | Outcome>)[] {
  const { draw } = stage;
  const { worker, claim } = holder;
  const fence = fenceOf(claim);
  const app = admission.applicationId;
  const rival = stage.someRaw(1)[0] ?? worker;
  const resultId = draw.chance(0.4) ? `result-${draw.word()}` : undefined;
  const complete = { ...fence, output: { fence: fence.fencingToken }, ...(resultId === undefined ? {} : { resultId }) };
  const seen: Pick<Seen, "workloadId"> = claim;
  const stale = { ...fence, fencingToken: Math.max(1, fence.fencingToken - 1) };
  const requestId = worker.requestId();
  return [
    () => worker.settle(app, "work.complete", complete),
    // The same request twice at once, and the same report again under another requestId.
    () => worker.settle(app, "work.complete", complete, { requestId }),
    () => worker.settle(app, "work.complete", complete, { requestId }),
    () => worker.settle(app, "work.complete", { ...complete, output: { fence: "another" } }),
    () => worker.settle(app, "work.fail", { ...fence, kind: "timeout", error: "it failed" }),
    () =>
      worker.settle(app, "work.fail", {
        ...fence,
        kind: "worker_failure",
        error: "lost track",
        effect: draw.pick(["none", "unknown"] as const),
      }),
    () => worker.settle(app, "work.checkpoint", { ...fence, state: { mark: draw.word() } }),
    () => worker.settle(app, "work.heartbeat", { ...fence, extendMs: 1_500 }),
    () => worker.settle(app, "work.confirm-cancel", fence),
    () => rival.settle(app, "work.complete", { ...stale, output: "stale" }),
    () => rival.settle(app, "work.complete", { ...complete, workerId: rival.workerId, output: "stolen" }),
    () => stage.operate("cancel", seen),
    () => stage.operate("timeout", seen),
    () => stage.operate("retry", seen),
  ];
}

/** Completion against failure against cancel against time-out against late reports, round after round. */
export const raceEndings: Play = async (stage) => {
  const { draw } = stage;
  const admission = drawRawAdmission(draw, stage.key());
  const seen = await stage.admit(admission);
  if (seen === undefined) return;
  let former: Holder | undefined;
  for (let round = draw.whole(1, 3); round > 0 && !stage.ending.aborted; round--) {
    const start = draw.chance(0.8);
    const holder = await claimTogether(stage, admission, seen.workloadId, { leaseMs: 1_500, start });
    if (holder === undefined) return;
    const { worker, claim } = holder;
    if (!start && draw.chance(0.7)) await worker.settle(admission.applicationId, "work.start", fenceOf(claim));
    worker.run(claim);
    if (draw.chance(0.5))
      await worker.settle(admission.applicationId, "work.checkpoint", { ...fenceOf(claim), state: { round } });
    const late = former;
    const tries = draw.shuffled(endings(stage, admission, holder)).slice(0, draw.whole(2, 5));
    if (late !== undefined && draw.chance(0.7))
      tries.push(() =>
        late.worker.settle(admission.applicationId, "work.complete", { ...fenceOf(late.claim), output: "too late" }),
      );
    await Promise.all(
      tries.map(async (attempt) => {
        await stage.pause(draw.chance(0.6) ? 0 : draw.whole(1, 50));
        return attempt();
      }),
    );
    former = holder;
  }
};

/** A heartbeat and a report at the very instant at which the lease runs out, and a successor that waits for it. */
export const raceExpiry: Play = async (stage) => {
  const { draw, clock } = stage;
  const deadline = draw.pick(["heartbeatMs", "executionMs", "claimMs", "overallMs"] as const);
  const rest = draw.chance(0.4) ? { timeouts: { [deadline]: draw.whole(500, 900) } } : {};
  const admission = drawRawAdmission(draw, stage.key(), rest);
  const app = admission.applicationId;
  const seen = await stage.admit(admission);
  if (seen === undefined) return;
  const leaseMs = draw.whole(400, 900);
  const holder = await claimTogether(stage, admission, seen.workloadId, { leaseMs, start: draw.chance(0.7) });
  if (holder === undefined) return;
  const { worker, claim } = holder;
  worker.run(claim);
  await stage.pause(claim.expiresAt - clock.now() + draw.whole(-60, 90));
  const fence = fenceOf(claim);
  await Promise.all([
    worker.settle(app, "work.heartbeat", { ...fence, extendMs: leaseMs }),
    draw.chance(0.5) ? worker.settle(app, "work.complete", { ...fence, output: "in time?" }) : undefined,
    draw.chance(0.3) ? worker.settle(app, "work.checkpoint", { ...fence, state: "in time?" }) : undefined,
    claimTogether(stage, admission, seen.workloadId, { leaseMs: 1_000, start: true }),
  ]);
  await stage.pause(draw.whole(300, 1_200));
  const next = await claimTogether(stage, admission, seen.workloadId, { leaseMs: 1_000, start: true });
  // The first holder wakes up and goes on as if nothing had happened.
  await Promise.all([
    worker.settle(app, "work.complete", { ...fence, output: "from the grave" }),
    worker.settle(app, "work.fail", { ...fence, kind: "timeout", error: "from the grave" }),
    next?.worker.settle(app, "work.complete", { ...fenceOf(next.claim), output: "by the successor" }),
  ]);
};

/** Work of a worker process that is cancelled, timed out or re-armed while it runs. */
export const disturbWork: Play = async (stage) => {
  const { draw } = stage;
  const act = draw.pick(["steps", "finish", "ignore"] as const);
  const admission = drawAdmission(draw, stage.key(), { input: { act, ms: draw.whole(800, 3_000), steps: 2 } });
  const seen = await stage.admit(admission);
  if (seen === undefined) return;
  await stage.pause(draw.whole(100, 1_500));
  const calls = draw.shuffled(["cancel", "cancel", "timeout", "retry"] as const).slice(0, draw.whole(1, 3));
  await Promise.all(calls.map((call) => stage.operate(call, seen)));
};
