import type { Json } from "../../base/json.ts";
import { defaultResultIdOf } from "../../core/workload/identity.ts";
import { aborted, pause } from "../backoff.ts";
import type { Handler } from "../work-context.ts";
import { WorkloadFailure } from "../workload-failure.ts";
import { RuntimeExecutions, type RuntimeExecution } from "./executions.ts";
import {
  checkPolicy,
  type RuntimeClaim,
  type RuntimeContext,
  type RuntimePolicy,
  type RuntimeResult,
  type WorkerRuntime,
} from "./runtime.ts";

export interface InProcessOptions {
  /** How long a handler may take to settle once its signal has aborted, ms. Default 1,000. */
  readonly settleMs?: number;
}

const SETTLE_MS = 1_000;

/**
 * Runs a handler in the worker's own process. It bounds nothing but the duration, since a function shares its process's
 * memory, processor time and environment: a policy that asks for more is refused.
 *
 * A handler that ignores its signal can't be ended. It is waited for no longer than `settleMs`; then the attempt ends
 * without it, its checkpoints are refused, and whatever it answers later counts for nothing.
 */
class InProcessRuntime implements WorkerRuntime {
  readonly #handler: Handler;
  readonly #settleMs: number;
  readonly #executions = new RuntimeExecutions();

  constructor(handler: Handler, options: InProcessOptions) {
    this.#handler = handler;
    this.#settleMs = options.settleMs ?? SETTLE_MS;
  }

  check(policy: RuntimePolicy): void {
    checkPolicy(policy, { name: "in-process", cpu: false, memory: false, variables: false });
  }

  async start(claim: RuntimeClaim, policy: RuntimePolicy): Promise<void> {
    this.check(policy);
    this.#executions.start(claim, policy);
  }

  execute(claim: RuntimeClaim, input: Json, context: RuntimeContext): Promise<RuntimeResult> {
    return this.#executions.run(claim, context.signal, async (execution) => {
      const output = await this.#settled(execution, { claim, input, context });
      return {
        resultId: defaultResultIdOf(claim.attemptId),
        output,
        logs: [],
        artifacts: [],
        resourceUsage: { durationMs: execution.durationMs },
      };
    });
  }

  cancel(claim: RuntimeClaim): Promise<void> {
    return this.#executions.stop(claim, "cancel");
  }

  timeout(claim: RuntimeClaim): Promise<void> {
    return this.#executions.stop(claim, "timeout");
  }

  /** What the handler answers, or the reason of its end: whichever it is, the wait for it is bounded. */
  async #settled(
    execution: RuntimeExecution,
    work: { readonly claim: RuntimeClaim; readonly input: Json; readonly context: RuntimeContext },
  ): Promise<unknown> {
    const { signal } = execution;
    signal.throwIfAborted();
    let late = true;
    const handled = this.#handle(execution, work).finally(() => {
      late = false;
    });
    const waiting = new AbortController();
    const outOfTime = aborted(signal).then(() => pause(this.#settleMs, waiting.signal));
    await Promise.race([handled.catch(() => undefined), outOfTime]);
    waiting.abort();
    // What was finished in spite of a request to stop is a result; what took too long is none.
    if (late || signal.reason instanceof WorkloadFailure) signal.throwIfAborted();
    return handled;
  }

  async #handle(
    execution: RuntimeExecution,
    { claim, input, context }: { claim: RuntimeClaim; input: Json; context: RuntimeContext },
  ): Promise<unknown> {
    const { attempt, capabilities, checkpoints, connectionScopes } = context;
    const { attemptId, fencingToken, workloadId } = claim;
    const facts = { workloadId, attemptId, attempt, input, checkpoints, capabilities, connectionScopes, fencingToken };
    return this.#handler({
      ...facts,
      signal: execution.signal,
      checkpoint: async (state) => {
        execution.refuseIfOver();
        return context.checkpoint(state);
      },
      heartbeat: async () => {
        execution.refuseIfOver();
        return context.heartbeat();
      },
    });
  }
}

/** A runtime that calls a function ({@link WorkerRuntime}); only its duration is bounded. */
export const inProcessRuntime = (handler: Handler, options: InProcessOptions = {}): WorkerRuntime =>
  new InProcessRuntime(handler, options);
