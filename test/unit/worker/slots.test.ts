/**
 * Goal: slots say what a worker holds; no more are given out than there is room for, and a release frees one claim's alone.
 * Method: owners with chosen slots held, at chosen concurrencies.
 */
import { describe, expect, it } from "vitest";
import {
  activeOf,
  chooseSlot,
  claimIdsOf,
  freeSlot,
  holdSlot,
  openSlots,
  shownLifecycle,
  slotOfClaim,
} from "../../../src/core/worker/slots.ts";
import { renderWorker } from "../../../src/core/worker/worker-view.ts";
import { ready, withClaims } from "./fixtures.ts";

const slotsHeld = (...indices: readonly number[]) =>
  indices.map((index) =>
    holdSlot("o", index, { claimId: `c${index}`, workloadId: "w", workerId: "o", incarnation: 1 }),
  );

describe("the slots that are open", () => {
  const cases: readonly (readonly [string, concurrency: number, held: readonly number[], open: readonly number[]])[] = [
    ["all of an idle owner", 3, [], [0, 1, 2]],
    ["those between held ones", 4, [0, 2], [1, 3]],
    ["none of a busy owner", 2, [0, 1], []],
    ["none while claims beyond a lowered concurrency fill it", 2, [2, 3], []],
    ["the lowest, while one claim beyond keeps one shut", 2, [3], [0]],
    ["the lowest free ones, however low the held ones are", 3, [1, 7], [0]],
    ["none while more claims run than there is room for", 1, [0, 5, 6], []],
  ];
  for (const [what, concurrency, held, open] of cases)
    it(`are ${what}`, () => {
      expect(openSlots(concurrency, slotsHeld(...held), 9)).toEqual(open);
      expect(chooseSlot(concurrency, slotsHeld(...held))).toBe(open[0]);
    });

  it("are as many as are asked for, even of very many", () => {
    expect(openSlots(10_000, slotsHeld(1), 2)).toEqual([0, 2]);
    expect(openSlots(10_000, [], 0)).toEqual([]);
  });

  it("count a record of a free slot like none", () => {
    expect(openSlots(2, [{ ownerId: "o", index: 0 }], 9)).toEqual([0, 1]);
  });
});

describe("a slot", () => {
  const hold = { claimId: "a", workloadId: "w", workerId: "o", incarnation: 3 };

  it("is held by a claim until that very claim leaves it, once", () => {
    const slot = holdSlot("o", 1, hold);
    expect(slot).toEqual({ ownerId: "o", index: 1, held: hold });
    expect(freeSlot(slot, "b")).toBeUndefined();
    const free = freeSlot(slot, "a");
    expect(free).toStrictEqual({ ownerId: "o", index: 1 });
    expect(free && freeSlot(free, "a")).toBeUndefined();
  });

  it("is found by its claim", () => {
    const slots = slotsHeld(0, 4);
    expect(slotOfClaim(slots, "c4")?.index).toBe(4);
    expect(slotOfClaim(slots, "c1")).toBeUndefined();
  });
});

describe("what is derived from slots", () => {
  it("is in the order of the slots, and counts those beyond a lowered concurrency", () => {
    const slots = [...slotsHeld(3, 0), { ownerId: "o", index: 1 }];
    expect(claimIdsOf(slots)).toEqual(["c0", "c3"]);
    expect(activeOf(slots)).toBe(2);
  });

  it("makes a READY worker BUSY exactly when every slot is taken", () => {
    const record = ready();
    expect(shownLifecycle(withClaims(record, undefined, "b"))).toBe("READY");
    expect(shownLifecycle(withClaims(record, "a", "b"))).toBe("BUSY");
    expect(shownLifecycle(withClaims({ ...record, concurrency: 1 }, undefined, "b"))).toBe("BUSY");
  });

  it("is shown with the worker, and what is remembered for the authority alone is not", () => {
    const record = ready();
    const { concurrency, superseded, grants, ...shown } = record;
    expect([concurrency, superseded, grants]).toMatchObject([2, [], [{ grantId: record.grantId }]]);
    expect(renderWorker(withClaims(record, "a", "b"))).toStrictEqual({
      ...shown,
      lifecycle: "BUSY",
      capacity: { concurrency: 2, active: 2 },
      claims: ["a", "b"],
    });
  });
});
