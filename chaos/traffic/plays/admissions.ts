import type { Outcome } from "../../history.ts";
import { drawAdmission, drawRawAdmission, workloadIdOf, type Admission } from "../requests.ts";
import type { Play, Stage } from "../stage.ts";
import { fenceOf } from "./holders.ts";

/** The same key, and something else in the request: it must never be taken for the same one. */
function another(stage: Stage, admission: Admission): Admission {
  const { draw } = stage;
  return draw.pick([
    { ...admission, input: { act: "finish", ms: 1, other: draw.word() } },
    { ...admission, priority: admission.priority + 1 },
    { ...admission, definitionId: "another" },
    { ...admission, capabilities: [...admission.capabilities, "gpu", "another"] },
    { ...admission, timeouts: { overallMs: 60_000 } },
  ] as const);
}

const revisionOf = (outcome: Outcome): string | undefined =>
  outcome.kind === "acknowledged" ? outcome.revision : undefined;

/** Several callers admit one key at several nodes at once, with the same body or with different ones. */
export const admitOneKey: Play = async (stage) => {
  const { draw, targets } = stage;
  const admission = drawAdmission(draw, stage.key());
  const other = draw.chance(0.5) ? another(stage, admission) : admission;
  const shared = stage.requestId();
  const bodies = Array.from({ length: draw.whole(2, 6) }, () => (draw.chance(0.6) ? admission : other));
  const outcomes = await Promise.all(
    bodies.map(async (body) => {
      await stage.pause(draw.chance(0.7) ? 0 : draw.whole(1, 40));
      // A caller that sends one request twice at once must get one answer for both.
      const sent = body === admission && draw.chance(0.3) ? { ...body, requestId: shared } : body;
      return targets.settle(stage.admitCall(sent));
    }),
  );
  if (draw.chance(0.3)) await targets.settle(stage.admitCall(admission));
  const revision = outcomes.map(revisionOf).find((value) => value !== undefined);
  if (revision !== undefined && draw.chance(0.5))
    await stage.read({ workloadId: workloadIdOf(admission) }, admission.requestedBy, revision);
};

/** A batch into the queue of the worker processes, urgent and less urgent, bounded in time and not. */
export const fillQueue: Play = async (stage) => {
  const { draw } = stage;
  const requestedBy = drawAdmission(draw, "").requestedBy;
  const batch = Array.from({ length: draw.whole(3, 12) }, () => {
    const timeouts = draw.chance(0.25)
      ? draw.pick([
          { executionMs: draw.whole(100, 1_500) },
          { overallMs: draw.whole(500, 6_000) },
          { queueMs: draw.whole(300, 4_000) },
          { heartbeatMs: draw.whole(900, 2_500), claimMs: draw.whole(500, 1_500) },
        ])
      : undefined;
    return drawAdmission(draw, stage.key(), { requestedBy, ...(timeouts === undefined ? {} : { timeouts }) });
  });
  await stage.admitMany(batch);
  await stage.pause(draw.whole(200, 1_500));
};

/** Work that may not be claimed before its time, and is tried early. */
export const delayWork: Play = async (stage) => {
  const { draw, clock } = stage;
  const notBefore = Math.round(clock.now()) + draw.whole(200, 3_000);
  const early = draw.chance(0.5);
  const make = early ? drawRawAdmission : drawAdmission;
  const admission = make(draw, stage.key(), { notBefore });
  const seen = await stage.admit(admission);
  if (seen === undefined || !early) return;
  const [worker] = stage.someRaw(1);
  if (worker === undefined) return;
  const how = { leaseMs: 1_500, capabilities: admission.capabilities, start: true };
  while (!stage.ending.aborted && clock.now() < notBefore + 6_000) {
    const claim = await worker.claim(admission.applicationId, seen.workloadId, how);
    if (claim !== undefined) {
      worker.run(claim);
      await worker.settle(admission.applicationId, "work.complete", { ...fenceOf(claim), output: "late enough" });
      return;
    }
    await stage.pause(draw.whole(50, 400));
  }
};

/** Work that waits for other work, which may or may not succeed. */
export const chainWork: Play = async (stage) => {
  const { draw } = stage;
  const first = drawAdmission(draw, stage.key());
  const { applicationId, requestedBy } = first;
  const chain = [first];
  for (let length = draw.whole(1, 3); length > 0; length--) {
    const last = chain.at(-1) ?? first;
    const state = draw.chance(0.85) ? {} : { requiredState: draw.pick(["DEAD_LETTER", "CANCELLED"] as const) };
    const rest = {
      applicationId,
      requestedBy,
      dependencies: [{ workloadId: workloadIdOf(last), ...state }],
      // What waits for something that never comes must end as well.
      timeouts: { overallMs: draw.whole(4_000, 15_000) },
    };
    chain.push(drawAdmission(draw, stage.key(), rest));
  }
  // The last may well be admitted first.
  const order = draw.chance(0.5) ? chain : draw.shuffled(chain);
  await Promise.all(order.map((admission) => stage.admit(admission)));
  if (draw.chance(0.3)) await stage.operate("cancel", { workloadId: workloadIdOf(draw.pick(chain) ?? first) });
};
