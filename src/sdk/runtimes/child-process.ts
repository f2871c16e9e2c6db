import type { Json } from "../../base/json.ts";
import { MandateError } from "../../core/errors.ts";
import { defaultResultIdOf } from "../../core/workload/identity.ts";
import { aborted, pause } from "../backoff.ts";
import { WorkloadFailure, WorkStopped } from "../workload-failure.ts";
import { childEnvironment, CHECKPOINT_DESCRIPTOR } from "./child-environment.ts";
import { exitFailure, outputOf } from "./child-ending.ts";
import { BoundedOutput, OutputTail, readLines } from "./child-streams.ts";
import { RuntimeExecutions, type RuntimeExecution } from "./executions.ts";
import { canMeasureGroups, watchGroup, type GroupUsage } from "./group-usage.ts";
import { ProcessGroup, type GroupExit } from "./process-group.ts";
import { redact, secretValuesOf } from "./redaction.ts";
import {
  checkPolicy,
  type RuntimeClaim,
  type RuntimeContext,
  type RuntimePolicy,
  type RuntimeResult,
  type WorkerRuntime,
} from "./runtime.ts";

export interface ChildProcessOptions {
  /** A path, or a name that is looked up on the worker's PATH. No shell reads it. */
  readonly command: string;
  readonly args?: readonly string[];
  /** Variables that the program gets in any case, beside those that its policy lets it see. */
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
  /**
   * Between SIGTERM and SIGKILL, ms. Default 1,500. Keep it below the worker's lease: work that was cancelled and does not
   * end within one counts as lost.
   */
  readonly killGraceMs?: number;
  /** Most that it may print on standard output, bytes, and the longest checkpoint. Default 4 MiB. */
  readonly outputBytesMax?: number;
  /** How much of the end of its standard error is kept, bytes. Default 16 KiB. */
  readonly logBytesMax?: number;
}

const KILL_GRACE_MS = 1_500;
/** A lease is given up this long and more before another may hold the work: the program must be gone by then. */
const LOST_LEASE_GRACE_MS = 400;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;
const LOG_BYTES_MAX = 16 * 1024;
/** How long the streams of a program that has ended may stay open: a process that left its group may hold them. */
const DRAIN_MS = 1_000;

/** The checkpoints that a program reports. */
interface Reports {
  readonly committing: boolean;
  /** Fulfilled when every one of them is committed, or one was refused; never rejected. */
  readonly done: Promise<void>;
}

/** A program that carries out one attempt. */
interface Child {
  readonly group: ProcessGroup;
  readonly execution: RuntimeExecution;
  readonly output: BoundedOutput;
  readonly log: OutputTail;
  readonly secrets: readonly string[];
  readonly reports: Reports;
  used: GroupUsage | undefined;
}

/**
 * Runs a program for each attempt. It gets one line of JSON on standard input, `{ workloadId, attemptId, attempt,
 * fencingToken, input, checkpoints, capabilities, connectionScopes }`, and prints its output, one JSON value, on standard
 * output. It may commit progress by writing JSON, a value a line, to descriptor 3. Exit code 0 means that it is done.
 *
 * It leads a process group of its own. The whole group is asked to end (SIGTERM) and then killed when the attempt is
 * cancelled, its time is over, its lease is lost, or the worker stops or dies; at once when it exceeds its output, memory
 * or processor time. What of the group still runs when the program has ended is killed as well.
 *
 * Memory is the group's resident memory, looked at ten times a second on Linux (a bound on an address space, the other
 * way, keeps programs from starting that reserve more than they use); elsewhere such a policy is refused. Processor time is
 * the group's on Linux; everywhere the kernel also bounds each process, by the next whole second.
 */
class ChildProcessRuntime implements WorkerRuntime {
  readonly #options: ChildProcessOptions;
  readonly #executions = new RuntimeExecutions();

  constructor(options: ChildProcessOptions) {
    this.#options = options;
    if (options.command === "" || [options.command, ...(options.args ?? [])].some((part) => part.includes("\0")))
      throw new MandateError("WORKLOAD_INVALID", "the command is empty, or has a NUL in it", {
        details: { paths: ["command"] },
      });
  }

  check(policy: RuntimePolicy): void {
    checkPolicy(policy, { name: "child process", cpu: true, memory: canMeasureGroups, variables: true });
  }

