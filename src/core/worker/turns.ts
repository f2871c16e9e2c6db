/**
 * Whose turn it is among queues (contract 2.4). One claimNext names one tenant and application, so its queue is given; turns
 * matter where one caller serves several, or where a node has more waiting workers than it can serve at once: then each
 * queue gets turns in proportion to its weight, however long the others are.
 */

/** A queue that has something to do now, and its share; a weight is a whole number from 1 on. */
export interface WeightedQueue {
  readonly key: string;
  readonly weight: number;
}

/** How far each queue is ahead of the one that is due, in turns over weight. A queue that is not named is due. */
export type Turns = ReadonlyMap<string, number>;

/** Nobody is ahead. */
export const noTurns: Turns = new Map<string, number>();

/** The longest that queues are waited for: in one turn of a queue, another gets at most this many. */
export const turnsBetween = (own: number, other: number): number => Math.ceil(other / own) + 1;

/**
 * The queue whose turn it is, and the turns after it; nothing without queues. The one that is least ahead is next, of equals
 * the first by key. A queue that comes new, or comes back, is due at once but gains nothing by having been away; one that
 * went while it was ahead stays ahead until the others have caught up. Between two turns of a queue any other has at most
 * {@link turnsBetween} turns, so none starves.
 */
export function nextTurn(
  queues: readonly WeightedQueue[],
  turns: Turns,
): { readonly key: string; readonly turns: Turns } | undefined {
  const leadOf = (key: string): number => turns.get(key) ?? 0;
  let next: WeightedQueue | undefined;
  for (const queue of queues) {
    const difference = next === undefined ? -1 : leadOf(queue.key) - leadOf(next.key);
    if (next === undefined || difference < 0 || (difference === 0 && queue.key < next.key)) next = queue;
  }
  if (next === undefined) return undefined;
  const due = leadOf(next.key);
  const after = new Map<string, number>();
  for (const [key, lead] of turns) if (lead > due) after.set(key, lead - due);
  after.set(next.key, 1 / next.weight);
  return { key: next.key, turns: after };
}

/** The highest priority that a workload may have (contract 1.2); aging does not lift one above it. */
export const PRIORITY_MAX = 2_147_483_647;

/**
 * The priority of a workload that has waited: one higher for each `agingMs`, so that none starves behind others that keep
 * coming. Without `agingMs` it is the workload's own.
 */
export const agedPriority = (priority: number, waitedMs: number, agingMs: number | undefined): number =>
  agingMs === undefined
    ? priority
    : Math.min(priority + Math.max(0, Math.floor(waitedMs / agingMs)), Math.max(priority, PRIORITY_MAX));
