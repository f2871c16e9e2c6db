import { refuse } from "../errors.ts";
import type { WorkerDecision } from "./decision.ts";
import { checkIncarnation } from "./incarnation.ts";
import { denyWorkerMove, mayMove } from "./lifecycle.ts";
import type { WorkerRecord } from "./record.ts";
import { claimIdsOf, shownLifecycle, type WorkerSeen } from "./slots.ts";

/** Who asks: the worker itself says which process it is, an operator does not. */
export interface WorkerCall {
  readonly incarnation?: string | undefined;
}

/** A draining worker gets no new claims, and is OFFLINE when the last one ends (contract 2.2). Draining it again changes nothing. */
export function decideDrain(seen: WorkerSeen, call: WorkerCall): WorkerDecision<WorkerRecord> {
  const { record } = seen;
  const superseded = checkIncarnation(record, call.incarnation);
  if (superseded !== undefined) return { ok: false, error: superseded };
  if (record.lifecycle === "DRAINING") return { ok: true, answer: record };
  const shown = shownLifecycle(seen);
  if (!mayMove(shown, "DRAINING")) return { ok: false, error: denyWorkerMove(shown, "DRAINING") };
  const next: WorkerRecord = { ...record, lifecycle: "DRAINING" };
  return { ok: true, answer: next, record: next };
}

/** Lets a worker that was given up, or that was drained, be heard again (contract 2.2). Repeated, it changes nothing. */
export function decideRecoverWorker(seen: WorkerSeen, call: WorkerCall): WorkerDecision<WorkerRecord> {
  const { record } = seen;
  const superseded = checkIncarnation(record, call.incarnation);
  if (superseded !== undefined) return { ok: false, error: superseded };
  if (record.lifecycle === "RECOVERING") return { ok: true, answer: record };
  const shown = shownLifecycle(seen);
  if (!mayMove(shown, "RECOVERING")) return { ok: false, error: denyWorkerMove(shown, "RECOVERING") };
  const next: WorkerRecord = { ...record, lifecycle: "RECOVERING" };
  return { ok: true, answer: next, record: next };
}

/**
 * Lets a worker without claims go (contract 2.2). Answers whether its record may be deleted now, on the very version that
 * was decided on and in one commit with the pools that it leaves (see `withoutMember`). A READY worker may not: a claim
 * could be on its way that changes a slot and not the record. It is closed first; once that is committed, decide again.
 */
export function decideRemove({ record, slots }: WorkerSeen, call: WorkerCall): WorkerDecision<boolean> {
  const superseded = checkIncarnation(record, call.incarnation);
  if (superseded !== undefined) return { ok: false, error: superseded };
  const claims = claimIdsOf(slots);
  if (claims.length > 0)
    return {
      ok: false,
      error: refuse("WORKER_BUSY", `the worker holds ${claims.length} claims`, { active: claims.length }),
    };
  if (record.lifecycle === "READY") return { ok: true, answer: false, record: { ...record, lifecycle: "DRAINING" } };
  return { ok: true, answer: true };
}
