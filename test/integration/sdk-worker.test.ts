// Goal: a worker of the library does its work once, keeps its lease however busy it is, and leaves no work behind.
// Method: a real nats-server, a node wired as in production, handlers that block, throw, hang and return what can't be kept.

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { FaultProxy } from "../../cluster/proxy.ts";
import { poll } from "../../cluster/poll.ts";
import type { Work } from "../../src/sdk/work-context.ts";
import { WorkloadFailure, WorkStopped } from "../../src/sdk/workload-failure.ts";
import { SdkSetting, Signal, untilAborted } from "./sdk-setting.ts";

let setting: SdkSetting;
beforeAll(async () => {
  setting = await SdkSetting.start();
});
afterEach(() => setting.endWorkers());
afterAll(() => setting.close());

const blockFor = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

test("a handler gets its input and the worker reports its result", async () => {
  await setting.worker({ handler: ({ input, attempt, fencingToken }) => ({ input, attempt, fencingToken }) });
  const { workloadId } = await setting.admit();
  const outcome = await setting.client.result(workloadId);
  expect(outcome).toMatchObject({
    state: "SUCCEEDED",
    result: { output: { input: { question: 6 }, attempt: 1, fencingToken: 1 } },
  });
});

test("a worker that speaks msgpack gets and gives the same", async () => {
  await setting.worker({ encoding: "msgpack", handler: ({ input }) => [input, 1.5, "ä", null] });
  const { workloadId } = await setting.admit();
  const outcome = await setting.client.result(workloadId);
  expect(outcome.result?.output).toEqual([{ question: 6 }, 1.5, "ä", null]);
});

test("a handler that keeps the event loop busy for several leases keeps its work", async () => {
  await setting.worker({ handler: () => blockFor(5_000) });
  const { workloadId } = await setting.admit();
  const workload = await setting.whenIn(workloadId, ["SUCCEEDED", "DEAD_LETTER"]);
  expect(workload).toMatchObject({ state: "SUCCEEDED", attemptCount: 1, result: { output: null } });
});

test("a claim whose reply was lost is done by the same attempt", async () => {
  const proxy = await FaultProxy.start({ target: Number(new URL(setting.nats.urls[0] ?? "").port) });
  try {
    await setting.worker({
      servers: [`127.0.0.1:${proxy.port}`],
      leaseMs: 20_000,
      waitMs: 4_000,
      handler: () => "done",
    });
    const first = await setting.admit();
    await setting.whenIn(first.workloadId, ["SUCCEEDED"]);
    proxy.setMode("drop-to-client");
    const { workloadId } = await setting.admit();
    expect((await setting.whenIn(workloadId, ["RUNNING"])).state).toBe("RUNNING");
    proxy.cut();
    proxy.setMode("pass");
    const workload = await setting.whenIn(workloadId, ["SUCCEEDED"]);
    expect(workload).toMatchObject({ state: "SUCCEEDED", attemptCount: 1, fencingToken: 1 });
  } finally {
    await setting.endWorkers();
    await proxy.close();
  }
});

test("a worker that is told to stop gives back what still arrives", async () => {
  const proxy = await FaultProxy.start({ target: Number(new URL(setting.nats.urls[0] ?? "").port) });
  try {
    const handled: string[] = [];
    const worker = await setting.worker({
      servers: [`127.0.0.1:${proxy.port}`],
      // With a second place the next request for work is on its way before the first piece is done.
      concurrency: 2,
      waitMs: 10_000,
      leaseMs: 60_000,
      handler: ({ workloadId }) => handled.push(workloadId),
    });
    const first = await setting.admit();
    await setting.whenIn(first.workloadId, ["SUCCEEDED"]);
    // The node does not hear that nobody waits any more.
    proxy.setMode("drop-to-server");
    const stopped = worker.stop();
    const { workloadId } = await setting.admit();
    expect((await setting.whenIn(workloadId, ["RUNNING"])).state).toBe("RUNNING");
    proxy.cut();
    proxy.setMode("pass");
    await stopped;
    const workload = await setting.client.get(workloadId);
    expect(workload.state).toBe("READY");
    expect(workload.lastFailure).toMatch(/the worker was shutting down/);
    expect(handled).toEqual([first.workloadId]);
    await setting.worker({ name: "another", handler: () => "by another" });
    expect((await setting.client.result(workloadId)).result?.output).toBe("by another");
  } finally {
    await setting.endWorkers();
    await proxy.close();
  }
});

