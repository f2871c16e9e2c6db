import type { Projected } from "../store/projection/projected.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { ChangeEvent } from "./api.ts";

/** What a watcher is told about a workload's newest version. */
export function changeEventOf(workload: Projected): ChangeEvent {
  const { record, shard, revision } = workload;
  const event = record.history.at(-1);
  return {
    shard,
    revision,
    workloadId: record.workloadId,
    tenantId: record.tenantId,
    applicationId: record.applicationId,
    definitionId: record.definitionId,
    state: record.state,
    type: event?.type ?? "workload.created",
    actor: event?.actor ?? "",
    sequence: event?.sequence ?? 0,
    at: event?.at ?? record.createdAt,
  };
}

/** The newest change of each workload that came after the given revisions, in the order of the shards' revisions. */
export function changesSince(
  projection: Projection,
  positions: readonly number[],
  matches: (event: ChangeEvent) => boolean,
): readonly ChangeEvent[] {
  const found: ChangeEvent[] = [];
  for (const workload of projection.index.all()) {
    if (workload.revision <= (positions[workload.shard] ?? 0)) continue;
    const event = changeEventOf(workload);
    if (matches(event)) found.push(event);
  }
  return found.sort((left, right) => left.shard - right.shard || left.revision - right.revision);
}
