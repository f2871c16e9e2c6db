import type { Revocation } from "../src/core/grant/revocation.ts";
import type { PoolRecord, Slot, WorkerRecord } from "../src/core/worker/record.ts";
import type { WorkloadRecord } from "../src/core/workload/record.ts";

/**
 * What a chaos run writes down, one JSON object a line (`history.ndjson`). The judge reads nothing else: a saved history is
 * judged again to the same verdicts. All times are epoch ms by the runner's one clock, fractions kept.
 */

/** What became of a call, as its caller saw it. */
export type Outcome =
  /** The authority said that it happened; `revision` as answered. */
  | { readonly kind: "acknowledged"; readonly answer: unknown; readonly revision?: string }
  /** The authority refused, in these words. `definite: false`: it does not claim that nothing happened. */
  | {
      readonly kind: "refused";
      readonly code: string;
      readonly definite: boolean;
      readonly details?: unknown;
      readonly told?: string;
    }
  /** No answer, or one that was cut off: it may or may not have happened. */
  | { readonly kind: "unknown"; readonly cause: string };

/** The grant that a call carried, as its token says. */
export interface Bearer {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly grantId: string;
  /** `kind:id`. */
  readonly subject: string;
}

/** One call of a requester, approver, operator or worker. A repeat with the same requestId is a call of its own. */
export interface CallLine {
  readonly line: "call";
  readonly id: number;
  /** Who called: a traffic process or a worker. */
  readonly caller: string;
  readonly surface: "http" | "nats";
  /** The name of the call as in contract 6.1. */
  readonly call: string;
  readonly arguments: unknown;
  readonly requestId?: string;
  /** Absent in open mode. */
  readonly bearer?: Bearer;
  /** The node that answered, when it is known. */
  readonly node?: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly outcome: Outcome;
}

/** What a worker saw and did of one attempt. */
export interface WorkLine {
  readonly line: "work";
  readonly event: "handed" | "began" | "ended" | "abandoned";
  readonly worker: string;
  readonly workerId: string;
  readonly workloadId: string;
  readonly claimId: string;
  readonly fencingToken: number;
  readonly at: number;
}

/** A fault that was made, or healed. */
export interface FaultLine {
  readonly line: "fault";
  readonly fault: string;
  readonly target: string;
  readonly phase: "begin" | "end";
  readonly at: number;
  readonly details?: unknown;
}

/** One committed version of a record: the chaos bucket keeps them all. Read from the stream at the end. */
export interface EntryLine {
  readonly line: "entry";
  readonly shard: number;
  readonly revision: number;
  readonly key: string;
  /** The store's clock when it was written. */
  readonly at: number;
  readonly operations: readonly string[];
  readonly provenance: { readonly [name: string]: string };
  /** Decoded workload record, for keys of the family `w`. */
  readonly record?: WorkloadRecord;
  /** Decoded worker, slot and pool, for keys of the families `k`, `s` and `p`. Absent there: the mark of a removed one. */
  readonly worker?: WorkerRecord;
  readonly slot?: Slot;
  readonly pool?: PoolRecord;
  /** For keys of the family `g`. */
  readonly revocation?: Revocation;
}

/** A worker as a node shows it at the end, through its public list. */
export interface ShownWorker {
  readonly lifecycle: string;
  readonly concurrency: number;
  readonly claims: readonly string[];
  /** The number of its incarnation. */
  readonly incarnation: number;
}

/** What one node shows at the end, through its public lists: workloadId → state and history length, and its workers. */
export interface ViewLine {
  readonly line: "view";
  readonly node: string;
  readonly at: number;
  readonly workloads: { readonly [workloadId: string]: { readonly state: string; readonly events: number } };
  readonly workers?: { readonly [workerId: string]: ShownWorker };
}

/** What was found when everything had been stopped. */
export interface LeftoverLine {
  readonly line: "leftover";
  readonly kind: "consumer" | "process" | "file";
  readonly name: string;
}

/** A node that ended over a bug of its own, as it logged it. */
export interface CrashLine {
  readonly line: "crash";
  readonly node: string;
  readonly told: string;
}

/** A state of a node or server as polled: for outage times. */
export interface ProbeLine {
  readonly line: "probe";
  readonly target: string;
  readonly at: number;
  readonly ready: boolean;
  readonly reasons?: readonly string[];
}

/** First line: how the run was made. */
export interface RunLine {
  readonly line: "run";
  readonly version: string;
  readonly seed: number;
  readonly scenario: string;
  readonly minutes: number;
  readonly startedAt: number;
  /** Everything that shaped the run. What the judge looks at among it: `JudgeParameters` in `validate/parameters.ts`. */
  readonly parameters: { readonly [name: string]: unknown };
}

/** Last line: when the last fault was healed, and when the run ended. */
export interface EndLine {
  readonly line: "end";
  readonly healedAt: number;
  readonly endedAt: number;
  /** How many of each were looked through for what should not be: without it, nothing found proves nothing. */
  readonly inspected?: {
    readonly consumers: number;
    readonly processes: number;
    readonly files: number;
    readonly logs: number;
  };
}

export type HistoryLine =
  | RunLine
  | CallLine
  | WorkLine
  | FaultLine
  | EntryLine
  | ViewLine
  | LeftoverLine
  | CrashLine
  | ProbeLine
  | EndLine;

/** What one validator found: nothing is the only pass. */
export interface Verdict {
  /** The guarantee, in words of the contract. */
  readonly guarantee: string;
  readonly validator: string;
  /** How many facts it looked at: a validator that saw nothing has proved nothing. */
  readonly checked: number;
  readonly violations: readonly {
    readonly workloadId?: string;
    readonly message: string;
    readonly evidence?: unknown;
  }[];
}
