import { laterBy } from "../workload/transition.ts";
import type { WorkerDecision } from "./decision.ts";
import type { WorkerRecord } from "./record.ts";
import { shownLifecycle, type WorkerSeen } from "./slots.ts";

/** When a worker is given up unless it is heard before, epoch ms. */
export const silentAt = (record: WorkerRecord): number => laterBy(record.lastSeen, record.heartbeatTimeoutMs);

/**
 * The pass over workers, for one of them on its committed version (contract 2.2, detectFailures): one that was not heard
 * for its time-out is OFFLINE and UNHEALTHY; one that has drained is OFFLINE. Its leases are not touched. Answers whether
 * there was anything to do.
 */
export function decideOffline(seen: WorkerSeen, now: number): WorkerDecision<boolean> {
  const { record } = seen;
  if (record.lifecycle === "OFFLINE") return { ok: true, answer: false };
  if (silentAt(record) <= now)
    return { ok: true, answer: true, record: { ...record, lifecycle: "OFFLINE", health: "UNHEALTHY" } };
  if (shownLifecycle(seen) === "OFFLINE")
    return { ok: true, answer: true, record: { ...record, lifecycle: "OFFLINE" } };
  return { ok: true, answer: false };
}
