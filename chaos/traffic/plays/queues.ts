import { drawRawAdmission } from "../requests.ts";
import type { Play } from "../stage.ts";
import { claimTogether, fenceOf } from "./holders.ts";

/** Many workers ask one queue for work at once, some of them twice with one requestId, and finish or forget what they get. */
export const shareQueue: Play = async (stage) => {
  const { draw } = stage;
  const base = drawRawAdmission(draw, stage.key(), { capabilities: ["crowd"] });
  const batch = Array.from({ length: draw.whole(4, 10) }, () => ({
    ...base,
    idempotencyKey: stage.key(),
    priority: draw.whole(0, 2),
  }));
  await stage.admitMany(batch);
  const app = base.applicationId;
  await Promise.all(
    stage.raw.map(async (worker) => {
      for (let round = 0; round < 2 && !stage.ending.aborted; round++) {
        const ask = {
          capabilities: base.capabilities,
          max: draw.whole(1, 4),
          waitMs: draw.whole(0, 300),
          leaseMs: draw.whole(600, 1_500),
          start: true,
        };
        for (const claim of await worker.claimNext(app, ask, draw.chance(0.3) ? 2 : 1)) {
          worker.run(claim);
          // One in five is forgotten: only its lease ends it.
          if (draw.chance(0.2)) continue;
          await worker.settle(app, "work.complete", { ...fenceOf(claim), output: { by: worker.name } });
        }
      }
    }),
  );
};

/** Work that fails for good and is re-armed by several operators at once, until no more is granted. */
export const rearmWork: Play = async (stage) => {
  const { draw } = stage;
  const admission = drawRawAdmission(draw, stage.key(), {
    retryPolicy: { maxAttempts: draw.whole(1, 2), initialDelayMs: 0, backoff: "fixed", retryOn: [] },
    ...(draw.chance(0.2) ? { timeouts: { queueMs: 2_000 } } : {}),
  });
  const app = admission.applicationId;
  const seen = await stage.admit(admission);
  if (seen === undefined) return;
  for (let round = 0; round < 4 && !stage.ending.aborted; round++) {
    const holder = await claimTogether(stage, admission, seen.workloadId, { leaseMs: 1_200, start: true });
    if (holder === undefined) break;
    holder.worker.run(holder.claim);
    const fence = fenceOf(holder.claim);
    if (round > 0 && draw.chance(0.3)) {
      await holder.worker.settle(app, "work.complete", { ...fence, output: "at last" });
      break;
    }
    await holder.worker.settle(app, "work.fail", { ...fence, kind: "broken_input", error: "no use" });
    const calls = Array.from({ length: draw.whole(1, 3) }, () => stage.operate("retry", seen));
    if (draw.chance(0.15)) calls.push(stage.operate("cancel", seen));
    await Promise.all(calls);
  }
};

/** Two workloads are reported finished under one result id by two workers at once. */
export const shareResult: Play = async (stage) => {
  const { draw } = stage;
  const first = drawRawAdmission(draw, stage.key());
  const second = { ...first, idempotencyKey: stage.key() };
  const resultId = `shared-${draw.word()}`;
  await Promise.all(
    [first, second].map(async (admission) => {
      const seen = await stage.admit(admission);
      if (seen === undefined) return;
      const how = { leaseMs: 1_500, start: true };
      const holder = await claimTogether(stage, admission, seen.workloadId, how);
      if (holder === undefined) return;
      const { worker, claim } = holder;
      worker.run(claim);
      const report = { ...fenceOf(claim), resultId, output: { shared: true } };
      const reply = await worker.settle(admission.applicationId, "work.complete", report);
      if (reply.code === "WORKLOAD_RESULT_DUPLICATE")
        await worker.settle(admission.applicationId, "work.complete", { ...fenceOf(claim), output: { own: true } });
    }),
  );
};
