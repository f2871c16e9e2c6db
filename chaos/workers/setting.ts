import type { ClockOrigin } from "../run-clock.ts";

/** What a worker process is told. */
export interface WorkerSetting {
  readonly name: string;
  readonly kind: "sdk" | "legacy";
  /** Addresses of its own links to NATS. */
  readonly servers: readonly string[];
  readonly tenantId: string;
  /** What it is to the authority, where that is not its name: tenants name their workers alike. */
  readonly workerName?: string;
  /** The folder of whoever issues its grant, when it starts. Absent in open mode. */
  readonly issuer?: string;
  readonly applicationId: string;
  readonly capabilities: readonly string[];
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly encoding: "json" | "msgpack";
  /** Does whatever it is given at once and well: for the end of a run. */
  readonly finishing: boolean;
  /** Where it writes down what it sees. */
  readonly record: string;
  readonly clock: ClockOrigin;
}

/** What the input of a workload asks a worker to do. */
export interface WorkInput {
  readonly act: "finish" | "steps" | "fail" | "block" | "ignore";
  /** How long it takes, ms. */
  readonly ms: number;
  /** Checkpoints to commit on the way. */
  readonly steps?: number;
  /** How often it fails before it succeeds. */
  readonly failures?: number;
  readonly failureKind?: string;
  readonly effect?: "none" | "unknown";
}
