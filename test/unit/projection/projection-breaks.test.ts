/**
 * Goal: a view that was complete and whose follower breaks off is only getting older, which its age tells; one that is
 * told anew from scratch, or whose stream is gone, is no view to serve from.
 * Method: a projection over the simulated store, whose servers go away, come back, and lose their streams.
 */
import { expect, it } from "vitest";
import { systemTimers } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Projection } from "../../../src/store/projection/projection.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";

it("is no obstacle that following broke off, only that the view was never complete or its stream is gone", async () => {
  const clock = { now: () => 1000 };
  const log = new SimulatedLog({ clock });
  const store = log.client();
  const projection = new Projection({
    store,
    log: silentLog,
    now: clock.now,
    timers: systemTimers,
    onReady: () => undefined,
    onLater: () => undefined,
  });
  projection.start();
  expect(projection.obstacles()).toHaveLength(1);
  await expect.poll(() => projection.isCurrent()).toBe(true);
  expect(projection.obstacles()).toEqual([]);
  log.beginOutage();
  await expect.poll(() => projection.isCurrent()).toBe(false);
  expect(projection.obstacles()).toEqual([]);
  log.endOutage();
  await expect.poll(() => projection.isCurrent()).toBe(true);
  log.remove();
  await expect.poll(() => projection.obstacles()).toHaveLength(1);
  await projection.stop();
  await store.close();
});
