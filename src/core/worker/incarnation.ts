import { refuse, type Refusal } from "../errors.ts";
import type { WorkerRecord } from "./record.ts";

/** How many ids of earlier incarnations are remembered; a process older than these is taken for a new one when it registers. */
export const SUPERSEDED_MAX = 32;

const refuseSuperseded = (record: WorkerRecord): Refusal =>
  refuse("WORKER_SUPERSEDED", `a later process took the name of ${record.workerId}`, {
    workerId: record.workerId,
    incarnation: record.incarnation.number,
  });

/** Refuses a call of any process but the current one; a call that names none is let through. */
export const checkIncarnation = (record: WorkerRecord, incarnation: string | undefined): Refusal | undefined =>
  incarnation === undefined || incarnation === record.incarnation.id ? undefined : refuseSuperseded(record);

/** Refuses the registration of a process that was superseded. */
export const checkSuccessor = (record: WorkerRecord, incarnation: string | undefined): Refusal | undefined =>
  incarnation !== undefined && record.superseded.includes(incarnation) ? refuseSuperseded(record) : undefined;

/** The record's incarnation and its predecessors once this process has registered; those of the record when it is the current one. */
export function withIncarnation(
  record: WorkerRecord,
  incarnation: string | undefined,
): Pick<WorkerRecord, "incarnation" | "superseded"> {
  const { incarnation: current, superseded } = record;
  if (incarnation === undefined || incarnation === current.id) return { incarnation: current, superseded };
  return {
    incarnation: { id: incarnation, number: current.number + 1 },
    superseded: [...superseded, current.id].slice(-SUPERSEDED_MAX),
  };
}
