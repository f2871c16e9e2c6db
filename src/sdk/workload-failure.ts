/**
 * What a handler throws to say how its attempt failed. Anything else it throws is reported with the kind `error`.
 */
export class WorkloadFailure extends Error {
  override readonly name = "WorkloadFailure";
  /** Decides with the workload's `retryOn` whether it is tried again (contract 1.8). */
  readonly kind: string;
  /** `none`: the attempt surely changed nothing outside; `unknown`: it may have. */
  readonly effect?: "none" | "unknown";

  constructor(
    kind: string,
    message: string,
    options: { readonly effect?: "none" | "unknown"; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    if (options.effect !== undefined) this.effect = options.effect;
  }
}

/** Why a handler's signal aborted. */
export type StopCause = "cancelled" | "lease_lost" | "shutdown";

/** The reason of a handler's aborted signal. */
export class WorkStopped extends Error {
  override readonly name = "WorkStopped";
  readonly stopCause: StopCause;

  constructor(stopCause: StopCause, message: string) {
    super(message);
    this.stopCause = stopCause;
  }
}
