import type { WorkerLifecycle, WorkerRecord } from "./record.ts";
import { activeOf, claimIdsOf, shownLifecycle, type WorkerSeen } from "./slots.ts";

/** A worker as the surfaces show it (contract 2.1): with what its slots tell. */
export interface WorkerView extends Omit<WorkerRecord, "concurrency" | "lifecycle" | "superseded" | "grants"> {
  readonly capacity: { readonly concurrency: number; readonly active: number };
  readonly lifecycle: WorkerLifecycle;
  readonly claims: readonly string[];
}

/** Shows a worker. */
export function renderWorker(seen: WorkerSeen): WorkerView {
  const { concurrency, lifecycle: _committed, superseded: _remembered, grants: _known, ...shown } = seen.record;
  return {
    ...shown,
    capacity: { concurrency, active: activeOf(seen.slots) },
    lifecycle: shownLifecycle(seen),
    claims: claimIdsOf(seen.slots),
  };
}
