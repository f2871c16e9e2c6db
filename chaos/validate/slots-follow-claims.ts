import { isRegisteredId } from "../model/identities.ts";
import type { Facts, Version, WorkloadFacts } from "./facts.ts";
import { versionsOf } from "./facts.ts";
import type { SlotVersion } from "./registry-facts.ts";
import { hasSlots } from "./slot-capacity.ts";
import type { Findings, Validator } from "./validator.ts";

/** A slot, and the operation that changed it, as one text. */
const placeOf = (operation: string, ownerId: string, index: number): string => `${operation} ${ownerId} ${index}`;

function* slotsOf({ registry }: Facts): Generator<SlotVersion> {
  for (const { slots } of registry.workers.values()) yield* slots;
  for (const { slots } of registry.pools.values()) yield* slots;
}

/** The slots that a claim says it takes: evidence of its event (contract 2.3). */
function placesOf(workload: WorkloadFacts, fencingToken: number, workerId: string): readonly [string, number][] {
  const event = workload.record.history.find(
    ({ to, evidence }) => to === "CLAIMED" && evidence["fencingToken"] === String(fencingToken),
  );
  const { slot, poolId, poolSlot } = event?.evidence ?? {};
  const own: [string, number][] = slot === undefined ? [] : [[workerId, Number(slot)]];
  return poolId === undefined ? own : [...own, [poolId, Number(poolSlot)]];
}

/** The commits of slots, by place. */
class Slots {
  readonly #byPlace = new Map<string, SlotVersion>();

  constructor(facts: Facts) {
    for (const slot of slotsOf(facts)) this.#byPlace.set(placeOf(slot.operation, slot.ownerId, slot.index), slot);
  }

  at(operation: string, [ownerId, index]: readonly [string, number]): SlotVersion | undefined {
    return this.#byPlace.get(placeOf(operation, ownerId, index));
  }
}

/** A claim takes its slots, and leaves them, in the very commits in which it begins and ends. */
function checkVersion(
  version: Version,
  workload: WorkloadFacts,
  how: { readonly slots: Slots; readonly findings: Findings },
): void {
  const { claim, held, operation, revision, workloadId } = version;
  const { slots, findings } = how;
  const where = { workloadId, evidence: { revision, operation, claim, held } };
  if (claim !== undefined && claim.claimId !== held?.claimId && isRegisteredId(claim.workerId)) {
    findings.count();
    const places = placesOf(workload, claim.fencingToken, claim.workerId);
    if (places.length === 0)
      findings.violation(`revision ${revision}: ${claim.claimId} of ${claim.workerId} has no slot`, where);
    for (const place of places) {
      const taken = slots.at(operation, place)?.held;
      const right =
        taken?.claimId === claim.claimId && taken.workloadId === workloadId && taken.workerId === claim.workerId;
      if (!right)
        findings.violation(
          `revision ${revision}: the commit of ${claim.claimId} did not take slot ${place[1]} of ${place[0]}`,
          where,
        );
    }
  }
  if (held === undefined || held.claimId === claim?.claimId || !isRegisteredId(held.workerId)) return;
  findings.count();
  for (const place of placesOf(workload, held.fencingToken, held.workerId)) {
    const left = slots.at(operation, place);
    if (left === undefined || left.held !== undefined || left.before?.claimId !== held.claimId)
      findings.violation(
        `revision ${revision}: ${held.claimId} ended without leaving slot ${place[1]} of ${place[0]}`,
        where,
      );
  }
}

/** Claims by the operation that began them, and by the one that ended them. */
function turnsOf(facts: Facts): { readonly begun: ReadonlySet<string>; readonly ended: ReadonlySet<string> } {
  const begun = new Set<string>();
  const ended = new Set<string>();
  for (const { claim, held, operation } of versionsOf(facts)) {
    if (claim !== undefined && claim.claimId !== held?.claimId) begun.add(`${operation} ${claim.claimId}`);
    if (held !== undefined && claim?.claimId !== held.claimId) ended.add(`${operation} ${held.claimId}`);
  }
  return { begun, ended };
}

/** A slot is taken and left by nothing but the beginning and the end of a claim: so none is held by one that is gone. */
function checkSlots(facts: Facts, findings: Findings): void {
  const { begun, ended } = turnsOf(facts);
  for (const slot of slotsOf(facts)) {
    findings.count();
    const { held, before, operation, revision, ownerId, index } = slot;
    const name = `revision ${revision}: slot ${index} of ${ownerId}`;
    const workloadId = held?.workloadId ?? before?.workloadId;
    if (held !== undefined && held.claimId !== before?.claimId && !begun.has(`${operation} ${held.claimId}`))
      findings.violation(`${name} was taken by ${held.claimId}, which did not begin then`, { workloadId });
    if (before !== undefined && held?.claimId !== before.claimId && !ended.has(`${operation} ${before.claimId}`))
      findings.violation(`${name} was left by ${before.claimId}, which did not end then`, { workloadId });
  }
}

export const slotsFollowClaims: Validator = {
  validator: "slots-follow-claims",
  guarantee: "a slot is taken and left in the very commits in which its claim begins and ends",
  expectsFacts: hasSlots,
  validate: (facts, findings) => {
    const slots = new Slots(facts);
    for (const workload of facts.workloads.values())
      for (const version of workload.versions) checkVersion(version, workload, { slots, findings });
    checkSlots(facts, findings);
  },
};
