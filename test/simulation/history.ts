import { createHash } from "node:crypto";
import { assert } from "../../src/base/assert.ts";
import type { WorkloadEvent, WorkloadRecord } from "../../src/core/workload/record.ts";
import type { LoggedCommit } from "../../src/store/simulated/shard-log.ts";
import { decodePayload, decodeWorkload } from "../../src/wire/codec.ts";

/** One committed version of a workload. */
export interface Version {
  readonly record: WorkloadRecord;
  readonly before: WorkloadRecord | undefined;
  readonly revision: number;
  /** The log's clock, ms. */
  readonly at: number;
  readonly action: string;
  readonly operationId: string;
  /** The ring that was stored with it. */
  readonly operations: readonly string[];
  /** The revision that the commit was guarded by; 0: that it was absent. */
  readonly guard: number | undefined;
}

export interface History {
  /** Versions of each workload in their order. */
  readonly versions: ReadonlyMap<string, readonly Version[]>;
  /** Payloads beside the records: key's last two tokens joined. */
  readonly payloads: ReadonlyMap<string, string>;
  /** A digest of everything that was committed, in order. */
  readonly hash: string;
  readonly commits: number;
}

/** Reads what the log holds. */
export function readHistory(commits: readonly LoggedCommit[]): History {
  const versions = new Map<string, Version[]>();
  const payloads = new Map<string, string>();
  const digest = createHash("sha256");
  for (const { entries, at, operationId, guards } of commits) {
    for (const entry of entries) {
      digest.update(`${entry.key} ${entry.revision} ${at} ${operationId}\n`).update(entry.value);
      if (entry.key.startsWith("b."))
        payloads.set(entry.key.split(".").slice(3).join("."), decodePayload(entry.value) ?? "");
      if (!entry.key.startsWith("w.")) continue;
      const stored = decodeWorkload(entry.value);
      assert(stored !== undefined && stored.writable, `${entry.key} was committed in a form that can't be read`);
      const { record } = stored;
      const known = versions.get(record.workloadId) ?? [];
      versions.set(record.workloadId, known);
      known.push({
        record,
        before: known.at(-1)?.record,
        revision: entry.revision,
        at,
        action: entry.provenance["action"] ?? "",
        operationId,
        operations: entry.operations,
        guard: guards.get(entry.key),
      });
    }
  }
  return { versions, payloads, hash: digest.digest("hex"), commits: commits.length };
}

/** The process that an operation is of, by its nonce. */
export const processOf = (operationId: string): string => /:(\dg\d+_)/.exec(operationId)?.[1] ?? "";

/** The node that an operation is of, whichever of its processes did it. */
export const nodeOf = (operationId: string): string => `node-${processOf(operationId).charAt(0)}`;

/** What a commit added to the history of its workload. */
export const addedEvents = ({ before, record }: Version): readonly WorkloadEvent[] =>
  record.history.slice(before?.history.length ?? 0);

/** The text of a payload, wherever it is kept. */
export function textOf(
  history: History,
  workloadId: string,
  payload: { readonly json: string } | { readonly slot: string },
): string {
  if ("json" in payload) return payload.json;
  return history.payloads.get(`${workloadId}.${payload.slot}`) ?? "";
}
