import { compareText } from "../../base/text-order.ts";
import type { WorkloadRecord } from "../../core/workload/record.ts";
import type { Entry } from "../store.ts";
import type { StoredWorkload } from "../../wire/codec.ts";

/** A committed workload as a node's view holds it: enough to decide on, and to build the next commit on. */
export interface Projected extends StoredWorkload {
  readonly key: string;
  readonly shard: number;
  readonly revision: number;
  readonly operations: readonly string[];
  /** The authority node that committed it. */
  readonly node: string | undefined;
  /** What the commit did: `admit`, `claim` … */
  readonly action: string | undefined;
}

/** Makes a view of an entry. */
export const projectedOf = (shard: number, entry: Entry, stored: StoredWorkload): Projected => ({
  ...stored,
  key: entry.key,
  shard,
  revision: entry.revision,
  operations: entry.operations,
  node: entry.provenance["node"],
  action: entry.provenance["action"],
});

/** A record's place in a list or a queue: high priority first, then oldest (contract 1.13, 2.4). */
export interface Rank {
  readonly priority: number;
  readonly createdAt: number;
  readonly workloadId: string;
}

export const rankOf = ({ priority, createdAt, workloadId }: WorkloadRecord): Rank => ({
  priority,
  createdAt,
  workloadId,
});

export const compareRank = (left: Rank, right: Rank): number =>
  right.priority - left.priority || left.createdAt - right.createdAt || compareText(left.workloadId, right.workloadId);

export type RankOrder = (left: Rank, right: Rank) => number;

/**
 * The order in which a queue is given out. With `agingMs` waiting counts: a workload that came that much earlier stands
 * where one of the next higher priority does, so that a steady flow of what is more important lets nothing starve
 * (contract 2.4). All of them age alike, so the order of two never changes.
 */
export function readyOrder(agingMs: number | undefined): RankOrder {
  if (agingMs === undefined) return compareRank;
  const standing = ({ priority, createdAt }: Rank): number => priority - createdAt / agingMs;
  return (left, right) => standing(right) - standing(left) || compareRank(left, right);
}

/** Something that is due at an instant. */
export interface Due {
  readonly at: number;
  readonly workloadId: string;
}

export const compareDue = (left: Due, right: Due): number =>
  left.at - right.at || compareText(left.workloadId, right.workloadId);
