import type { Subject } from "../../../src/core/subject.ts";
import { approvers, drawAdmission, drawRawAdmission, type Admission } from "../requests.ts";
import type { Play, Seen, Stage } from "../stage.ts";
import { fenceOf } from "./holders.ts";

const LEASE_MS = 1_200;

/** What may be tried on gated work, all at once. */
function attempts(stage: Stage, admission: Admission, seen: Seen): readonly (() => Promise<unknown>)[] {
  const { draw } = stage;
  const requester: Subject = admission.requestedBy;
  const claim = async (): Promise<void> => {
    const [worker] = stage.someRaw(1);
    const how = { leaseMs: LEASE_MS, capabilities: admission.capabilities, start: draw.chance(0.5) };
    const claimed = await worker?.claim(admission.applicationId, seen.workloadId, how);
    if (worker === undefined || claimed === undefined) return;
    const fence = fenceOf(claimed);
    if (!how.start) await worker.settle(admission.applicationId, "work.start", fence);
    worker.run(claimed);
    await stage.pause(draw.whole(0, 300));
    await worker.settle(admission.applicationId, "work.complete", { ...fence, output: { approved: true } });
  };
  return draw.shuffled([
    () => stage.decide(seen, "approved"),
    ...(draw.chance(0.6) ? [() => stage.decide(seen, "rejected")] : []),
    ...(draw.chance(0.5) ? [() => stage.decide(seen, draw.chance(0.5) ? "approved" : "rejected")] : []),
    ...(draw.chance(0.2) ? [() => stage.decide(seen, "approved", { by: requester })] : []),
    ...(draw.chance(0.2) ? [() => stage.decide(seen, "approved", { inputHash: "0".repeat(64) })] : []),
    ...(draw.chance(0.3) ? [() => stage.operate("cancel", seen)] : []),
    ...(draw.chance(0.2) ? [() => stage.operate("timeout", seen)] : []),
    ...(draw.chance(0.2) ? [() => stage.operate("retry", seen)] : []),
    claim,
    claim,
  ]);
}

/** Approve against reject against claim against cancel against the approval's own deadline. */
export const raceApproval: Play = async (stage) => {
  const { draw, clock } = stage;
  const approvalMs = draw.chance(0.5) ? draw.whole(150, 2_000) : undefined;
  const some = draw.chance(0.3) ? { approvers: approvers.slice(0, 2) } : {};
  const quorum = draw.chance(0.2) ? { requiredApprovals: 2 } : {};
  const admission = drawRawAdmission(draw, stage.key(), {
    approval: { approverKinds: ["human"], ...some, ...quorum },
    ...(approvalMs === undefined ? {} : { timeouts: { approvalMs } }),
    ...(draw.chance(0.2) ? { notBefore: Math.round(clock.now()) + 500 } : {}),
  });
  const begun = clock.now();
  const seen = await stage.admit(admission);
  if (seen === undefined) return;
  const tries = attempts(stage, admission, seen);
  // Around the instant at which it expires, or as soon as it is there.
  const wait = approvalMs !== undefined && draw.chance(0.7) ? begun + approvalMs - clock.now() - 40 : 0;
  await stage.pause(wait);
  await Promise.all(
    tries.map(async (attempt) => {
      await stage.pause(draw.whole(0, wait > 0 ? 120 : 30));
      await attempt();
    }),
  );
  if (draw.chance(0.3)) await stage.decide(seen, draw.chance(0.5) ? "approved" : "rejected");
};

/** Gated work for the worker processes: they must not run it before somebody said so. */
export const gateWork: Play = async (stage) => {
  const { draw } = stage;
  const admission = drawAdmission(draw, stage.key(), {
    approval: { approverKinds: ["human", "service"] },
    ...(draw.chance(0.4) ? { timeouts: { approvalMs: draw.whole(500, 3_000) } } : {}),
  });
  const seen = await stage.admit(admission);
  if (seen === undefined) return;
  await stage.pause(draw.whole(0, 1_500));
  const verdicts = draw.chance(0.4) ? (["approved", "rejected"] as const) : (["approved", "approved"] as const);
  await Promise.all(verdicts.map((verdict) => stage.decide(seen, verdict)));
  if (draw.chance(0.2)) await stage.operate("cancel", seen);
};
