import { assert } from "../../base/assert.ts";
import { refuse, type Refusal } from "../errors.ts";
import type { Attempt, WorkloadEvent, WorkloadRecord } from "./record.ts";
import { eventTypes, mayGo, type WorkloadState } from "./states.ts";

/** The instant a decision is taken at: a `now` earlier than the last event is raised to it (contract 1.4). */
export const instantOf = (record: WorkloadRecord, now: number): number =>
  Math.max(now, record.history.at(-1)?.at ?? now);

/** An instant some ms after another; saturates at the last one that a whole number can name. */
export const laterBy = (at: number, lengthMs: number): number => Math.min(at + lengthMs, Number.MAX_SAFE_INTEGER);

export interface Move {
  readonly to: WorkloadState;
  readonly actor: string;
  /** From {@link instantOf}. */
  readonly at: number;
  readonly evidence?: { readonly [name: string]: string | number | undefined };
}

const textsOf = (evidence: Move["evidence"]): WorkloadEvent["evidence"] => {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(evidence ?? {})) if (value !== undefined) texts[name] = String(value);
  return texts;
};

/** Moves a record along the table and appends the event. The caller has asked {@link mayGo}: a move that is not there is a bug. */
export function applyMove(record: WorkloadRecord, move: Move): WorkloadRecord {
  assert(mayGo(record.state, move.to), `no transition from ${record.state} to ${move.to}`);
  const event: WorkloadEvent = {
    sequence: record.history.length + 1,
    type: eventTypes[move.to],
    from: record.state,
    to: move.to,
    actor: move.actor,
    at: move.at,
    evidence: textsOf(move.evidence),
  };
  return {
    ...record,
    state: move.to,
    history: [...record.history, event],
    updatedAt: Math.max(record.updatedAt, move.at),
  };
}

/** The refusal of a move that the table does not have. */
export const denyMove = (record: WorkloadRecord, what: string): Refusal =>
  refuse("WORKLOAD_TRANSITION_DENIED", `a workload in state ${record.state} can't be ${what}`, {
    state: record.state,
  });

/** Replaces fields of the last attempt. */
export function withLastAttempt(record: WorkloadRecord, fields: Partial<Attempt>): WorkloadRecord {
  const last = record.attempts.at(-1);
  assert(last !== undefined, "a claimed workload has an attempt");
  return { ...record, attempts: [...record.attempts.slice(0, -1), { ...last, ...fields }] };
}

/** Drops the current claim. */
export function withoutClaim(record: WorkloadRecord): WorkloadRecord {
  const { currentClaim: _dropped, ...rest } = record;
  return rest;
}

/** Drops the claim and ends its attempt, in one go. */
export const endAttempt = (record: WorkloadRecord, fields: Partial<Attempt>): WorkloadRecord =>
  withoutClaim(withLastAttempt(record, fields));
