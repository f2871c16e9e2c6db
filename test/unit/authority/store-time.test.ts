/**
 * Goal: a node's estimate of the store's time never runs ahead of it, is late by a round trip at most, never goes back,
 * and stands still while one of the two clocks is plainly wrong (contract 5.5).
 * Method: random sightings, stored at a random moment of a random round trip, by a monotonic clock that drifts.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StoreTime } from "../../../src/authority/store-time.ts";

const START = 1_700_000_000_000;
const SKEW_MAX_MS = 2000;

/** A node's clocks, and the truth. */
class Clocks {
  /** The store's clock, ms. */
  truth = START;
  wallOffsetMs = 0;
  readonly rate: number;

  constructor(rate = 1) {
    this.rate = rate;
  }

  readonly monotonic = (): number => (this.truth - START) * this.rate;
  readonly time = new StoreTime({
    monotonic: () => this.monotonic(),
    wall: { now: () => this.truth + this.wallOffsetMs },
    skewMaxMs: SKEW_MAX_MS,
  });

  /** Writes a heartbeat that is stored after `thereMs` and seen `backMs` later. */
  sight(thereMs: number, backMs: number): void {
    const sentAt = this.monotonic();
    this.truth += thereMs;
    const storeAt = Math.floor(this.truth);
    this.truth += backMs;
    this.time.observe({ storeAt, sentAt, seenAt: this.monotonic() });
  }
}

describe("the store's time", () => {
  it("is never ahead, late by the way back at most, and never goes back", () => {
    const step = fc.record({ thereMs: fc.nat(40), backMs: fc.nat(400), restMs: fc.nat(1500) });
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 30 }),
        fc.integer({ min: -200, max: 200 }),
        (steps, ppm) => {
          const clocks = new Clocks(1 + ppm / 1_000_000);
          let last = 0;
          for (const { thereMs, backMs, restMs } of steps) {
            clocks.sight(thereMs, backMs);
            for (const wait of [0, restMs]) {
              clocks.truth += wait;
              const now = clocks.time.now();
              expect(now).toBeGreaterThanOrEqual(last);
              expect(now).toBeLessThanOrEqual(clocks.truth + 5);
              expect(now).toBeGreaterThan(clocks.truth - backMs - 8);
              last = now;
            }
          }
        },
      ),
    );
  });

  it("is told by the sighting that came back fastest, as long as clocks may be trusted not to drift", () => {
    const clocks = new Clocks();
    clocks.sight(1, 1);
    clocks.sight(1, 900);
    expect(clocks.truth - clocks.time.now()).toBeLessThan(5);
    clocks.truth += 11_000;
    clocks.sight(1, 900);
    expect(clocks.time.ageMs()).toBe(901);
    // What was known is not taken back: the time waits until the new estimate has come up to it.
    expect(clocks.truth - clocks.time.now()).toBeLessThanOrEqual(900);
  });

  it("takes nothing from the machine's clock once the store's was seen", () => {
    const clocks = new Clocks();
    expect(clocks.time.ageMs()).toBeUndefined();
    expect(clocks.time.offsetMs()).toBeUndefined();
    clocks.sight(1, 1);
    const before = clocks.time.now();
    clocks.wallOffsetMs = 1500;
    expect(clocks.time.now()).toBe(before);
    expect(clocks.time.offsetMs()).toBe(1501);
  });

  it("stands still while the two clocks differ by more than they may, and goes on afterwards", () => {
    const clocks = new Clocks();
    clocks.sight(1, 1);
    const before = clocks.time.now();
    clocks.wallOffsetMs = 3_600_000;
    clocks.truth += 5000;
    expect(clocks.time.now()).toBe(before);
    clocks.wallOffsetMs = 0;
    expect(clocks.time.now()).toBeGreaterThanOrEqual(before + 4990);
  });
});