test("a worker that is told to stop ends its request for work at once, and keeps nothing, whenever work comes", async () => {
  for (let round = 0; round < 4; round++) {
    const connected = new Signal();
    const worker = await setting.worker({
      name: `round-${round}`,
      waitMs: 20_000,
      leaseMs: 60_000,
      onState: () => connected.give(),
      handler: () => "done",
    });
    await connected.seen;
    const first = await setting.admit();
    await setting.whenIn(first.workloadId, ["SUCCEEDED"]);
    // Work comes before, while and after the worker is told, in steps of a millisecond.
    const admitted = setting.admit();
    blockFor(round % 2 === 0 ? 0 : round);
    if (round > 2) await admitted;
    const from = performance.now();
    await worker.stop();
    expect(performance.now() - from).toBeLessThan(5_000);
    const { workloadId } = await admitted;
    const { state } = await setting.client.get(workloadId);
    expect(["READY", "SUCCEEDED"]).toContain(state);
    await setting.client.cancel(workloadId).catch(() => undefined);
  }
});

test("a worker tells once that NATS is away, and once that it is back", async () => {
  const proxy = await FaultProxy.start({ target: Number(new URL(setting.nats.urls[0] ?? "").port) });
  try {
    const states: string[] = [];
    proxy.setMode("refuse");
    const started = setting.worker({
      servers: [`127.0.0.1:${proxy.port}`],
      onState: (state) => void states.push(state),
      handler: () => "done",
    });
    const told = (count: number): Promise<true | undefined> =>
      poll(() => (states.length >= count ? true : undefined), { timeoutMs: 10_000 });
    await told(1);
    proxy.setMode("pass");
    await started;
    proxy.setMode("refuse");
    proxy.cut();
    await told(3);
    proxy.setMode("pass");
    await told(4);
    const { workloadId } = await setting.admit();
    await setting.whenIn(workloadId, ["SUCCEEDED"]);
    expect(states).toEqual(["disconnected", "connected", "disconnected", "connected"]);
  } finally {
    await setting.endWorkers();
    await proxy.close();
  }
});

test.each([
  ["a function", () => () => 1, "result_rejected: output is a function, which is not JSON"],
  [
    "a number that JSON can't carry",
    () => ({ list: [Number.NaN] }),
    "result_rejected: output.list[0] is not a finite number",
  ],
  [
    "something that looks like a secret",
    () => ({ password: "hunter2" }),
    "result_rejected: the output was refused with WORKLOAD_SECRET_REJECTED at output.password",
  ],
  [
    "more than the store holds",
    () => "x".repeat(4_300_000),
    "result_rejected: the output was refused with WORKLOAD_TOO_LARGE at output",
  ],
])("an output that can't be stored ends the work: %s", async (_what, handler, lastFailure) => {
  await setting.worker({ handler });
  const { workloadId } = await setting.admit();
  const outcome = await setting.client.result(workloadId);
  expect(outcome).toMatchObject({ state: "DEAD_LETTER", lastFailure });
});

test("an error text that is refused as a secret is replaced by one that says so", async () => {
  await setting.worker({
    handler: () => {
      throw new WorkloadFailure("upstream", "sk-live-1234", { effect: "none" });
    },
  });
  const { workloadId } = await setting.admit();
  const outcome = await setting.client.result(workloadId);
  expect(outcome.state).toBe("DEAD_LETTER");
  expect(outcome.lastFailure).toBe(
    "upstream: the error text was refused with WORKLOAD_SECRET_REJECTED; the worker's log may have it",
  );
});

test("a kind of failure that the policy retries is tried again, with the checkpoints of the first attempt", async () => {
  const seen: unknown[] = [];
  await setting.worker({
    handler: async (work) => {
      seen.push(work.checkpoints.map(({ state }) => state));
      if (work.attempt > 1) return "second";
      await work.checkpoint({ step: 1 });
      throw new WorkloadFailure("transient_connection", "the line is down");
    },
  });
  const { workloadId } = await setting.admit();
  expect((await setting.client.result(workloadId)).result?.output).toBe("second");
  expect(seen).toEqual([[], [{ step: 1 }]]);
});

test("cancellation reaches the handler's signal and ends the work as cancelled", async () => {
  const running = new Signal<Work>();
  await setting.worker({
    handler: async (work) => {
      running.give(work);
      await untilAborted(work.signal);
      throw work.signal.reason;
    },
  });
  const { workloadId } = await setting.admit();
  const { signal } = await running.seen;
  await setting.client.cancel(workloadId, { reason: "not wanted" });
  const workload = await setting.whenIn(workloadId, ["CANCELLED"]);
  expect(workload.state).toBe("CANCELLED");
  expect(workload.attempts.at(-1)?.status).toBe("CANCELLED");
  expect(signal.reason).toBeInstanceOf(WorkStopped);
  expect((signal.reason as WorkStopped).stopCause).toBe("cancelled");
});

