import type { Slot, SlotHold, WorkerLifecycle, WorkerRecord } from "./record.ts";

/**
 * What the slots tell. A worker of concurrency n has the slots 0 … n − 1, and so has a pool of maxConcurrency n; one that
 * has no record is free. Claims, active and BUSY are derived from them and stored nowhere else.
 */

/** A worker with its slots, as they were seen together. */
export interface WorkerSeen {
  readonly record: WorkerRecord;
  readonly slots: readonly Slot[];
}

/** What is held, in the order of the slots. */
export const holdsOf = (slots: readonly Slot[]): readonly SlotHold[] =>
  slots.toSorted((left, right) => left.index - right.index).flatMap(({ held }) => (held === undefined ? [] : [held]));

/** Ids of the claims that hold a slot, in the order of the slots. */
export const claimIdsOf = (slots: readonly Slot[]): readonly string[] => holdsOf(slots).map(({ claimId }) => claimId);

/** How many slots are held, those beyond a lowered concurrency too. */
export const activeOf = (slots: readonly Slot[]): number => holdsOf(slots).length;

/** The lifecycle as it is shown: READY with every slot taken is BUSY, and DRAINING without a claim is OFFLINE. */
export function shownLifecycle({ record, slots }: WorkerSeen): WorkerLifecycle {
  if (record.lifecycle === "READY") return activeOf(slots) >= record.concurrency ? "BUSY" : "READY";
  if (record.lifecycle === "DRAINING") return activeOf(slots) === 0 ? "OFFLINE" : "DRAINING";
  return record.lifecycle;
}

function heldIndices(slots: readonly Slot[]): ReadonlySet<number> {
  const held = new Set<number>();
  for (const slot of slots) if (slot.held !== undefined) held.add(slot.index);
  return held;
}

/**
 * Indices of free slots that may be given out, lowest first, `max` at most. After the concurrency was lowered, each claim
 * in a slot beyond it keeps one slot below it shut, the highest free one. So the sum of claims never grows above the
 * concurrency, even when several nodes that have not yet seen each other's claims take different slots from this list.
 *
 * The commit that takes a slot must find it as it was seen, and the owner's record too: a slot beyond a concurrency that
 * was lowered meanwhile must not be taken.
 */
export function openSlots(concurrency: number, slots: readonly Slot[], max: number): readonly number[] {
  const held = heldIndices(slots);
  const wanted = Math.min(max, concurrency - held.size);
  const open: number[] = [];
  for (let index = 0; open.length < wanted; index++) if (!held.has(index)) open.push(index);
  return open;
}

/** How many {@link openSlots} there are. */
export const countOpenSlots = (concurrency: number, slots: readonly Slot[]): number =>
  Math.max(0, concurrency - heldIndices(slots).size);

/** The slot that a claim should take: the lowest that is open, of a worker or of a pool with a limit. */
export const chooseSlot = (concurrency: number, slots: readonly Slot[]): number | undefined =>
  openSlots(concurrency, slots, 1)[0];

/** The slot once a claim holds it. The caller has chosen it from {@link openSlots}. */
export const holdSlot = (ownerId: string, index: number, held: SlotHold): Slot => ({ ownerId, index, held });

/** The slot once the claim has left it; nothing when it is not held by that very claim, which makes releases idempotent. */
export const freeSlot = (slot: Slot, claimId: string): Slot | undefined =>
  slot.held?.claimId === claimId ? { ownerId: slot.ownerId, index: slot.index } : undefined;

/** The slot that a claim holds. */
export const slotOfClaim = (slots: readonly Slot[], claimId: string): Slot | undefined =>
  slots.find(({ held }) => held?.claimId === claimId);

/** Slots held by claims of earlier incarnations: those claims are to be taken away, and with them the slots are freed. */
export const supersededSlots = ({ record, slots }: WorkerSeen): readonly Slot[] =>
  slots.filter(({ held }) => held !== undefined && held.incarnation < record.incarnation.number);
