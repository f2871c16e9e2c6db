import type { Json } from "../base/json.ts";
import type { Checkpoint } from "../core/workload/record.ts";

/** What a handler is given: one attempt at one workload. */
export interface Work {
  readonly workloadId: string;
  readonly attemptId: string;
  /** 1 for the first attempt at this workload, 2 for the second … */
  readonly attempt: number;
  readonly input: Json;
  /** What this and earlier attempts have committed, in order: work on from the last. */
  readonly checkpoints: readonly Checkpoint[];
  readonly capabilities: readonly string[];
  readonly connectionScopes: readonly string[];
  /** Grows with every claim: hand it to whatever the work writes to, and let that refuse a smaller one than it has seen. */
  readonly fencingToken: number;
  /**
   * Aborts, with a {@link WorkStopped} as its reason, when cancellation was requested, when the lease can no longer be
   * trusted, and when the worker shuts down and its grace period is over. Whoever goes on regardless works in vain: its
   * result is refused by the fence.
   */
  readonly signal: AbortSignal;
  /** Commits progress, which later attempts get. Rejects with the authority's refusal. */
  checkpoint(state: unknown): Promise<Checkpoint>;
  /** Renews the lease now. It is renewed by itself; this also asks at once whether cancellation was requested. */
  heartbeat(): Promise<{ readonly cancellationRequested: boolean }>;
}

/** Does the work and answers its result: JSON; `undefined` counts as `null`. */
export type Handler = (work: Work) => unknown;
