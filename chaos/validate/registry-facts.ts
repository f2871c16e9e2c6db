import type { PoolRecord, SlotHold, WorkerRecord } from "../../src/core/worker/record.ts";

/** One committed version of something in the registry: a worker, a pool, or one of their slots. */
export interface Committed {
  readonly shard: number;
  readonly revision: number;
  /** The store's clock when it was written, epoch ms. */
  readonly storedAt: number;
  /** The operation that it is a part of: one commit has one. */
  readonly operation: string;
}

export interface WorkerVersion extends Committed {
  /** What was done, as the stored message says. */
  readonly action: string;
  /** Absent: it was removed. */
  readonly record?: WorkerRecord;
  /** Given up for its silence: not before this instant, epoch ms. */
  readonly dueAt?: number;
  readonly breaches: readonly string[];
}

export interface PoolVersion extends Committed {
  /** Absent: it was removed. */
  readonly record?: PoolRecord;
}

export interface SlotVersion extends Committed {
  readonly ownerId: string;
  readonly index: number;
  /** The claim that held it before, and the one that holds it now. */
  readonly before?: SlotHold;
  readonly held?: SlotHold;
}

/** Everything that was committed of one worker, or of one pool; the oldest first. */
export interface OwnerFacts<Version extends Committed> {
  readonly id: string;
  readonly versions: readonly Version[];
  /** Of all of its slots, in the order of their commits. */
  readonly slots: readonly SlotVersion[];
}

export type WorkerFacts = OwnerFacts<WorkerVersion>;
export type PoolFacts = OwnerFacts<PoolVersion>;

/** The registry as it was committed. */
export interface RegistryFacts {
  readonly workers: ReadonlyMap<string, WorkerFacts>;
  readonly pools: ReadonlyMap<string, PoolFacts>;
  /** Keys whose chain of versions is torn, and where. */
  readonly gaps: readonly string[];
  /** How many versions there are. */
  readonly versions: number;
}

/** The version that was the current one just before a revision; undefined when there was none. */
export function versionBefore<Version extends Committed>(
  versions: readonly Version[],
  revision: number,
): Version | undefined {
  let low = 0;
  let high = versions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((versions[middle]?.revision ?? 0) < revision) low = middle + 1;
    else high = middle;
  }
  return versions[low - 1];
}

/** The versions of an owner's slots, commit by commit. */
export function commitsOf(slots: readonly SlotVersion[]): readonly (readonly SlotVersion[])[] {
  const commits: SlotVersion[][] = [];
  for (const slot of slots) {
    const last = commits.at(-1);
    if (last?.[0]?.operation === slot.operation) last.push(slot);
    else commits.push([slot]);
  }
  return commits;
}

/** The claims that hold slots of an owner after a revision, by the index of the slot. */
export function holdsAt(slots: readonly SlotVersion[], revision: number): ReadonlyMap<number, SlotHold> {
  const holds = new Map<number, SlotHold>();
  for (const { index, held, revision: at } of slots) {
    if (at > revision) break;
    if (held === undefined) holds.delete(index);
    else holds.set(index, held);
  }
  return holds;
}
