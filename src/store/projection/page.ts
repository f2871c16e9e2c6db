import type { ListRequest } from "../../wire/requests.ts";
import { workloadStates } from "../../core/workload/states.ts";
import { sameSubject } from "../../core/subject.ts";
import type { WorkloadRecord } from "../../core/workload/record.ts";
import type { Outline } from "./outline.ts";
import { mergedRanks } from "./merged-ranks.ts";
import { compareRank, type Projected, type Rank } from "./projected.ts";
import { queueOf } from "./ready-queues.ts";
import type { WorkloadIndex } from "./workload-index.ts";

/** A filter with its defaults, as {@link ListRequest} is parsed, and anything else a caller may ask of a record. */
export interface PageFilter extends Omit<ListRequest, "limit" | "cursor"> {
  readonly matches?: (record: WorkloadRecord) => boolean;
}

const statesOf = (state: PageFilter["state"]): readonly WorkloadRecord["state"][] =>
  state === undefined ? workloadStates : typeof state === "string" ? [state] : state;

function matches(outline: Outline, filter: PageFilter): boolean {
  if (filter.tenantId !== undefined && outline.tenantId !== filter.tenantId) return false;
  if (filter.applicationId !== undefined && outline.applicationId !== filter.applicationId) return false;
  if (filter.definitionId !== undefined && outline.definitionId !== filter.definitionId) return false;
  if (filter.requestedBy !== undefined && !sameSubject(outline.requestedBy, filter.requestedBy)) return false;
  if (filter.workerId !== undefined && outline.workerId !== filter.workerId) return false;
  if (filter.createdFrom !== undefined && outline.createdAt < filter.createdFrom) return false;
  return filter.createdTo === undefined || outline.createdAt < filter.createdTo;
}

/** Encodes the place after which the next page begins. */
export const encodeCursor = ({ priority, createdAt, workloadId }: Rank): string =>
  Buffer.from(JSON.stringify([priority, createdAt, workloadId])).toString("base64url");

/** Undoes {@link encodeCursor}; `undefined` for a text that it does not make. */
export function decodeCursor(cursor: string): Rank | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (!Array.isArray(value)) return undefined;
    const [priority, createdAt, workloadId] = value as unknown[];
    if (typeof priority !== "number" || typeof createdAt !== "number" || typeof workloadId !== "string")
      return undefined;
    return { priority, createdAt, workloadId };
  } catch {
    return undefined;
  }
}

export interface ProjectedPage {
  readonly workloads: readonly Projected[];
  readonly next?: Rank;
}

/** Workloads that pass the filter, high priority first, then oldest, after a place (contract 1.13). */
export function pageOf(
  index: WorkloadIndex,
  filter: PageFilter,
  range: { readonly limit: number; readonly after?: Rank },
): ProjectedPage {
  const { tenantId, applicationId } = filter;
  const queue =
    tenantId !== undefined && applicationId !== undefined ? queueOf({ tenantId, applicationId }) : undefined;
  const sets = [...index.ranksOf(statesOf(filter.state), queue)].map((ranks) => ranks.items(range.after));
  const workloads: Projected[] = [];
  let last: Rank | undefined;
  for (const rank of mergedRanks(sets)) {
    if (range.after !== undefined && compareRank(rank, range.after) <= 0) continue;
    const workload = index.get(rank.workloadId);
    const outline = index.outline(rank.workloadId);
    if (workload === undefined || outline === undefined || !matches(outline, filter)) continue;
    if (filter.matches?.(workload.record) === false) continue;
    if (workloads.length === range.limit && last !== undefined) return { workloads, next: last };
    workloads.push(workload);
    last = { priority: rank.priority, createdAt: rank.createdAt, workloadId: rank.workloadId };
  }
  return { workloads };
}
