// Goal: what the library sends arrives as it was given, or is refused by name. Method: examples, and random JSON.

import fc from "fast-check";
import { expect, test } from "vitest";
import { exactJson } from "../../src/sdk/exact-json.ts";

test("any JSON passes as the very same value", () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const checked = exactJson(value, "input");
      if (!checked.ok) return /negative zero|2\^53|surrogate/.test(checked.error.rule);
      expect(checked.value).toBe(value);
      return true;
    }),
  );
});

test("members that are undefined are left out, everything else stays, also __proto__", () => {
  const given = JSON.parse('{"__proto__": {"a": 1}, "b": [{"c": null}]}') as { b: { c: unknown; d?: unknown }[] };
  const first = given.b[0];
  if (first !== undefined) first.d = undefined;
  const checked = exactJson(given, "input");
  expect(checked.ok && JSON.stringify(checked.value)).toBe('{"__proto__":{"a":1},"b":[{"c":null}]}');
});

test("the given value is not changed", () => {
  const given = { a: undefined, b: { c: undefined } };
  exactJson(given, "input");
  expect(given).toStrictEqual({ a: undefined, b: { c: undefined } });
});

const cycle: unknown[] = [];
cycle.push(cycle, cycle);
let deep: unknown = 1;
for (let depth = 0; depth < 10_000; depth++) deep = [deep];

test.each([
  ["undefined in a list", [undefined], "input[0]"],
  ["a map", new Map(), "input"],
  ["a big integer", { n: 1n }, "input.n"],
  ["infinity", [[Number.POSITIVE_INFINITY]], "input[0][0]"],
  ["a value that contains itself", cycle, "input"],
  ["ten thousand levels", deep, "input"],
])("%s is a problem with a place", (_what, value, path) => {
  const checked = exactJson(value, "input");
  expect(!checked.ok && checked.error.path).toBe(path);
});
