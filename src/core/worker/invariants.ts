import { sameValue } from "../workload/same-value.ts";
import { workerIdOf } from "./identity.ts";
import { SUPERSEDED_MAX } from "./incarnation.ts";
import { mayMove } from "./lifecycle.ts";
import type { Slot, SlotHold } from "./record.ts";
import { activeOf, claimIdsOf, shownLifecycle, type WorkerSeen } from "./slots.ts";

/** What holds for every committed worker with its slots. SPEC.md lists the same sentences, and a test compares both ways. */
export const workerInvariants = {
  W1: "The id is derived from tenant, application and name.",
  W2: "Granted capabilities are declared ones; sets are sorted and without repetition.",
  W3: "No claim holds two slots of one owner, and every hold is of this worker and of an incarnation up to the current one.",
  W4: "The current incarnation is none of those it superseded, which are all different and 32 at most.",
} as const;

/** What holds between a committed worker with its slots and the next version of either. */
export const workerSuccessionInvariants = {
  W5: "Identity and registeredAt never change, and lastSeen never runs backwards.",
  W6: "Claims never grow above the concurrency: those beyond a lowered one may end, and until then none is added.",
  W7: "A slot is taken only while it is free, below the concurrency, and by the current incarnation.",
  W8: "Within an incarnation every move is one of the table, or the pass's to OFFLINE.",
  W9: "Incarnations are numbered 1, 2, 3 …; a new one begins REGISTERED with health UNKNOWN, and a superseded one never comes back.",
} as const;

type WorkerCheck = (seen: WorkerSeen) => string | undefined;
type WorkerSuccessionCheck = (before: WorkerSeen, after: WorkerSeen) => string | undefined;

const isSortedSet = (items: readonly string[]): boolean => sameValue(items, [...new Set(items)].sort());

const checkSets: WorkerCheck = ({ record }) => {
  const { declaredCapabilities, grantedCapabilities, workloadKinds } = record;
  const undeclared = grantedCapabilities.filter((name) => !declaredCapabilities.includes(name));
  if (undeclared.length > 0) return `${undeclared.join(", ")} granted and not declared`;
  return [declaredCapabilities, grantedCapabilities, workloadKinds].every(isSortedSet)
    ? undefined
    : "a set has no order";
};

const checkHolds: WorkerCheck = ({ record, slots }) => {
  const claims = claimIdsOf(slots);
  if (new Set(claims).size < claims.length) return "a claim holds two slots";
  if (new Set(slots.map(({ index }) => index)).size < slots.length) return "a slot is there twice";
  const foreign = slots.find(
    ({ ownerId, held }) =>
      ownerId !== record.workerId ||
      (held !== undefined && (held.workerId !== record.workerId || held.incarnation > record.incarnation.number)),
  );
  return foreign === undefined ? undefined : `slot ${foreign.index} is not this worker's`;
};

const checkIncarnations: WorkerCheck = ({ record: { incarnation, superseded } }) => {
  if (superseded.includes(incarnation.id)) return "the current incarnation is superseded";
  if (superseded.length > SUPERSEDED_MAX || superseded.length >= incarnation.number)
    return `${superseded.length} incarnations before number ${incarnation.number}`;
  return new Set(superseded).size === superseded.length ? undefined : "an incarnation was superseded twice";
};

/** The checks behind {@link workerInvariants}, by name. */
export const workerChecks: Readonly<Record<keyof typeof workerInvariants, WorkerCheck>> = {
  W1: ({ record }) => (record.workerId === workerIdOf(record) ? undefined : `${record.workerId} is not its id`),
  W2: checkSets,
  W3: checkHolds,
  W4: checkIncarnations,
};

const checkIdentity: WorkerSuccessionCheck = ({ record: before }, { record: after }) => {
  const fields = ["workerId", "tenantId", "applicationId", "name", "registeredAt", "contractVersion"] as const;
  const changed = fields.filter((field) => before[field] !== after[field]);
  if (changed.length > 0) return `${changed.join(", ")} changed`;
  return after.lastSeen < before.lastSeen ? `lastSeen fell from ${before.lastSeen} to ${after.lastSeen}` : undefined;
};

const checkCapacity: WorkerSuccessionCheck = (before, after) => {
  const active = activeOf(after.slots);
  return active > Math.max(after.record.concurrency, activeOf(before.slots))
    ? `${active} claims at a concurrency of ${after.record.concurrency}`
    : undefined;
};

const holdOf = (slots: readonly Slot[], index: number): SlotHold | undefined =>
  slots.find((slot) => slot.index === index)?.held;

const checkTaken: WorkerSuccessionCheck = (before, { record, slots }) => {
  for (const { index, held } of slots) {
    const former = holdOf(before.slots, index);
    if (held === undefined || sameValue(former, held)) continue;
    if (former !== undefined) return `slot ${index} went from ${former.claimId} to ${held.claimId}`;
    if (index >= record.concurrency) return `slot ${index} was taken at a concurrency of ${record.concurrency}`;
    if (held.incarnation !== record.incarnation.number)
      return `slot ${index} was taken by incarnation ${held.incarnation}`;
  }
  return undefined;
};

const checkMove: WorkerSuccessionCheck = (before, after) => {
  if (before.record.incarnation.number !== after.record.incarnation.number) return undefined;
  const to = after.record.lifecycle;
  if (to === before.record.lifecycle || to === "OFFLINE") return undefined;
  const from = shownLifecycle(before);
  const through = mayMove(from, "RECOVERING") && mayMove("RECOVERING", to);
  return mayMove(from, to) || through ? undefined : `it went from ${from} to ${to}`;
};

const checkSuccessor: WorkerSuccessionCheck = ({ record: before }, { record: after }) => {
  const { id, number } = after.incarnation;
  if (number === before.incarnation.number)
    return id === before.incarnation.id ? undefined : `incarnation ${number} became another`;
  if (number !== before.incarnation.number + 1) return `incarnation ${number} follows ${before.incarnation.number}`;
  if (before.superseded.includes(id)) return `the superseded incarnation ${id} came back`;
  if (after.superseded.at(-1) !== before.incarnation.id) return `${before.incarnation.id} was not superseded`;
  return after.lifecycle === "REGISTERED" && after.health === "UNKNOWN"
    ? undefined
    : `incarnation ${number} begins ${after.lifecycle} and ${after.health}`;
};

/** The checks behind {@link workerSuccessionInvariants}, by name. */
export const workerSuccessionChecks: Readonly<Record<keyof typeof workerSuccessionInvariants, WorkerSuccessionCheck>> =
  {
    W5: checkIdentity,
    W6: checkCapacity,
    W7: checkTaken,
    W8: checkMove,
    W9: checkSuccessor,
  };

const findBroken = (checks: readonly (readonly [string, string | undefined])[]): readonly string[] =>
  checks.flatMap(([name, problem]) => (problem === undefined ? [] : [`${name}: ${problem}`]));

/** Every invariant of {@link workerInvariants} that a worker breaks, as `W3: what is wrong`; empty when it is sound. */
export const findBrokenWorker = (seen: WorkerSeen): readonly string[] =>
  findBroken(Object.entries(workerChecks).map(([name, check]) => [name, check(seen)]));

/** Every invariant of {@link workerSuccessionInvariants} that a commit breaks. */
export const findBrokenWorkerSuccession = (before: WorkerSeen, after: WorkerSeen): readonly string[] =>
  findBroken(Object.entries(workerSuccessionChecks).map(([name, check]) => [name, check(before, after)]));