  async start(claim: RuntimeClaim, policy: RuntimePolicy): Promise<void> {
    this.check(policy);
    this.#executions.start(claim, policy);
  }

  execute(claim: RuntimeClaim, input: Json, context: RuntimeContext): Promise<RuntimeResult> {
    return this.#executions.run(claim, context.signal, async (execution) => {
      execution.signal.throwIfAborted();
      const child = await this.#begin(execution, claim, context);
      try {
        return await this.#finish(child, claim, stdinOf(claim, input, context));
      } finally {
        child.group.kill();
      }
    });
  }

  cancel(claim: RuntimeClaim): Promise<void> {
    return this.#executions.stop(claim, "cancel");
  }

  timeout(claim: RuntimeClaim): Promise<void> {
    return this.#executions.stop(claim, "timeout");
  }

  async #begin(execution: RuntimeExecution, claim: RuntimeClaim, context: RuntimeContext): Promise<Child> {
    const { args = [], command, cwd, env: given = {}, logBytesMax = LOG_BYTES_MAX } = this.#options;
    const { policy } = execution;
    const env = childEnvironment(claim, policy, given);
    const cpuSeconds = policy.maxCpuMillis === undefined ? undefined : Math.ceil(policy.maxCpuMillis / 1000);
    let group: ProcessGroup;
    try {
      group = await ProcessGroup.start({ command, args, env, cwd, cpuSeconds });
    } catch (thrown) {
      const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
      const message = `the program could not be started (${code})`;
      throw new WorkloadFailure("worker_failure", message, { effect: "none", cause: thrown });
    }
    const { variables } = policy.secretPolicy;
    return {
      group,
      execution,
      output: new BoundedOutput(group.stdout, this.#outputBytesMax, () => execution.stop(this.#outputTooLarge())),
      log: new OutputTail(group.stderr, logBytesMax),
      secrets: secretValuesOf(env, variables === "all" ? [] : variables),
      reports: this.#commitReports(group, execution, context),
      used: undefined,
    };
  }

  get #outputBytesMax(): number {
    return this.#options.outputBytesMax ?? OUTPUT_BYTES_MAX;
  }

  #outputTooLarge(): WorkloadFailure {
    return new WorkloadFailure("output_too_large", `it wrote more than ${this.#outputBytesMax} bytes`);
  }

  /** Commits what comes on descriptor 3, a value at a time. The first that can't be committed ends the attempt. */
  #commitReports(group: ProcessGroup, execution: RuntimeExecution, context: RuntimeContext): Reports {
    const commit = async (): Promise<void> => {
      try {
        for await (const line of readLines(group.reports, this.#outputBytesMax)) {
          reports.committing = true;
          if (line.toString("utf8").trim() !== "") await context.checkpoint(checkpointOf(line));
          reports.committing = false;
        }
      } catch (thrown) {
        execution.stop(thrown instanceof RangeError ? this.#outputTooLarge() : checkpointFailure(thrown));
      }
    };
    const reports: { committing: boolean; done: Promise<void> } = { committing: false, done: Promise.resolve() };
    reports.done = commit();
    return reports;
  }

  /** Sees it through to its end. */
  async #finish(child: Child, claim: RuntimeClaim, text: string): Promise<RuntimeResult> {
    const { execution, group } = child;
    const { signal } = execution;
    const stop = (): void => this.#stop(group, signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    const endWatch = this.#watch(child);
    // A program need not read what it is given.
    group.stdin.on("error", () => undefined);
    group.stdin.end(text);
    const exit = await group.exited;
    endWatch();
    await drained(child);
    return this.#resultOf(child, claim, exit);
  }

  #stop(group: ProcessGroup, reason: unknown): void {
    const { killGraceMs = KILL_GRACE_MS } = this.#options;
    // Whoever has used too much is not left to use more of it.
    if (reason instanceof WorkloadFailure && reason.kind !== "timeout") group.kill();
    else if (reason instanceof WorkStopped && reason.stopCause === "lease_lost")
      group.end(Math.min(killGraceMs, LOST_LEASE_GRACE_MS));
    else group.end(killGraceMs);
  }

  #watch(child: Child): () => void {
    const { execution, group } = child;
    const { maxCpuMillis, maxMemoryBytes } = execution.policy;
    if (!canMeasureGroups || (maxCpuMillis === undefined && maxMemoryBytes === undefined)) return () => undefined;
    const report = (usage: GroupUsage): void => {
      const { cpuMillis = 0, memoryBytes = 0 } = child.used ?? {};
      child.used = {
        cpuMillis: Math.max(cpuMillis, usage.cpuMillis),
        memoryBytes: Math.max(memoryBytes, usage.memoryBytes),
      };
      if (maxMemoryBytes !== undefined && usage.memoryBytes > maxMemoryBytes)
        execution.stop(new WorkloadFailure("memory_exceeded", `it used more than ${maxMemoryBytes} bytes of memory`));
      if (maxCpuMillis !== undefined && usage.cpuMillis > maxCpuMillis) execution.stop(cpuExceeded(maxCpuMillis));
    };
    return watchGroup({ group: group.pid, closeLookBytes: maxMemoryBytes ?? Number.POSITIVE_INFINITY, report });
  }

  #resultOf(child: Child, claim: RuntimeClaim, exit: GroupExit): RuntimeResult {
    const { execution, log, output, secrets, used } = child;
    execution.signal.throwIfAborted();
    const said = redact(log.text(), secrets);
    const { maxCpuMillis } = execution.policy;
    if (maxCpuMillis !== undefined && exit.signal === "SIGXCPU") throw cpuExceeded(maxCpuMillis);
    if (exit.code !== 0) throw exitFailure(exit, said);
    return {
      resultId: defaultResultIdOf(claim.attemptId),
      output: outputOf(output.bytes()),
      logs: said.split("\n").filter((line) => line !== ""),
      artifacts: [],
      resourceUsage: { durationMs: execution.durationMs, ...used },
    };
  }
}

