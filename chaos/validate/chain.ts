import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import type { EntryLine } from "../history.ts";
import { firstDeadline } from "../model/deadlines.ts";
import { explainCommit } from "../model/explain.ts";
import type { Step, World } from "../model/step.ts";
import type { LocatedBreach, Version, WorkloadFacts } from "./facts.ts";
import { workloadFingerprint } from "./fingerprint.ts";
import { lightRecord, wrongHashes } from "./light-record.ts";
import { requestDigest } from "./request-digest.ts";
import { findTear } from "./torn-chain.ts";

/** The versions of one workload, taken in one after the other; only the last record is kept. */
export class Chain implements WorkloadFacts {
  readonly workloadId: string;
  readonly key: string;
  readonly shard: number;
  readonly digest: string;
  readonly gated: boolean;
  readonly versions: Version[] = [];
  readonly breaches: LocatedBreach[] = [];
  readonly gaps: string[] = [];
  #record: WorkloadRecord;
  #operations: readonly string[] = [];

  constructor(entry: EntryLine, record: WorkloadRecord) {
    this.workloadId = record.workloadId;
    this.key = entry.key;
    this.shard = entry.shard;
    this.digest = requestDigest(record);
    this.gated = record.approval !== undefined;
    this.#record = record;
  }

  get record(): WorkloadRecord {
    return this.#record;
  }

  /** Takes the next version in. */
  add(entry: EntryLine, record: WorkloadRecord, world: World): void {
    const last = this.versions.at(-1);
    const before = last === undefined ? undefined : this.#record;
    const torn = findTear(
      entry,
      last === undefined ? undefined : { revision: last.revision, operations: this.#operations },
    );
    const after = lightRecord(record);
    const step = explainCommit(before, after, world);
    if (torn !== undefined) this.gaps.push(torn);
    // What came in between is not there: the step can't be judged, only the gap.
    for (const breach of torn === undefined ? step.breaches : [])
      this.breaches.push({ ...breach, revision: entry.revision, command: step.command });
    for (const what of wrongHashes(before, record)) this.#breach(entry, step, `the hash of ${what} is not its own`);
    if (record.workloadId !== entry.key.slice(entry.key.lastIndexOf(".") + 1))
      this.#breach(entry, step, `${record.workloadId} is stored under ${entry.key}`);
    this.versions.push(this.#versionOf(entry, step, { before, after }));
    this.#record = after;
    this.#operations = entry.operations;
  }

  #breach(entry: EntryLine, step: Step, message: string): void {
    this.breaches.push({ rule: "succession", message, revision: entry.revision, command: step.command });
  }

  #versionOf(
    entry: EntryLine,
    step: Step,
    records: { readonly before: WorkloadRecord | undefined; readonly after: WorkloadRecord },
  ): Version {
    const { before, after } = records;
    const deadline = firstDeadline(after);
    const { command, at, dueAt, lateByMs } = step;
    return {
      workloadId: this.workloadId,
      index: this.versions.length,
      shard: entry.shard,
      revision: entry.revision,
      storedAt: entry.at,
      command,
      at,
      state: after.state,
      events: after.history.length,
      fingerprint: workloadFingerprint(after),
      fencingToken: after.fencingToken,
      checkpoints: after.checkpoints.length,
      operation: entry.operations.at(-1) ?? "",
      decided: after.approval?.decision?.outcome ?? "no",
      ...(dueAt === undefined ? {} : { dueAt }),
      ...(lateByMs === undefined ? {} : { lateByMs }),
      ...(after.currentClaim === undefined ? {} : { claim: after.currentClaim }),
      ...(before?.currentClaim === undefined ? {} : { held: before.currentClaim }),
      ...(after.nextAttemptAt === undefined ? {} : { nextAttemptAt: after.nextAttemptAt }),
      ...(deadline === undefined ? {} : { deadline }),
    };
  }
}
