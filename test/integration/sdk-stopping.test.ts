// Goal: a worker that stops gives its handlers the time they have and no more, and hands back what they could not do.
// Method: a real nats-server, a node wired as in production, handlers that hang, and an authority that does not answer.

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { FaultProxy } from "../../cluster/proxy.ts";
import { SdkSetting, Signal, untilAborted } from "./sdk-setting.ts";

let setting: SdkSetting;
beforeAll(async () => {
  setting = await SdkSetting.start();
});
afterEach(() => setting.endWorkers());
afterAll(() => setting.close());

test("work that a stopping worker can't finish goes back and another worker does it", async () => {
  const running = new Signal();
  const worker = await setting.worker({
    graceMs: 100,
    handler: async ({ signal }) => {
      running.give();
      await untilAborted(signal);
      throw signal.reason;
    },
  });
  const { workloadId } = await setting.admit();
  await running.seen;
  await worker.stop();
  const given = await setting.client.get(workloadId);
  expect(given.lastFailure).toBe("worker_failure: the worker shut down before the work was done");
  await setting.worker({ name: "another", handler: () => "by another" });
  const done = await setting.whenIn(workloadId, ["SUCCEEDED"]);
  expect(done).toMatchObject({ attemptCount: 2, result: { output: "by another" } });
});

test("a handler is told to stop when its time is over, though no authority answers", async () => {
  const proxy = await FaultProxy.start({ target: Number(new URL(setting.nats.urls[0] ?? "").port) });
  try {
    const running = new Signal();
    const told = new Signal();
    const worker = await setting.worker({
      servers: [`127.0.0.1:${proxy.port}`],
      graceMs: 100,
      leaseMs: 60_000,
      handler: async ({ signal }) => {
        running.give();
        await untilAborted(signal);
        told.give();
        throw signal.reason;
      },
    });
    const { workloadId } = await setting.admit();
    await running.seen;
    proxy.setMode("hold");
    const stopped = worker.stop();
    const since = performance.now();
    await told.seen;
    expect(performance.now() - since).toBeLessThan(2_000);
    proxy.setMode("pass");
    await stopped;
    await setting.client.cancel(workloadId);
  } finally {
    await proxy.close();
  }
});

test("work of a handler that ignores the end of its worker goes back too", async () => {
  const running = new Signal();
  const worker = await setting.worker({
    graceMs: 100,
    leaseMs: 60_000,
    handler: () => {
      running.give();
      return new Promise(() => undefined);
    },
  });
  const { workloadId } = await setting.admit();
  await running.seen;
  await worker.stop();
  expect((await setting.client.get(workloadId)).state).toBe("READY");
});
