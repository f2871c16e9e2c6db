/**
 * Goal: a function that does the work is told to stop in time, is not waited for when it does not listen, and can do no
 * harm afterwards.
 * Method: handlers that listen, that finish all the same, and that never settle, run on their own without a worker.
 */
import { expect, test } from "vitest";
import type { Checkpoint } from "../../src/core/workload/record.ts";
import { inProcessRuntime } from "../../src/sdk/runtimes/in-process.ts";
import {
  runtimeHandler,
  unrestricted,
  type RuntimeContext,
  type RuntimePolicy,
} from "../../src/sdk/runtimes/runtime.ts";
import type { Handler, Work } from "../../src/sdk/work-context.ts";
import { WorkloadFailure, WorkStopped } from "../../src/sdk/workload-failure.ts";

const claimOf = (fencingToken: number) => ({ workloadId: "w", attemptId: `attempt_w_${fencingToken}`, fencingToken });
const policy: RuntimePolicy = { ...unrestricted, maxDurationMs: 10_000 };
const checkpoint = { sequence: 1 } as unknown as Checkpoint;

const contextOf = (signal: AbortSignal = new AbortController().signal): RuntimeContext => ({
  attempt: 1,
  checkpoints: [],
  capabilities: [],
  connectionScopes: [],
  signal,
  checkpoint: () => Promise.resolve(checkpoint),
  heartbeat: () => Promise.resolve({ cancellationRequested: false }),
});

/** Runs a handler; a stop is handed in once it runs. */
async function execute(
  handler: Handler,
  how: { readonly policy?: Partial<RuntimePolicy>; readonly stop?: WorkStopped } = {},
): Promise<unknown> {
  const stop = new AbortController();
  const runtime = inProcessRuntime(
    (work) => {
      if (how.stop !== undefined) queueMicrotask(() => stop.abort(how.stop));
      return handler(work);
    },
    { settleMs: 50 },
  );
  await runtime.start(claimOf(1), { ...policy, ...how.policy });
  return (await runtime.execute(claimOf(1), { question: 6 }, contextOf(stop.signal))).output;
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
const never = (): Promise<never> => new Promise(() => undefined);
const cancelled = new WorkStopped("cancelled", "not wanted");

test("a handler gets its work and answers its output", async () => {
  const runtime = inProcessRuntime(({ input, fencingToken, attempt }) => ({ input, fencingToken, attempt }));
  await runtime.start(claimOf(3), policy);
  expect(await runtime.execute(claimOf(3), "in", contextOf())).toMatchObject({
    resultId: "result_attempt_w_3",
    output: { input: "in", fencingToken: 3, attempt: 1 },
    logs: [],
    artifacts: [],
  });
});

test("a handler that takes too long is told so, and has failed whatever it answers then", async () => {
  const late = async ({ signal }: Work): Promise<string> => {
    await untilAborted(signal);
    return "late";
  };
  for (const handler of [late, never])
    await expect(execute(handler, { policy: { maxDurationMs: 20 } })).rejects.toMatchObject({
      kind: "timeout",
      effect: "unknown",
      message: "it took longer than 20 ms",
    });
});

test("a handler that finishes although it was told to stop has its result kept, and its own failure told", async () => {
  const finishing = async (work: Work): Promise<unknown> => {
    await untilAborted(work.signal);
    return work.checkpoint({ last: true });
  };
  expect(await execute(finishing, { stop: cancelled })).toBe(checkpoint);
  const failing = async ({ signal }: Work): Promise<never> => {
    await untilAborted(signal);
    throw new WorkloadFailure("half_done", "half of it");
  };
  await expect(execute(failing, { stop: cancelled })).rejects.toMatchObject({ kind: "half_done" });
});

test.each(["cancelled", "lease_lost", "shutdown"] as const)(
  "a handler that ignores its signal is not waited for, and can commit nothing any more: %s",
  async (stopCause) => {
    const stop = new WorkStopped(stopCause, "stop");
    let work: Work | undefined;
    const ignoring = (given: Work): Promise<never> => {
      work = given;
      return never();
    };
    await expect(execute(ignoring, { stop })).rejects.toBe(stop);
    await expect(work?.checkpoint({})).rejects.toBe(stop);
    await expect(work?.heartbeat()).rejects.toBe(stop);
  },
);

test("of two executions at once one is stopped and the other goes on", async () => {
  const runtime = inProcessRuntime(
    async ({ fencingToken, signal }) => {
      if (fencingToken === 2) return "neighbour";
      await untilAborted(signal);
      throw signal.reason;
    },
    { settleMs: 50 },
  );
  await runtime.start(claimOf(1), policy);
  await runtime.start(claimOf(2), policy);
  const first = runtime.execute(claimOf(1), null, contextOf()).catch((reason: unknown) => reason);
  await runtime.cancel(claimOf(1));
  expect(await first).toBeInstanceOf(WorkStopped);
  expect((await runtime.execute(claimOf(2), null, contextOf())).output).toBe("neighbour");
  // Nobody is there to be stopped.
  await runtime.timeout(claimOf(9));
});

test("work that was stopped before it began does not begin", async () => {
  let begun = false;
  const runtime = inProcessRuntime(() => {
    begun = true;
  });
  await runtime.start(claimOf(1), policy);
  await expect(runtime.execute(claimOf(1), null, contextOf(AbortSignal.abort(cancelled)))).rejects.toBe(cancelled);
  expect(begun).toBe(false);
});

test("a claim is started once, and executed once", async () => {
  const runtime = inProcessRuntime(() => "done");
  await expect(runtime.execute(claimOf(1), null, contextOf())).rejects.toMatchObject({ code: "WORKLOAD_INVALID" });
  await runtime.start(claimOf(1), policy);
  await expect(runtime.start(claimOf(1), policy)).rejects.toMatchObject({ code: "WORKLOAD_INVALID" });
  await runtime.execute(claimOf(1), null, contextOf());
  await expect(runtime.execute(claimOf(1), null, contextOf())).rejects.toMatchObject({ code: "WORKLOAD_INVALID" });
});

test.each<[string, Partial<RuntimePolicy>]>([
  ["maxCpuMillis", { maxCpuMillis: 1 }],
  ["maxMemoryBytes", { maxMemoryBytes: 1 }],
  ["secretPolicy.variables", { secretPolicy: { variables: [] } }],
  ["networkPolicy.enforced", { networkPolicy: { allow: [], enforced: true } }],
])("a policy that a function can't be held to is refused by its name: %s", (path, change) => {
  const runtime = inProcessRuntime(() => 1);
  expect(() => runtimeHandler(runtime, { ...policy, ...change })).toThrow(`policy.${path} can't be enforced`);
});
