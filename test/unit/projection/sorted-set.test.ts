/**
 * Goal: the sorted set holds what a plain sorted list would, in the same order, from any place.
 * Method: random sequences of additions and deletions against an array; enough of them to split and drop chunks.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SortedSet } from "../../../src/store/projection/sorted-set.ts";

const compareNumbers = (left: number, right: number): number => left - right;

describe("a sorted set", () => {
  it("agrees with a sorted list after any sequence of additions and deletions", () => {
    const step = fc.record({ add: fc.boolean(), value: fc.integer({ min: 0, max: 60 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: -1, max: 61 }), (steps, from) => {
        const set = new SortedSet(compareNumbers);
        const model = new Set<number>();
        for (const { add, value } of steps) {
          if (add) expect(set.add(value)).toBe(!model.has(value));
          else expect(set.delete(value)).toBe(model.has(value));
          if (add) model.add(value);
          else model.delete(value);
        }
        const sorted = [...model].sort(compareNumbers);
        expect([...set.items()]).toEqual(sorted);
        expect([...set.items(from)]).toEqual(sorted.filter((value) => value >= from));
        expect([set.size, set.first()]).toEqual([sorted.length, sorted[0]]);
      }),
    );
  });

  it.each([1, 7919])("stays in order over many chunks, filled in steps of %i and emptied again", (stride) => {
    const set = new SortedSet(compareNumbers);
    const size = 10_007;
    for (let index = 0; index < size; index++) set.add((index * stride) % size);
    expect(set.size).toBe(size);
    let expected = 0;
    for (const value of set.items()) expect(value).toBe(expected++);
    expect(set.items(5000).next().value).toBe(5000);
    for (let index = 0; index < size; index += 2) expect(set.delete(index)).toBe(true);
    expect([...set.items(4000)].slice(0, 3)).toEqual([4001, 4003, 4005]);
    for (let index = 1; index < size; index += 2) expect(set.delete(index)).toBe(true);
    expect([set.size, set.first(), [...set.items()]]).toEqual([0, undefined, []]);
    expect(set.add(3)).toBe(true);
    expect([...set.items()]).toEqual([3]);
  });
});
