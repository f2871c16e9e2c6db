/**
 * Goal: what passes the walk is JSON that every reader gets back exactly, whatever its size, shape or names; what does not
 * is refused with the place; the canonical form is RFC 8785's.
 * Method: each awkward value by itself, generated values against a round trip, and the RFC's own examples.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JSON_DEPTH_MAX, canonicalJson, walkJson } from "../../src/base/json.ts";
import type { Json } from "../../src/base/json.ts";

const problemOf = (value: unknown): { path: string; rule: string } | undefined => walkJson(value, "input").problem;

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

describe("the walk over a JSON value", () => {
  it.each([
    ["NaN", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
    ["what 1e400 parses to", JSON.parse("1e400")],
    ["what -1e400 parses to", JSON.parse("-1e400")],
    ["negative zero", -0],
    ["what -0 parses to", JSON.parse("-0")],
    ["2^53", 2 ** 53],
    ["what 2^53 + 1 parses to", JSON.parse("9007199254740993")],
    ["-2^53", -(2 ** 53)],
    ["1e300, an integer that readers would round", 1e300],
    ["undefined", undefined],
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["a bigint", 1n],
    ["a date", new Date(0)],
    ["a map", new Map()],
    ["an instance", new URLSearchParams()],
    ["a high surrogate alone", "a\ud800b"],
    ["a low surrogate alone", "\udc00"],
  ])("refuses %s, at the root and inside, naming the place", (_, value) => {
    expect(problemOf(value)).toMatchObject({ path: "input" });
    expect(problemOf({ list: [1, { "a b": value }] })).toMatchObject({ path: 'input.list[1]["a b"]' });
  });

  it.each([
    ["the largest safe integer", Number.MAX_SAFE_INTEGER],
    ["the smallest", Number.MIN_SAFE_INTEGER],
    ["a fraction", 0.1],
    ["the smallest number above zero", 5e-324],
    ["null", null],
    ["an empty string", ""],
    ["NUL", "a\u0000b"],
    ["a noncharacter", "\uffff"],
    ["a pair of surrogates", "🧵"],
    ["an object without prototype", Object.assign(Object.create(null), { a: 1 })],
    ["an empty array", []],
  ])("accepts %s", (_, value) => {
    expect(walkJson(value, "input")).toEqual({});
  });

  it("refuses a lone surrogate in a key", () => {
    expect(problemOf({ "a\udfff": 1 })?.rule).toContain("key");
  });

  it(`accepts ${JSON_DEPTH_MAX} levels and refuses one more, and 10,000, without running out of stack`, () => {
    expect(problemOf(nested(JSON_DEPTH_MAX))).toBeUndefined();
    expect(problemOf(nested(JSON_DEPTH_MAX + 1))?.rule).toContain("deeper");
    const deep = problemOf(JSON.parse("[".repeat(10_000) + "]".repeat(10_000)));
    expect(deep?.rule).toContain("deeper");
    expect(deep?.path.length).toBeLessThanOrEqual(200);
  });

  it("ends on a value that contains itself", () => {
    const self: unknown[] = [];
    self.push(self);
    expect(problemOf(self)?.rule).toContain("deeper");
  });

  it("walks a million keys", () => {
    const wide: Record<string, number> = {};
    for (let index = 0; index < 1_000_000; index += 1) wide[`k${index}`] = index;
    let keys = 0;
    const visit = { key: () => (keys += 1) < 0 };
    expect(walkJson(wide, "input", visit)).toEqual({});
    expect(keys).toBe(1_000_000);
  });

  it("takes names that mean something to the language for what they are", () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":"x","":2}');
    const paths: string[] = [];
    const visit = {
      key: (_: string, path: string): boolean => {
        paths.push(path);
        return false;
      },
    };
    expect(walkJson(value, "input", visit)).toEqual({});
    expect(paths.sort()).toEqual(
      ["input.__proto__", "input.__proto__.polluted", "input.constructor", "input.toString", 'input[""]'].sort(),
    );
    expect(Reflect.get({}, "polluted")).toBeUndefined();
  });

  it("still looks into the value of __proto__", () => {
    expect(problemOf(JSON.parse('{"__proto__":[1e400]}'))).toMatchObject({ path: "input.__proto__[0]" });
  });

  it("stops where a visitor says so, in document order", () => {
    const value = { first: ["a", "b"], second: "b" };
    expect(walkJson(value, "input", { text: (text) => text === "b" })).toEqual({ stoppedAt: "input.first[1]" });
    expect(walkJson(value, "input", { key: (key) => key === "second" })).toEqual({ stoppedAt: "input.second" });
  });

  it("shortens the name of a very long key in a path", () => {
    expect(problemOf({ ["k".repeat(5000)]: undefined })?.path.length).toBeLessThan(200);
  });

  it("accepts exactly what survives a round trip through text", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const exact = walkJson(value, "input").problem === undefined;
        if (!exact) return;
        expect(JSON.parse(canonicalJson(value as Json))).toStrictEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(JSON.parse(JSON.stringify(value)) as Json)).toBe(canonicalJson(value as Json));
      }),
    );
  });
});

describe("the canonical form of JSON", () => {
  it("writes RFC 8785's example of section 3.2.2 as its section 3.2.3 does", () => {
    const value = JSON.parse(String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`) as Json;
    expect(canonicalJson(value)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it("sorts names by UTF-16 code units, as the RFC's example of section 3.2.3 shows", () => {
    const value = JSON.parse(String.raw`{
      "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
    }`) as Json;
    const names = [...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map((match) => match[1]);
    expect(names).toEqual([
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh",
    ]);
  });

  // IEEE 754 bits and their text, from the RFC's appendix B.
  it.each([
    ["0000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["ffefffffffffffff", "-1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ])("writes the number with bits %s as %s", (bits, text) => {
    expect(canonicalJson(Buffer.from(bits, "hex").readDoubleBE())).toBe(text);
  });

  it("does not depend on the order in which members were added", () => {
    expect(canonicalJson({ b: 1, a: { d: [], c: null } })).toBe(canonicalJson({ a: { c: null, d: [] }, b: 1 }));
    expect(canonicalJson({ 10: 1, 9: 2, a: 3 })).toBe('{"10":1,"9":2,"a":3}');
  });

  it("keeps a member named __proto__", () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":2}') as Json)).toBe('{"__proto__":2,"b":1}');
  });
});
