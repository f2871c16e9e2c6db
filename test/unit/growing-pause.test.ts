/**
 * Goal: what is tried every second is not told every second.
 * Method: a clock that steps by a second, over two minutes.
 */
import { expect, test } from "vitest";
import { GrowingPause } from "../../src/node/growing-pause.ts";

test("something is told at once, then after 1, 2, 4, 8, 16 seconds, and every 30 from then on", () => {
  let now = 5_000;
  const pause = new GrowingPause(() => now);
  const told: number[] = [];
  for (let second = 0; second <= 121; second++) {
    if (pause.over()) told.push(second);
    now += 1_000;
  }
  expect(told).toEqual([0, 1, 3, 7, 15, 31, 61, 91, 121]);
});
