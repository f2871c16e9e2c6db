import type { Outline } from "../store/projection/outline.ts";
import type { Projected } from "../store/projection/projected.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { ChangeEvent } from "./api.ts";

/** What a watcher is told about a workload's newest version. */
export function changeEventOf({ shard, revision }: Projected, outline: Outline): ChangeEvent {
  const { workloadId, tenantId, applicationId, definitionId, state, createdAt, lastEvent } = outline;
  return {
    shard,
    revision,
    workloadId,
    tenantId,
    applicationId,
    definitionId,
    state,
    type: lastEvent?.type ?? "workload.created",
    actor: lastEvent?.actor ?? "",
    sequence: lastEvent?.sequence ?? 0,
    at: lastEvent?.at ?? createdAt,
  };
}

/** The newest change of each workload that came after the given revisions, in the order of the shards' revisions. */
export function changesSince(
  projection: Projection,
  positions: readonly number[],
  matches: (event: ChangeEvent) => boolean,
): readonly ChangeEvent[] {
  const found: ChangeEvent[] = [];
  for (const { workload, outline } of projection.index.outlined()) {
    if (workload.revision <= (positions[workload.shard] ?? 0)) continue;
    const event = changeEventOf(workload, outline);
    if (matches(event)) found.push(event);
  }
  return found.sort((left, right) => left.shard - right.shard || left.revision - right.revision);
}
