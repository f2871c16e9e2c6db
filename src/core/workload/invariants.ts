import { recordChecks } from "./invariants-of-record.ts";
import { successionChecks } from "./invariants-of-succession.ts";
import type { WorkloadRecord } from "./record.ts";

/** What holds for every committed record. SPEC.md lists the same sentences, and a test compares both ways. */
export const recordInvariants = {
  I1: "The history is gapless: events 1, 2, 3 …, the first from CREATED, each from where the one before led, each of the type of where it leads.",
  I2: "Every event is a move of the transition table.",
  I3: "Times never run backwards: createdAt, each event in turn, updatedAt.",
  I4: "The state is where the last event led.",
  I5: "There is a claim exactly while the workload is held, at most one, and it is the last attempt's.",
  I6: "fencingToken = attemptCount = number of attempts = number of CLAIMED events, and attempt n has token n.",
  I7: "Attempts never exceed the budget, nor re-arms maxAttempts; re-arms are numbered 1, 2, 3 …",
  I8: "With an approval policy no attempt exists without an approved decision, committed before the first claim.",
  I9: "Only the last attempt may be live, and only while it is claimed; its status is the state's, and an ended attempt has its end.",
  I10: "A result exists exactly in SUCCEEDED; it is the last attempt's, which alone succeeded.",
  I11: "Checkpoints are numbered 1, 2, 3 … and follow the order of the attempts.",
  I12: "Identities are derived from what they name, and every attempt has the workload's input hash.",
  I13: "A decision is that of a permitted approver on this very input; REJECTED means a rejection, and an approval its quorum.",
} as const;

/** What holds between a committed record and the next one committed under its key. */
export const successionInvariants = {
  I14: "The identity and everything that was admitted never change.",
  I15: "History, attempts and checkpoints only grow; only the last attempt may change, and never after its end.",
  I16: "Fencing tokens strictly grow: by one with a claim, and with nothing else; no counter falls.",
  I17: "A claim changes by its renewal alone, and one that was dropped never comes back.",
  I18: "updatedAt never runs backwards.",
  I19: "A decision never changes, and neither does an approval given towards a quorum.",
  I20: "A result is stored at most once and never changes.",
  I21: "SUCCEEDED, CANCELLED and REJECTED are final; DEAD_LETTER is left by a re-arm or a cancellation only.",
  I22: "No commit leaves a workload in a state that it only passes through: CREATED, RECOVERING, FAILED, TIMED_OUT.",
  I23: "A record begins with one event, in READY or AWAITING_APPROVAL, and without attempts.",
} as const;

const findBroken = (checks: readonly (readonly [string, string | undefined])[]): readonly string[] =>
  checks.flatMap(([name, problem]) => (problem === undefined ? [] : [`${name}: ${problem}`]));

/** Every invariant of {@link recordInvariants} that a record breaks, as `I4: what is wrong`; empty when it is sound. */
export const findBrokenInvariants = (record: WorkloadRecord): readonly string[] =>
  findBroken(Object.entries(recordChecks).map(([name, check]) => [name, check(record)]));

/** Every invariant of {@link successionInvariants} that a commit breaks. `before`: absent when it creates the record. */
export const findBrokenSuccession = (before: WorkloadRecord | undefined, after: WorkloadRecord): readonly string[] =>
  findBroken(Object.entries(successionChecks).map(([name, check]) => [name, check(before, after)]));
