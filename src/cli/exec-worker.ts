import type { Log } from "../base/log.ts";
import { MandateError } from "../core/errors.ts";
import type { NatsLogin } from "../sdk/nats-login.ts";
import { childProcessRuntime } from "../sdk/runtimes/child-process.ts";
import { findProgram } from "../sdk/runtimes/find-program.ts";
import { runtimeHandler, unrestricted, type RuntimePolicy } from "../sdk/runtimes/runtime.ts";
import type { Handler, Work } from "../sdk/work-context.ts";
import { runWorker, type RunningWorker } from "../sdk/worker.ts";
import { WorkloadFailure, WorkStopped } from "../sdk/workload-failure.ts";
import { UsageError } from "./arguments.ts";
import type { ExecOptions } from "./worker-arguments.ts";
import { followTokenFile, type WorkerToken } from "./worker-token.ts";

/** How much of a failure stands in the log's line. */
const WHY_LENGTH_MAX = 300;

/** @throws UsageError when no such program can be started: it would fail every piece of work. */
function requireProgram(command: string): void {
  if (findProgram(command, { path: process.env["PATH"] }) !== undefined) return;
  const hint = command.includes(" ") ? "; its arguments are words of their own, without quotes around all of it" : "";
  throw new UsageError(`--exec: there is no program ${JSON.stringify(command)}${hint}`);
}

function policyOf({ maxCpuMillis, maxDurationMs, maxMemoryBytes, variables }: ExecOptions): RuntimePolicy {
  return {
    ...unrestricted,
    maxDurationMs,
    secretPolicy: { variables },
    ...(maxCpuMillis === undefined ? {} : { maxCpuMillis }),
    ...(maxMemoryBytes === undefined ? {} : { maxMemoryBytes }),
  };
}

const firstLine = (text: string): string => text.replaceAll(/\s+/g, " ").slice(0, WHY_LENGTH_MAX).toWellFormed();

function outcomeOf(thrown: unknown): string {
  if (thrown instanceof WorkStopped) return `stopped: ${thrown.message}`;
  if (thrown instanceof WorkloadFailure) return `failed, ${thrown.kind}: ${firstLine(thrown.message)}`;
  return `failed: ${firstLine(thrown instanceof Error ? thrown.message : String(thrown))}`;
}

/** Tells of each piece of work when it begins and when it ends. */
const told =
  (handler: Handler, say: (text: string) => void): Handler =>
  async (work: Work) => {
    const name = `${work.workloadId}, attempt ${work.attempt}`;
    const from = performance.now();
    const took = (): string => `${Math.round(performance.now() - from)} ms`;
    say(`began ${name}`);
    try {
      const output = await handler(work);
      say(`ended ${name} after ${took()}: done`);
      return output;
    } catch (thrown) {
      say(`ended ${name} after ${took()}: ${outcomeOf(thrown)}`);
      throw thrown;
    }
  };

const logOf = (say: (text: string) => void): Log => {
  const line = (fields: object, message: string): void => say(`${message} ${JSON.stringify(fields)}`);
  return { debug: () => undefined, info: line, warn: line, error: line };
};

/**
 * Runs a worker that starts a program for each piece of work, until SIGTERM; tells what it does by lines. Answers the
 * process's exit code: 1 when NATS or the authority refuses the worker.
 *
 * @throws UsageError when there is no such program, or an option makes no sense.
 */
export async function runExecWorker(
  options: ExecOptions & { readonly login: NatsLogin; readonly grant: WorkerToken },
  write: (line: string) => void,
): Promise<number> {
  const say = (text: string): void => write(`${new Date().toISOString()} ${text}\n`);
  const { applicationId, args, capabilities, command, concurrency, grant, graceMs, leaseMs, login, name } = options;
  const { servers, tenantId } = options;
  requireProgram(command);
  let connected = false;
  let worker: RunningWorker;
  try {
    // A program that was told to stop must be gone while the lease still holds.
    const runtime = childProcessRuntime({ command, args, killGraceMs: Math.min(1_500, Math.round(leaseMs / 3)) });
    worker = await runWorker({
      ...{ servers, tenantId, applicationId, name, capabilities, concurrency, leaseMs, graceMs, login },
      ...(grant.token === undefined ? {} : { token: grant.token }),
      handler: told(runtimeHandler(runtime, policyOf(options)), say),
      log: logOf(say),
      onState: (state) => {
        if (state === "disconnected") say(`NATS is away; trying again at ${servers.join(", ")}`);
        else say(connected ? "connected again" : "connected");
        connected ||= state === "connected";
      },
    });
  } catch (thrown) {
    if (!(thrown instanceof MandateError)) throw thrown;
    if (thrown.code === "WORKLOAD_INVALID") throw new UsageError(thrown.message, { cause: thrown });
    say(`the worker is refused: ${thrown.code}: ${thrown.message}`);
    return 1;
  }
  followTokenFile(worker, grant, { say });
  say(`${worker.workerId} claims work of ${tenantId}/${applicationId} for ${[command, ...args].join(" ")}`);
  try {
    await worker.ended;
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof MandateError)) throw thrown;
    say(`the worker is refused: ${thrown.code}: ${thrown.message}`);
    return 1;
  }
}
