/**
 * Goal: what belongs to one application never holds up what belongs to another, and priority never starves what waits.
 * Method: the two orders by themselves.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inTurns } from "../../../src/authority/turns.ts";
import { compareRank, readyOrder, type Rank } from "../../../src/store/projection/projected.ts";

describe("turns", () => {
  it("go round the groups, each in its own order", () => {
    const items = ["a1", "a2", "a3", "b1", "a4", "c1", "c2"];
    expect([...inTurns(items, ([group = ""]) => group)]).toEqual(["a1", "b1", "c1", "a2", "c2", "a3", "a4"]);
    expect([...inTurns([], () => "")]).toEqual([]);
  });
});

describe("the order of a queue", () => {
  const rank = (priority: number, createdAt: number): Rank => ({ priority, createdAt, workloadId: `${priority}` });

  it("is that of priority and age without aging", () => {
    expect(readyOrder(undefined)).toBe(compareRank);
  });

  it("lets work overtake what is more important and came later by as many steps", () => {
    const order = readyOrder(60_000);
    const old = rank(0, 1_000_000);
    expect(order(old, rank(1, 1_000_000 + 59_999))).toBeGreaterThan(0);
    expect(order(old, rank(1, 1_000_000 + 60_001))).toBeLessThan(0);
    expect(order(old, rank(3, 1_000_000 + 179_999))).toBeGreaterThan(0);
    expect(order(old, rank(3, 1_000_000 + 180_001))).toBeLessThan(0);
  });

  it("is one order, whatever the numbers", () => {
    const some = fc.record({
      priority: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      createdAt: fc.integer({ min: 0, max: 2 ** 42 }),
      workloadId: fc.string(),
    });
    const order = readyOrder(1_000);
    fc.assert(
      fc.property(some, some, some, (one, two, three) => {
        expect(Math.sign(order(one, two)) + Math.sign(order(two, one))).toBe(0);
        if (order(one, two) <= 0 && order(two, three) <= 0) expect(order(one, three)).toBeLessThanOrEqual(0);
      }),
    );
  });
});
