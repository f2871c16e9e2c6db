import { TIMER_MAX_MS } from "../../base/clock.ts";
import type { Json } from "../../base/json.ts";
import { MandateError } from "../../core/errors.ts";
import type { Handler, Work } from "../work-context.ts";

/** Whose work it is: one attempt, told from every other by its fencing token. */
export type RuntimeClaim = Pick<Work, "workloadId" | "attemptId" | "fencingToken">;

/** What else an execution is given. `signal` aborts as {@link Work.signal} does: cancelled, lease lost, worker stops. */
export type RuntimeContext = Pick<
  Work,
  "attempt" | "checkpoints" | "capabilities" | "connectionScopes" | "signal" | "checkpoint" | "heartbeat"
>;

/** What an execution may reach, by whatever names the program understands (hosts, paths). */
export interface ReachPolicy {
  readonly allow: "all" | readonly string[];
  /**
   * Whether the runtime has to see to it. No runtime of this package can: they tell the program, and refuse `true`. Where it
   * must hold, run the worker in a container or a network namespace that enforces it.
   */
  readonly enforced: boolean;
}

/** The bounds of an execution (contract 2.5). A runtime refuses a policy that asks for what it can't see to. */
export interface RuntimePolicy {
  /** Processor time of everything that the execution runs, ms. */
  readonly maxCpuMillis?: number;
  /** Memory of everything that the execution runs, bytes. */
  readonly maxMemoryBytes?: number;
  /** From start to end, ms. */
  readonly maxDurationMs: number;
  readonly networkPolicy: ReachPolicy;
  readonly filesystemPolicy: ReachPolicy;
  /** Which of the worker's environment variables the execution may see, beside those that every program needs. */
  readonly secretPolicy: { readonly variables: "all" | readonly string[] };
  /** No runtime of this package collects artifacts. */
  readonly artifactPolicy: "none";
}

/** A policy without bounds but for its duration, to be narrowed: `{ ...unrestricted, maxDurationMs: 60_000 }`. */
export const unrestricted = {
  networkPolicy: { allow: "all", enforced: false },
  filesystemPolicy: { allow: "all", enforced: false },
  secretPolicy: { variables: "all" },
  artifactPolicy: "none",
} as const satisfies Omit<RuntimePolicy, "maxDurationMs">;

export interface ResourceUsage {
  readonly durationMs: number;
  /** Measured only where it is bounded. */
  readonly cpuMillis?: number;
  /** The most that was seen, bytes; measured only where it is bounded. */
  readonly memoryBytes?: number;
}

export interface RuntimeResult {
  readonly resultId: string;
  readonly output: unknown;
  /** The end of what it wrote for people, line by line, without what looks like a secret. */
  readonly logs: readonly string[];
  readonly artifacts: readonly string[];
  readonly resourceUsage: ResourceUsage;
}

/** Something that carries out claimed work within bounds (contract 2.5). Any number of executions may be under way at once. */
export interface WorkerRuntime {
  /**
   * Whether it can see to all that a policy asks for.
   *
   * @throws MandateError `WORKLOAD_INVALID`; details name what it can't.
   */
  check(policy: RuntimePolicy): void;
  /** Takes a claim on, with its bounds; {@link WorkerRuntime.execute} follows. Throws what {@link WorkerRuntime.check} throws. */
  start(claim: RuntimeClaim, policy: RuntimePolicy): Promise<void>;
  /**
   * Carries it out. It ends by itself when `context.signal` aborts and when its time is over.
   *
   * @throws WorkloadFailure saying how it failed; the reason of the signal when that stopped it.
   */
  execute(claim: RuntimeClaim, input: Json, context: RuntimeContext): Promise<RuntimeResult>;
  /** Stops it; answers when it has ended. Nothing to do for a claim that is not under way. */
  cancel(claim: RuntimeClaim): Promise<void>;
  /** Stops it as one whose time is over; answers when it has ended. */
  timeout(claim: RuntimeClaim): Promise<void>;
}

/**
 * A handler for `runWorker` that has a runtime do the work.
 *
 * @throws MandateError `WORKLOAD_INVALID` when the runtime can't see to the policy.
 */
export function runtimeHandler(runtime: WorkerRuntime, policy: RuntimePolicy): Handler {
  runtime.check(policy);
  return async (work) => {
    await runtime.start(work, policy);
    return (await runtime.execute(work, work.input, work)).output;
  };
}

/** What a runtime can see to. */
export interface RuntimeAbilities {
  readonly name: string;
  readonly cpu: boolean;
  readonly memory: boolean;
  /** Whether it can keep environment variables from the execution. */
  readonly variables: boolean;
}

/** @throws MandateError `WORKLOAD_INVALID` naming the first part of the policy that makes no sense or can't be seen to. */
export function checkPolicy(policy: RuntimePolicy, can: RuntimeAbilities): void {
  const refuse = (path: string, rule: string): never => {
    throw new MandateError("WORKLOAD_INVALID", `policy.${path} ${rule}`, {
      details: { paths: [path], issues: [{ path, message: rule }] },
    });
  };
  const whole = (path: string, value: number | undefined, max: number): void => {
    if (value !== undefined && (!Number.isSafeInteger(value) || value < 1 || value > max))
      refuse(path, `is no whole number from 1 to ${max}`);
  };
  whole("maxDurationMs", policy.maxDurationMs, TIMER_MAX_MS);
  whole("maxCpuMillis", policy.maxCpuMillis, TIMER_MAX_MS);
  whole("maxMemoryBytes", policy.maxMemoryBytes, Number.MAX_SAFE_INTEGER);
  const cannot = `can't be enforced by the ${can.name} runtime here`;
  if (policy.maxCpuMillis !== undefined && !can.cpu) refuse("maxCpuMillis", cannot);
  if (policy.maxMemoryBytes !== undefined && !can.memory) refuse("maxMemoryBytes", cannot);
  for (const path of ["networkPolicy", "filesystemPolicy"] as const)
    if (policy[path].enforced) refuse(`${path}.enforced`, cannot);
  if (policy.secretPolicy.variables !== "all" && !can.variables) refuse("secretPolicy.variables", cannot);
  if (policy.artifactPolicy !== "none") refuse("artifactPolicy", `must be "none": artifacts are not collected`);
}
