import { compareText } from "../../base/text-order.ts";
import { refuse, type Refusal } from "../errors.ts";
import {
  findIneligibility,
  matchingLabels,
  type Ineligibility,
  type PlacementNeed,
  type PoolSeen,
} from "./eligibility.ts";
import { placementIdOf } from "./identity.ts";
import type { Labels, PlacementDecision } from "./record.ts";
import { activeOf, type WorkerSeen } from "./slots.ts";

/** Most workers that an explanation names one by one, and most that a claim's evidence does. */
export const EXPLAINED_WORKERS_MAX = 20;

interface Ranked {
  readonly workerId: string;
  readonly matched: number;
  readonly active: number;
  readonly concurrency: number;
}

const rank = (seen: WorkerSeen, affinity: Labels): Ranked => ({
  workerId: seen.record.workerId,
  matched: matchingLabels(seen.record.labels, affinity).length,
  active: activeOf(seen.slots),
  concurrency: seen.record.concurrency,
});

/** Contract 2.3: most affinity labels matched, then least active, then most concurrency, then workerId. */
const compareRank = (left: Ranked, right: Ranked): number =>
  right.matched - left.matched ||
  left.active - right.active ||
  right.concurrency - left.concurrency ||
  compareText(left.workerId, right.workerId);

/** Chooses a worker (contract 2.3). The order of the candidates does not matter. Without an eligible one nobody is selected. */
export function place(
  need: PlacementNeed,
  candidates: readonly WorkerSeen[],
  context: { readonly pool?: PoolSeen | undefined; readonly evaluatedAt: number },
): PlacementDecision {
  const eligible = candidates.filter((seen) => findIneligibility(seen, need, context.pool) === undefined);
  const best = eligible.map((seen) => rank(seen, need.placement?.affinity ?? {})).sort(compareRank)[0];
  const decided = {
    workloadId: need.workloadId,
    eligibleWorkers: eligible.map(({ record }) => record.workerId).sort(),
    ...(best === undefined ? {} : { selectedWorker: best.workerId }),
    evaluatedAt: context.evaluatedAt,
  };
  const reason =
    best === undefined
      ? `none of ${candidates.length} workers is eligible`
      : `best of ${eligible.length}: ${best.matched} affinity labels, ${best.active} of ${best.concurrency} active`;
  return { decisionId: placementIdOf(decided), ...decided, reason };
}

/** Why one worker may not run a workload now; without `ineligible` it may. */
export interface WorkerVerdict {
  readonly workerId: string;
  readonly ineligible?: Ineligibility;
}

/** Who could run a workload, and why the others do not (contract 1.13). */
export interface PlacementExplanation {
  readonly eligible: number;
  readonly ineligible: number;
  /** By workerId, {@link EXPLAINED_WORKERS_MAX} at most: the eligible first, so that the list never hides that there are some. */
  readonly workers: readonly WorkerVerdict[];
}

/** Explains what {@link place} would find. */
export function explainPlacement(
  need: PlacementNeed,
  candidates: readonly WorkerSeen[],
  pool: PoolSeen | undefined,
): PlacementExplanation {
  const verdicts = candidates
    .map((seen): WorkerVerdict => {
      const ineligible = findIneligibility(seen, need, pool);
      return { workerId: seen.record.workerId, ...(ineligible === undefined ? {} : { ineligible }) };
    })
    .sort(
      (left, right) =>
        Number(left.ineligible !== undefined) - Number(right.ineligible !== undefined) ||
        compareText(left.workerId, right.workerId),
    );
  const eligible = verdicts.filter(({ ineligible }) => ineligible === undefined).length;
  return {
    eligible,
    ineligible: verdicts.length - eligible,
    workers: verdicts.slice(0, EXPLAINED_WORKERS_MAX),
  };
}

/** The refusal when nobody may run the workload. */
export const refuseNoWorker = (explanation: PlacementExplanation): Refusal =>
  refuse("MESH_NO_ELIGIBLE_WORKER", `none of ${explanation.ineligible} workers may run the workload now`, {
    workers: explanation.workers,
    ineligible: explanation.ineligible,
  });

/** The refusal when the worker that was named may not run the workload. */
export const denyPlacement = (workerId: string, ineligible: Ineligibility): Refusal =>
  refuse("MESH_PLACEMENT_DENIED", `${workerId} may not run the workload: ${ineligible.message}`, {
    workerId,
    ineligible,
  });

/** What a claim's event keeps of the decision behind it, bounded however many workers there are. */
export const evidenceOfPlacement = (decision: PlacementDecision): { readonly [name: string]: string } => ({
  placement: decision.decisionId,
  placementReason: decision.reason,
  eligibleCount: String(decision.eligibleWorkers.length),
  eligibleWorkers: decision.eligibleWorkers.slice(0, EXPLAINED_WORKERS_MAX).join(" "),
  evaluatedAt: String(decision.evaluatedAt),
});
