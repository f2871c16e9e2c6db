/**
 * Goal: the small things everything rests on do what their comments say.
 * Method: known answers, and statistics where a distribution is promised.
 */
import { describe, expect, it } from "vitest";
import { AssertionError, assert } from "../../src/base/assert.ts";
import { utf8, utf8Length } from "../../src/base/bytes.ts";
import { TIMER_MAX_MS, monotonicMs, systemClock } from "../../src/base/clock.ts";
import { sha256Hex, spreadHash } from "../../src/base/hash.ts";
import { inLanes } from "../../src/base/lanes.ts";
import { seededRandom } from "../../src/base/random.ts";
import { err, ok } from "../../src/base/result.ts";

describe("a seeded random source", () => {
  const draw = (seed: number, count: number): number[] => Array.from({ length: count }, seededRandom(seed));

  it("repeats from its seed and differs between seeds", () => {
    expect(draw(42, 100)).toEqual(draw(42, 100));
    expect(draw(42, 10)).not.toEqual(draw(43, 10));
    expect(draw(2 ** 32 + 5, 10)).toEqual(draw(5, 10));
  });

  it("gives the numbers it gave on every machine before", () => {
    expect(draw(1, 3)).toEqual([0.6270739405881613, 0.002735721180215478, 0.5274470399599522]);
  });

  it("stays within [0, 1) and spreads evenly", () => {
    const counts = Array.from({ length: 10 }, () => 0);
    for (const number of draw(7, 100_000)) {
      expect(number >= 0 && number < 1).toBe(true);
      counts[Math.floor(number * 10)] = (counts[Math.floor(number * 10)] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
  });
});

describe("lanes", () => {
  const numbers = Array.from({ length: 20 }, (_, index) => index);

  it("handle everything once, in order, never more at a time than there are lanes", async () => {
    const begun: number[] = [];
    let underWay = 0;
    let most = 0;
    await inLanes(numbers, 4, async (number) => {
      begun.push(number);
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= 1;
    });
    expect(begun).toEqual(numbers);
    expect(most).toBe(4);
    await inLanes([], 4, () => Promise.reject(new Error("there is nothing")));
  });

  it("fail as the first failure does, and begin nothing after it", async () => {
    const begun: number[] = [];
    const work = inLanes(numbers, 2, async (number) => {
      begun.push(number);
      await Promise.resolve();
      if (number === 5) throw new Error("five");
    });
    await expect(work).rejects.toThrow("five");
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });
});

describe("hashes", () => {
  it("hashes UTF-8 with SHA-256, in lower-case hex", () => {
    expect(sha256Hex("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(sha256Hex("é")).not.toBe(sha256Hex("é".normalize("NFD")));
  });

  it("spreads evenly over a few shards", () => {
    const counts = [0, 0, 0];
    for (let index = 0; index < 30_000; index += 1) {
      const shard = spreadHash(`tenant-${index}`) % 3;
      counts[shard] = (counts[shard] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(1000);
    expect(spreadHash("")).toBe(0x811c9dc5);
  });
});

describe("bytes, results, assertions and clocks", () => {
  it("counts what it encodes", () => {
    for (const text of ["", "a", "é", "€", "🧵", "\u0000"]) expect(utf8Length(text)).toBe(utf8(text).byteLength);
  });

  it("tells a success from a refusal", () => {
    expect([ok(1), err("no")]).toEqual([
      { ok: true, value: 1 },
      { ok: false, error: "no" },
    ]);
  });

  it("throws only when the condition does not hold", () => {
    expect(() => assert(1, "fine")).not.toThrow();
    expect(() => assert(0, "wrong")).toThrow(AssertionError);
  });

  it("tells the time in whole milliseconds, and never backwards where that is promised", () => {
    expect(Number.isInteger(systemClock.now())).toBe(true);
    const before = monotonicMs();
    expect(monotonicMs()).toBeGreaterThanOrEqual(before);
    expect(TIMER_MAX_MS).toBe(2 ** 31 - 1);
  });
});
