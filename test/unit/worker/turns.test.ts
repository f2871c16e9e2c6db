/**
 * Goal: queues get turns by their weights and none starves; waiting lifts a priority, up to the highest there is.
 * Method: turns are played; the general bound is in test/property/workers.test.ts.
 */
import { describe, expect, it } from "vitest";
import { agedPriority, nextTurn, noTurns, PRIORITY_MAX, type WeightedQueue } from "../../../src/core/worker/turns.ts";

/** The queues that get the next turns. */
function play(queues: readonly WeightedQueue[], count: number, from = noTurns): readonly string[] {
  const keys: string[] = [];
  let turns = from;
  for (let turn = 0; turn < count; turn++) {
    const next = nextTurn(queues, turns);
    if (next === undefined) break;
    keys.push(next.key);
    turns = next.turns;
  }
  return keys;
}

const queue = (key: string, weight = 1): WeightedQueue => ({ key, weight });

describe("turns", () => {
  it("go round among equals, in the order of their keys, however they are listed", () => {
    expect(play([queue("b"), queue("a"), queue("c")], 6)).toEqual(["a", "b", "c", "a", "b", "c"]);
  });

  it("follow the weights, mixed rather than in a row", () => {
    expect(play([queue("a", 3), queue("b")], 8)).toEqual(["a", "b", "a", "a", "a", "b", "a", "a"]);
  });

  it("are nobody's without queues", () => {
    expect(nextTurn([], noTurns)).toBeUndefined();
  });

  it("come at once to a queue that is new, which makes up for nothing", () => {
    let turns = noTurns;
    for (let turn = 0; turn < 50; turn++) turns = nextTurn([queue("a")], turns)?.turns ?? turns;
    expect(play([queue("a"), queue("b")], 5, turns)).toEqual(["b", "a", "b", "a", "b"]);
  });

  it("are not gained by going away while ahead", () => {
    const all = [queue("a"), queue("b")];
    const ahead = nextTurn(all, noTurns);
    expect(ahead?.key).toBe("a");
    expect(play(all, 2, ahead?.turns)).toEqual(["b", "a"]);
  });

  it("keep nothing about queues that went and were caught up with", () => {
    const first = nextTurn([queue("gone")], noTurns);
    let turns = first?.turns ?? noTurns;
    for (let turn = 0; turn < 4; turn++) turns = nextTurn([queue("a"), queue("b")], turns)?.turns ?? turns;
    expect(turns.has("gone")).toBe(false);
  });
});

describe("an aged priority", () => {
  it("is the workload's own without aging, and before the first step", () => {
    expect(agedPriority(-5, 9e12, undefined)).toBe(-5);
    expect(agedPriority(-5, 999, 1000)).toBe(-5);
    expect(agedPriority(3, -9000, 1000)).toBe(3);
  });

  it("is one higher for each step, and ends at the highest", () => {
    expect(agedPriority(-5, 7999, 1000)).toBe(2);
    expect(agedPriority(PRIORITY_MAX - 1, Number.MAX_SAFE_INTEGER, 1)).toBe(PRIORITY_MAX);
    expect(agedPriority(PRIORITY_MAX, 5000, 1)).toBe(PRIORITY_MAX);
  });
});