/** A runtime that starts a program for each attempt ({@link WorkerRuntime}). On Linux and macOS. */
export const childProcessRuntime = (options: ChildProcessOptions): WorkerRuntime => new ChildProcessRuntime(options);

const cpuExceeded = (maxCpuMillis: number): WorkloadFailure =>
  new WorkloadFailure("cpu_exceeded", `it used more than ${maxCpuMillis} ms of processor time`);

function stdinOf(claim: RuntimeClaim, input: Json, context: RuntimeContext): string {
  const { attemptId, fencingToken, workloadId } = claim;
  const { attempt, capabilities, checkpoints, connectionScopes } = context;
  const work = { workloadId, attemptId, attempt, fencingToken, input, checkpoints, capabilities, connectionScopes };
  return `${JSON.stringify(work)}\n`;
}

function checkpointOf(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch (thrown) {
    const message = `a line on descriptor ${CHECKPOINT_DESCRIPTOR} is not JSON`;
    throw new WorkloadFailure("checkpoint_rejected", message, { cause: thrown });
  }
}

function checkpointFailure(thrown: unknown): unknown {
  if (!(thrown instanceof MandateError)) return thrown;
  const message = `a checkpoint was refused with ${thrown.code}`;
  return new WorkloadFailure("checkpoint_rejected", message, { cause: thrown });
}

/**
 * Waits until everything that the program wrote has been read. Its group is gone, so the streams end by themselves, unless
 * a process that left the group holds them: then they are closed.
 */
async function drained({ execution, group, reports }: Child): Promise<void> {
  const outputs = [group.stdout, group.stderr];
  await within(DRAIN_MS, Promise.all(outputs.map((stream) => streamEnd(stream))));
  for (const stream of [...outputs, group.stdin]) stream.destroy();
  // A checkpoint that is being committed takes its time. Nobody waits for it once the attempt is stopped.
  const done = Promise.race([reports.done, aborted(execution.signal)]);
  while (!(await within(DRAIN_MS, done)) && reports.committing);
  group.reports.destroy();
  await done;
}

/** Whether it was fulfilled in time. */
async function within(timeoutMs: number, awaited: Promise<unknown>): Promise<boolean> {
  const waiting = new AbortController();
  const inTime = await Promise.race([awaited.then(() => true), pause(timeoutMs, waiting.signal).then(() => false)]);
  waiting.abort();
  return inTime;
}

const streamEnd = (stream: ProcessGroup["stdout"]): Promise<void> =>
  new Promise((resolve) => {
    if (stream.readableEnded || stream.destroyed) resolve();
    stream.once("end", () => resolve());
    stream.once("close", () => resolve());
  });
