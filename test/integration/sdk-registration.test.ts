// Goal: a worker of the library has its place in the registry while it runs, gets it back when it was given up, and loses
// it to the next process of its name, together with its claims.
// Method: a real nats-server, a node wired as in production, several workers in this process.

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { poll } from "../../cluster/poll.ts";
import { workerIdOf } from "../../src/core/worker/identity.ts";
import type { WorkerView } from "../../src/core/worker/worker-view.ts";
import { scope, SdkSetting, Signal, untilAborted } from "./sdk-setting.ts";

let setting: SdkSetting;
beforeAll(async () => {
  setting = await SdkSetting.start();
});
afterEach(() => setting.endWorkers());
afterAll(() => setting.close());

async function shown(name: string): Promise<WorkerView> {
  const query = new URLSearchParams(scope).toString();
  const response = await fetch(`${setting.nodes[0]?.url}/v1/workers/${workerIdOf({ ...scope, name })}?${query}`, {
    headers: { "x-mandate-subject": "human:ada" },
  });
  return (await response.json()) as WorkerView;
}

async function operate(name: string, how: "drain" | "recover" | "remove"): Promise<number> {
  const query = new URLSearchParams(scope).toString();
  const path = `/v1/workers/${workerIdOf({ ...scope, name })}/${how}?${query}`;
  const headers = { "x-mandate-subject": "human:ada" };
  return (await fetch(`${setting.nodes[0]?.url}${path}`, { method: "POST", headers })).status;
}

const lifecycleOf = (name: string, lifecycle: string): Promise<true | undefined> =>
  poll(async () => ((await shown(name)).lifecycle === lifecycle ? true : undefined), { timeoutMs: 20_000 });

test("a worker is READY, BUSY while its places are taken, and OFFLINE when it has stopped", async () => {
  const finish = new Signal();
  const worker = await setting.worker({
    name: "states",
    version: "4.2",
    labels: { zone: "north" },
    handler: () => finish.seen,
  });
  expect(await lifecycleOf("states", "READY")).toBe(true);
  expect(await shown("states")).toMatchObject({ version: "4.2", labels: { zone: "north" }, health: "HEALTHY" });
  const { workloadId } = await setting.admit();
  expect(await lifecycleOf("states", "BUSY")).toBe(true);
  finish.give();
  await setting.whenIn(workloadId, ["SUCCEEDED"]);
  expect(await lifecycleOf("states", "READY")).toBe(true);
  await worker.stop();
  expect(await shown("states")).toMatchObject({ lifecycle: "OFFLINE", claims: [] });
});

test("a process takes name and claims over from the one before it, which ends", async () => {
  const began = new Signal();
  const old = await setting.worker({
    name: "heir",
    leaseMs: 60_000,
    handler: ({ signal }) => {
      began.give();
      return untilAborted(signal);
    },
  });
  const ended = expect(old.ended).rejects.toMatchObject({ code: "WORKER_SUPERSEDED" });
  const { workloadId } = await setting.admit();
  await began.seen;
  await setting.worker({ name: "heir", handler: ({ attempt }) => attempt });
  const workload = await setting.whenIn(workloadId, ["SUCCEEDED"]);
  expect(workload).toMatchObject({ attemptCount: 2, result: { output: 2 } });
  expect(workload.attempts[0]).toMatchObject({ status: "WORKER_LOST", error: "worker_lost: worker superseded" });
  await ended;
});

test("a worker that was given up while its thread was busy has its place again, and works on", async () => {
  await setting.worker({ name: "dazed", heartbeatIntervalMs: 200, handler: () => "done" });
  expect(await lifecycleOf("dazed", "READY")).toBe(true);
  // Its heartbeats stop; the pass of the node, which shares this thread, comes first when it goes on.
  const end = performance.now() + 1_500;
  while (performance.now() < end);
  const { workloadId } = await setting.admit();
  expect(await setting.whenIn(workloadId, ["SUCCEEDED"])).toMatchObject({ state: "SUCCEEDED" });
  expect(await lifecycleOf("dazed", "READY")).toBe(true);
});

test("work that is over is stopped with the next heartbeat, long before its lease would be renewed", async () => {
  let took: number | undefined;
  await setting.worker({
    name: "told",
    heartbeatIntervalMs: 200,
    leaseMs: 120_000,
    handler: async ({ signal }) => {
      const from = performance.now();
      await untilAborted(signal);
      took = performance.now() - from;
    },
  });
  const { workloadId } = await setting.admit({ timeouts: { executionMs: 1_000 } });
  await setting.whenIn(workloadId, ["TIMED_OUT"]);
  await poll(() => (took === undefined ? undefined : true), { timeoutMs: 30_000 });
  expect(took, "ms until the handler was told").toBeLessThan(30_000);
}, 60_000);

test("a worker that an operator drained is given nothing until he recovers it", async () => {
  await setting.worker({ name: "drained", heartbeatIntervalMs: 200, handler: () => "done" });
  expect(await lifecycleOf("drained", "READY")).toBe(true);
  expect(await operate("drained", "drain")).toBe(200);
  expect(await lifecycleOf("drained", "OFFLINE")).toBe(true);
  const { workloadId } = await setting.admit();
  // Another worker does what comes later, so it was there to be taken.
  await setting.worker({ name: "undrained", workloadKinds: ["other"], handler: () => "by another" });
  const later = await setting.admit({ definitionId: "other" });
  await setting.whenIn(later.workloadId, ["SUCCEEDED"]);
  expect((await setting.client.get(workloadId)).state).toBe("READY");
  expect((await shown("drained")).lifecycle).toBe("OFFLINE");
  expect(await operate("drained", "recover")).toBe(200);
  expect(await setting.whenIn(workloadId, ["SUCCEEDED"])).toMatchObject({ result: { output: "done" } });
});

test("a worker that an operator removed registers anew", async () => {
  await setting.worker({ name: "removed", heartbeatIntervalMs: 200, handler: () => "done" });
  expect(await lifecycleOf("removed", "READY")).toBe(true);
  const before = (await shown("removed")).registeredAt;
  expect(await operate("removed", "remove")).toBe(200);
  expect(await lifecycleOf("removed", "READY")).toBe(true);
  expect((await shown("removed")).registeredAt).toBeGreaterThan(before);
});
