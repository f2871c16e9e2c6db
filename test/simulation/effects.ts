import { addedEvents, textOf, type History, type Version } from "./history.ts";

/** What a wish left in a record, found by its mark. */
export interface Effect {
  readonly mark: string;
  readonly kind:
    | "admit"
    | "claim"
    | "start"
    | "checkpoint"
    | "complete"
    | "fail"
    | "confirmCancel"
    | "cancel"
    | "timeout"
    | "retry"
    | "decide";
  readonly version: Version;
}

const markIn = (text: string): string => /\bm\d+\b/.exec(text)?.[0] ?? "";

/** Everything that was done at somebody's wish, in the order of each workload. */
export function effectsOf(history: History): readonly Effect[] {
  const effects: Effect[] = [];
  for (const versions of history.versions.values())
    for (const version of versions) effects.push(...effectsIn(history, version));
  return effects;
}

function effectsIn(history: History, version: Version): readonly Effect[] {
  const { record, before } = version;
  const found: Effect[] = [];
  const add = (kind: Effect["kind"], mark: string): void => {
    found.push({ kind, mark, version });
  };
  if (before === undefined) add("admit", record.trigger);
  for (const checkpoint of record.checkpoints.slice(before?.checkpoints.length ?? 0))
    add("checkpoint", markIn(textOf(history, record.workloadId, checkpoint.state)));
  for (const { to, from, actor, evidence } of addedEvents(version)) {
    if (to === "CLAIMED") add("claim", actor);
    if (to === "RUNNING") add("start", actor);
    if (to === "SUCCEEDED" && record.result !== undefined)
      add("complete", markIn(textOf(history, record.workloadId, record.result.output)));
    if (to === "FAILED") add("fail", record.attempts.at(-1)?.error ?? "");
    if (from === "AWAITING_APPROVAL" && (to === "READY" || to === "REJECTED")) add("decide", evidence["reason"] ?? "");
    if (evidence["timeout"] === "operator") add("timeout", actor);
    if (evidence["retry"] === "operator") add("retry", actor);
    if (version.action === "cancel") add("cancel", actor);
    if (version.action === "confirm-cancel") add("confirmCancel", actor);
  }
  return found;
}
