import { copyText, shareText } from "../../base/shared-text.ts";
import type { Subject } from "../../core/subject.ts";
import type { WorkloadEvent, WorkloadRecord } from "../../core/workload/record.ts";
import type { WorkloadState } from "../../core/workload/states.ts";
import type { Rank } from "./projected.ts";

/** What lists, watchers and indexes ask of a workload over and over: kept beside it, so that they need no record for it. */
export interface Outline extends Rank {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly definitionId: string;
  readonly requestedBy: Subject;
  /** The worker of the last attempt. */
  readonly workerId: string | undefined;
  readonly state: WorkloadState;
  readonly lastEvent: Pick<WorkloadEvent, "type" | "actor" | "sequence" | "at"> | undefined;
}

/** The outline of a record. */
export function outlineOf(record: WorkloadRecord): Outline {
  const { requestedBy, attempts, history } = record;
  const workerId = attempts.at(-1)?.workerId;
  const event = history.at(-1);
  return {
    workloadId: copyText(record.workloadId),
    tenantId: shareText(record.tenantId),
    applicationId: shareText(record.applicationId),
    definitionId: shareText(record.definitionId),
    requestedBy: { kind: requestedBy.kind, id: shareText(requestedBy.id) },
    workerId: workerId === undefined ? undefined : shareText(workerId),
    state: shareText(record.state),
    priority: record.priority,
    createdAt: record.createdAt,
    lastEvent:
      event === undefined
        ? undefined
        : { type: shareText(event.type), actor: shareText(event.actor), sequence: event.sequence, at: event.at },
  };
}
