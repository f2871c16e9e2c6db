import type { Refusal } from "../errors.ts";
import type { WorkloadRecord } from "./record.ts";

/** A payload to be kept beside the record, in the same commit. */
export interface PayloadPut {
  readonly slot: string;
  readonly json: string;
}

/** What one commit writes. Data only: somebody else makes it happen, guarded by the version it was decided on. */
export interface Change {
  /** What was done, for provenance: `admit`, `claim`, `expire` … */
  readonly action: string;
  /** The next version of the record. */
  readonly record: WorkloadRecord;
  readonly payloads: readonly PayloadPut[];
  /** A caller's result id to be reserved within the tenant's application (contract 1.8). */
  readonly reservedResultId?: string;
  /** Dependencies whose state could still change: the commit must find them as they were seen. */
  readonly assertedDependencies: readonly string[];
  /** Leads towards the end: may use the room that every record keeps for that (contract 5.2). */
  readonly reserve: boolean;
  /** Tells the repeat of a request what its first try did: a fencing token, a checkpoint's number, a history length. */
  readonly reference: number;
}

/**
 * What the rules say to a command. A refusal may carry a change: it is committed first, and the refusal is told only
 * when it is durable (contract 1.6: the call expires the workload and is then refused).
 */
export type Decision<Answer> =
  | { readonly ok: true; readonly answer: Answer; readonly change?: Change }
  | { readonly ok: false; readonly error: Refusal; readonly change?: Change };

/** A change with everything but the action and the record left at its usual. */
export const changeOf = (
  action: string,
  record: WorkloadRecord,
  rest: Partial<Omit<Change, "action" | "record">> = {},
): Change => ({
  action,
  record,
  payloads: [],
  assertedDependencies: [],
  reserve: true,
  reference: record.history.length,
  ...rest,
});

/** A refusal that changes nothing. */
export const refused = (error: Refusal): { readonly ok: false; readonly error: Refusal } => ({
  ok: false,
  error,
});
