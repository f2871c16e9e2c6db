import type { Claim, WorkloadRecord } from "../../src/core/workload/record.ts";
import type { WorkloadState } from "../../src/core/workload/states.ts";
import type { CrashLine, EndLine, LeftoverLine, RunLine, ViewLine, WorkLine } from "../history.ts";
import type { Breach, Command } from "../model/step.ts";
import type { CallFact } from "./call-facts.ts";
import type { GrantFacts } from "./grant-facts.ts";
import type { JudgeParameters } from "./parameters.ts";
import type { RegistryFacts } from "./registry-facts.ts";

/** One committed version of a workload, as the model explained it. */
export interface Version {
  readonly workloadId: string;
  /** Its place among the workload's versions. */
  readonly index: number;
  readonly shard: number;
  readonly revision: number;
  /** The store's clock when it was written, epoch ms. */
  readonly storedAt: number;
  readonly command: Command;
  /** The instant that it was decided at, epoch ms. */
  readonly at: number;
  readonly dueAt?: number;
  readonly lateByMs?: number;
  readonly state: WorkloadState;
  /** How many events the history has. */
  readonly events: number;
  /** See `workloadFingerprint`. */
  readonly fingerprint: number;
  readonly fencingToken: number;
  readonly checkpoints: number;
  readonly operation: string;
  /** The claim after it, and the one that it was written under. */
  readonly claim?: Claim;
  readonly held?: Claim;
  readonly nextAttemptAt?: number;
  readonly decided: "approved" | "rejected" | "no";
  /** The deadline that passes next, if nothing else happens. */
  readonly deadline?: { readonly deadline: string; readonly deadlineAt: number };
}

export interface LocatedBreach extends Breach {
  readonly revision: number;
  readonly command: Command;
}

/** Everything that was committed of one workload. */
export interface WorkloadFacts {
  readonly workloadId: string;
  readonly shard: number;
  /** What it was admitted with: see `requestDigest`. */
  readonly digest: string;
  readonly gated: boolean;
  /** The last version; payloads are hashes. */
  readonly record: WorkloadRecord;
  readonly versions: readonly Version[];
  readonly breaches: readonly LocatedBreach[];
  /** Where the chain of versions is torn. */
  readonly gaps: readonly string[];
}

/** A fault from its beginning to its healing, epoch ms; `until` is infinite when it was never healed. */
export interface FaultSpan {
  readonly fault: string;
  readonly target: string;
  readonly from: number;
  readonly until: number;
}

/** A time in which somebody who was asked was not ready. */
export interface OutageSpan {
  readonly target: string;
  readonly from: number;
  readonly until: number;
}

/** A whole history, joined up and small enough to be held. */
export interface Facts {
  readonly run: RunLine;
  readonly end: EndLine | undefined;
  readonly parameters: JudgeParameters;
  readonly calls: readonly CallFact[];
  readonly work: readonly WorkLine[];
  readonly faults: readonly FaultSpan[];
  readonly outages: readonly OutageSpan[];
  readonly workloads: ReadonlyMap<string, WorkloadFacts>;
  readonly registry: RegistryFacts;
  readonly grants: GrantFacts;
  readonly views: readonly ViewLine[];
  readonly leftovers: readonly LeftoverLine[];
  readonly crashes: readonly CrashLine[];
  /** What a call made; empty when nothing is found of it. */
  effectsOf(call: CallFact): readonly Version[];
  /** The calls that may have made a version. */
  authorsOf(version: Version): readonly CallFact[];
}

/** All versions of all workloads, workload by workload. */
export function* versionsOf(facts: Facts): Generator<Version> {
  for (const { versions } of facts.workloads.values()) yield* versions;
}
