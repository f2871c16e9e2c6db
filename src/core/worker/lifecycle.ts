import { refuse, type Refusal } from "../errors.ts";
import type { WorkerLifecycle } from "./record.ts";

/** The total table of contract 2.2: what one incarnation's life may lead to. A new incarnation begins at REGISTERED. */
export const workerMoves: Readonly<Record<WorkerLifecycle, readonly WorkerLifecycle[]>> = {
  REGISTERED: ["READY"],
  READY: ["BUSY", "DRAINING", "OFFLINE"],
  BUSY: ["READY", "DRAINING", "OFFLINE"],
  DRAINING: ["OFFLINE"],
  OFFLINE: ["RECOVERING"],
  RECOVERING: ["READY", "OFFLINE"],
};

/** Whether the table lets a worker go from one lifecycle to another. */
export const mayMove = (from: WorkerLifecycle, to: WorkerLifecycle): boolean => workerMoves[from].includes(to);

/** The refusal of a move that the table does not have. */
export const denyWorkerMove = (from: WorkerLifecycle, to: WorkerLifecycle): Refusal =>
  refuse("WORKER_TRANSITION_DENIED", `a worker that is ${from} can't become ${to}`, { lifecycle: from });