test("a completion that meets a request to cancel is confirmed as cancelled", async () => {
  const running = new Signal();
  const finish = new Signal();
  await setting.worker({
    leaseMs: 60_000,
    handler: async () => {
      running.give();
      await finish.seen;
      return "too late";
    },
  });
  const { workloadId } = await setting.admit();
  await running.seen;
  await setting.client.cancel(workloadId);
  finish.give();
  expect((await setting.whenIn(workloadId, ["CANCELLED"])).state).toBe("CANCELLED");
});

test("a handler whose claim was taken away learns it, and its late result changes nothing", async () => {
  const running = new Signal<Work>();
  const finish = new Signal();
  const worker = await setting.worker({
    concurrency: 2,
    handler: async (work) => {
      if (work.attempt > 1) return "second";
      running.give(work);
      await finish.seen;
      return "first, late";
    },
  });
  const { workloadId } = await setting.admit();
  const { signal } = await running.seen;
  await setting.client.timeout(workloadId);
  const done = await setting.whenIn(workloadId, ["SUCCEEDED"]);
  expect(done).toMatchObject({ fencingToken: 2, result: { output: "second" } });
  await poll(() => (signal.aborted ? true : undefined), { timeoutMs: 5_000 });
  expect((signal.reason as WorkStopped).stopCause).toBe("lease_lost");
  finish.give();
  await worker.stop();
  expect((await setting.client.get(workloadId)).result?.output).toBe("second");
});

test("a worker's lease is not trusted beyond what the authority can have granted, and its work is done elsewhere", async () => {
  const proxy = await FaultProxy.start({ target: Number(new URL(setting.nats.urls[0] ?? "").port) });
  try {
    const running = new Signal<Work>();
    const sentNoLaterThan = new Signal<number>();
    await setting.worker({
      servers: [`127.0.0.1:${proxy.port}`],
      handler: async (work) => {
        running.give(work);
        await untilAborted(work.signal);
        sentNoLaterThan.give(performance.now());
        throw work.signal.reason;
      },
    });
    const { workloadId } = await setting.admit();
    await running.seen;
    proxy.setMode("drop-both");
    const cutAt = performance.now();
    expect((await sentNoLaterThan.seen) - cutAt).toBeLessThan(1_500);
    await setting.worker({ name: "another", handler: () => "by another" });
    const done = await setting.whenIn(workloadId, ["SUCCEEDED"], 30_000);
    expect(done).toMatchObject({ fencingToken: 2, result: { output: "by another" } });
    proxy.setMode("pass");
    proxy.cut();
  } finally {
    await setting.endWorkers();
    await proxy.close();
  }
});

test("many workloads at once are each done once", async () => {
  const done: string[] = [];
  await setting.worker({ concurrency: 16, leaseMs: 5_000, handler: ({ workloadId }) => void done.push(workloadId) });
  const admitted = await Promise.all(Array.from({ length: 200 }, () => setting.admit()));
  const ids = admitted.map(({ workloadId }) => workloadId);
  const outcomes = await Promise.all(ids.map((workloadId) => setting.client.result(workloadId)));
  expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["SUCCEEDED"]));
  expect(done.toSorted()).toEqual(ids.toSorted());
});

test("work that is admitted at the very moment a worker begins to wait is handed out at once", async () => {
  await setting.worker({ leaseMs: 30_000, waitMs: 8_000, handler: () => "done" });
  const first = await setting.admit();
  await setting.client.result(first.workloadId);
  // Each result is followed by the worker's next request for work, and that by the next admission.
  const from = performance.now();
  for (let round = 0; round < 30; round++) {
    const { workloadId } = await setting.admit();
    expect((await setting.client.result(workloadId)).state).toBe("SUCCEEDED");
  }
  expect(performance.now() - from).toBeLessThan(7_000);
});

test("options that can't be are refused before anything is connected", async () => {
  await expect(setting.worker({ leaseMs: 0, handler: () => 1 })).rejects.toMatchObject({ code: "WORKLOAD_INVALID" });
  await expect(setting.worker({ concurrency: 0, handler: () => 1 })).rejects.toMatchObject({
    code: "WORKLOAD_INVALID",
  });
  await expect(setting.worker({ tenantId: "", handler: () => 1 })).rejects.toMatchObject({ code: "WORKLOAD_INVALID" });
});
