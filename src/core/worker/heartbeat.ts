import { refuse, type Refusal } from "../errors.ts";
import { sameValue } from "../workload/same-value.ts";
import type { WorkerDecision } from "./decision.ts";
import { checkIncarnation } from "./incarnation.ts";
import type { WorkerHealth, WorkerRecord } from "./record.ts";
import { activeOf, holdsOf, type WorkerSeen } from "./slots.ts";
import { renderWorker, type WorkerView } from "./worker-view.ts";

/** How far a worker's clock may be behind what was last heard from it, ms (contract 2.2). */
export const CLOCK_TOLERANCE_MS = 5000;

/** What a worker reports (contract 2.2), its shape already checked. */
export interface WorkerHeartbeat {
  readonly workerId: string;
  readonly version: string;
  readonly capabilityVersion: number;
  /** How much it believes to run: for its own logs, since the authority counts slots. */
  readonly active: number;
  readonly health: WorkerHealth;
  /** Its own clock, epoch ms. */
  readonly timestamp: number;
  /** Ids of the claims that it runs. */
  readonly runningClaims: readonly string[];
  /** Absent: not checked. */
  readonly incarnation?: string | undefined;
}

export interface WorkerHeartbeatAnswer {
  readonly worker: WorkerView;
  /** Claims that it runs and does not hold: stop them. */
  readonly stopClaims: readonly string[];
  /** Claims that it holds and does not run. */
  readonly missingClaims: readonly string[];
}

/** Names in which a call differs from the worker as it is registered. */
export const differingNames = (
  record: WorkerRecord,
  call: Pick<WorkerHeartbeat, "workerId" | "version" | "capabilityVersion">,
): readonly string[] =>
  (["workerId", "version", "capabilityVersion"] as const).filter((name) => record[name] !== call[name]);

function checkHeartbeat(record: WorkerRecord, heartbeat: WorkerHeartbeat): Refusal | undefined {
  const superseded = checkIncarnation(record, heartbeat.incarnation);
  if (superseded !== undefined) return superseded;
  const fields = differingNames(record, heartbeat);
  if (fields.length > 0)
    return refuse("WORKER_HEARTBEAT_REJECTED", `${fields.join(" and ")} differ from what is registered`, { fields });
  if (heartbeat.timestamp + CLOCK_TOLERANCE_MS < record.lastSeen)
    return refuse(
      "WORKER_CLOCK_INVALID",
      `the worker's clock is ${record.lastSeen - heartbeat.timestamp} ms behind what was last heard from it`,
      { timestamp: heartbeat.timestamp, lastSeen: record.lastSeen },
    );
  if (record.lifecycle === "OFFLINE")
    return refuse("WORKER_RECOVERY_REQUIRED", "the worker is OFFLINE; it must reconcile first", {
      lifecycle: record.lifecycle,
      health: record.health,
    });
  return undefined;
}

/** What is heard from a worker: it lives, and how it is (contract 2.2). */
export function decideWorkerHeartbeat(
  seen: WorkerSeen,
  heartbeat: WorkerHeartbeat,
  now: number,
): WorkerDecision<WorkerHeartbeatAnswer> {
  const { record, slots } = seen;
  const refusal = checkHeartbeat(record, heartbeat);
  if (refusal !== undefined) return { ok: false, error: refusal };
  const drained = record.lifecycle === "DRAINING" && activeOf(slots) === 0;
  const next: WorkerRecord = {
    ...record,
    lastSeen: Math.max(record.lastSeen, now),
    health: heartbeat.health,
    lifecycle: drained ? "OFFLINE" : record.lifecycle === "DRAINING" ? "DRAINING" : "READY",
  };
  const own = new Set(
    holdsOf(slots)
      .filter(({ incarnation }) => incarnation === record.incarnation.number)
      .map(({ claimId }) => claimId),
  );
  const running = new Set(heartbeat.runningClaims);
  const answer: WorkerHeartbeatAnswer = {
    worker: renderWorker({ record: next, slots }),
    stopClaims: [...running].filter((claimId) => !own.has(claimId)),
    missingClaims: [...own].filter((claimId) => !running.has(claimId)),
  };
  return sameValue(next, record) ? { ok: true, answer } : { ok: true, answer, record: next };
}
