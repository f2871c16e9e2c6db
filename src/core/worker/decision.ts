import { refuse, type Refusal } from "../errors.ts";
import type { PoolRecord, WorkerRecord } from "./record.ts";

/**
 * What the rules say to a command on a worker. `record` is the next version, to be committed on the one that was
 * decided on; without it there is nothing to commit. A refusal may carry one: it is committed before it is told.
 */
export type WorkerDecision<Answer> =
  | { readonly ok: true; readonly answer: Answer; readonly record?: WorkerRecord }
  | { readonly ok: false; readonly error: Refusal; readonly record?: WorkerRecord };

/** The same for a pool. */
export type PoolDecision<Answer> =
  | { readonly ok: true; readonly answer: Answer; readonly record?: PoolRecord }
  | { readonly ok: false; readonly error: Refusal };

/** A value that breaks a rule, and where it stands. */
export interface Issue {
  readonly path: string;
  readonly message: string;
}

/** The refusal of values; nothing when there are none that are bad. All of them are named. */
export function refuseIssues(issues: readonly Issue[]): Refusal | undefined {
  if (issues.length === 0) return undefined;
  return refuse("WORKER_INVALID", issues.map(({ path, message }) => `${path} ${message}`).join("; "), {
    paths: issues.map(({ path }) => path),
    issues,
  });
}
