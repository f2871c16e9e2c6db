import { refuse } from "../errors.ts";
import { leaseEndsAt, type Instant } from "../workload/fence.ts";
import type { Claim, WorkloadRecord } from "../workload/record.ts";
import { heldStates } from "../workload/states.ts";
import type { WorkerDecision } from "./decision.ts";
import { differingNames } from "./heartbeat.ts";
import { checkIncarnation } from "./incarnation.ts";
import { meshClaimOf } from "./mesh-claim.ts";
import type { MeshClaim, Slot, WorkerRecord } from "./record.ts";
import { freeSlot, type WorkerSeen } from "./slots.ts";
import { renderWorker, type WorkerView } from "./worker-view.ts";

/** What a worker believes after it lost touch (contract 2.2), its shape already checked. */
export interface ReconcileCommand {
  readonly workerId: string;
  readonly version: string;
  readonly capabilityVersion: number;
  /** Ids of the claims that it believes to hold. */
  readonly knownClaims: readonly string[];
  /** Ids of the attempts that it runs. */
  readonly runningAttempts: readonly string[];
  /** Its own clock, epoch ms. */
  readonly timestamp: number;
  /** Absent: not checked. */
  readonly incarnation?: string | undefined;
}

/** A workload as it is committed, as far as a reconciliation looks at it. */
export type ReconcileFact = Pick<WorkloadRecord, "workloadId" | "state" | "currentClaim" | "attempts">;

/** The worker, and every workload that its slots, its running attempts or the index of its claims name, as far as it exists. */
export interface ReconcileSeen extends WorkerSeen {
  readonly workloads: readonly ReconcileFact[];
}

export interface Reconciliation {
  readonly worker: WorkerView;
  /** What it holds. */
  readonly authoritativeClaims: readonly MeshClaim[];
  /** What it believes to hold and does not. */
  readonly fencedClaims: readonly string[];
  /** Attempts to stop. */
  readonly cancelAttempts: readonly string[];
  /** Slots that go free in the same commit, each guarded by the version that was seen. */
  readonly freed: readonly Slot[];
}

interface Holding {
  readonly claim: Claim;
  readonly attemptId: string;
}

/** The claim that the worker holds on a workload. */
function holdingOf(fact: ReconcileFact, workerId: string): Holding | undefined {
  const { currentClaim: claim, state, attempts } = fact;
  const attempt = attempts.at(-1);
  if (claim === undefined || attempt === undefined || claim.workerId !== workerId) return undefined;
  return heldStates.includes(state) ? { claim, attemptId: attempt.attemptId } : undefined;
}

/** The slots whose claim has ended, freed. One that is only out of its lease stays: another node may still see it renewed. */
function freedSlots(slots: readonly Slot[], held: ReadonlySet<string>): readonly Slot[] {
  return slots.flatMap((slot) => {
    if (slot.held === undefined || held.has(slot.held.claimId)) return [];
    return freeSlot(slot, slot.held.claimId) ?? [];
  });
}

const reconciled = (record: WorkerRecord, slots: readonly Slot[], now: number): WorkerRecord => {
  const drained = record.lifecycle === "DRAINING" && slots.every(({ held }) => held === undefined);
  return {
    ...record,
    lastSeen: Math.max(record.lastSeen, now),
    health: "HEALTHY",
    lifecycle: drained ? "OFFLINE" : record.lifecycle === "DRAINING" ? "DRAINING" : "READY",
  };
};

/** Brings a worker that lost touch back into step with what is committed (contract 2.2). */
export function decideReconcile(
  seen: ReconcileSeen,
  command: ReconcileCommand,
  instant: Instant,
): WorkerDecision<Reconciliation> {
  const { record, workloads } = seen;
  const superseded = checkIncarnation(record, command.incarnation);
  if (superseded !== undefined) return { ok: false, error: superseded };
  const fields = differingNames(record, command);
  if (fields.length > 0)
    return {
      ok: false,
      error: refuse("WORKER_RECONCILIATION_DENIED", `${fields.join(" and ")} differ from what is registered`, {
        fields,
      }),
    };
  const former = new Set(
    seen.slots.flatMap(({ held }) =>
      held !== undefined && held.incarnation < record.incarnation.number ? [held.claimId] : [],
    ),
  );
  const holdings = workloads.flatMap((fact) => holdingOf(fact, record.workerId) ?? []);
  const authoritative = holdings.filter(
    ({ claim }) => leaseEndsAt(claim, instant.servingSince) > instant.now && !former.has(claim.claimId),
  );
  const authoritativeIds = new Set(authoritative.map(({ claim }) => claim.claimId));
  const running = new Set(
    workloads
      .filter(({ state, currentClaim }) => {
        return (state === "RUNNING" || state === "CHECKPOINTED") && currentClaim?.workerId === record.workerId;
      })
      .map(({ attempts }) => attempts.at(-1)?.attemptId),
  );
  const freed = freedSlots(seen.slots, new Set(holdings.map(({ claim }) => claim.claimId)));
  const slots = seen.slots.map((slot) => freed.find(({ index }) => index === slot.index) ?? slot);
  const next = reconciled(record, slots, instant.now);
  return {
    ok: true,
    answer: {
      worker: renderWorker({ record: next, slots }),
      authoritativeClaims: authoritative.map(({ claim, attemptId }) => meshClaimOf(claim, attemptId)),
      fencedClaims: [...new Set(command.knownClaims)].filter((claimId) => !authoritativeIds.has(claimId)),
      cancelAttempts: [...new Set(command.runningAttempts)].filter((attemptId) => !running.has(attemptId)),
      freed,
    },
    record: next,
  };
}
