/**
 * Goal: a body is JSON exactly if JSON.parse says so, and the place where it stops being JSON is named rightly.
 * Method: hand-made faults with their offsets; random JSON, cut and mangled, compared with JSON.parse.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { findJsonFault, parseJsonBytes } from "../../src/wire/json-text.ts";

const parses = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

describe("the place of a fault", () => {
  test.each([
    ["", 0],
    ["{", 1],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ["[1 2]", 3],
    ["[1,]", 3],
    ["tru", 3],
    ["01", 1],
    ["1.", 2],
    ["1e", 2],
    ["-", 1],
    ['"\u0001"', 1],
    ['"\\x"', 2],
    ['"\\u12g4"', 5],
    ['"open', 5],
    ["{} x", 3],
    ["NaN", 0],
    ["[1]]", 3],
    ["'a'", 0],
  ])("of %j is offset %i", (text, offset) => {
    expect(parses(text)).toBe(false);
    expect(findJsonFault(text)).toBe(offset);
  });

  test("is given as line and column, and in the details", () => {
    const parsed = parseJsonBytes(utf8('{\n  "a": 1,\n  "b": x\n}'));
    expect(parsed).toMatchObject({
      ok: false,
      error: {
        code: "WORKLOAD_INVALID",
        message: "the body is not JSON: line 3, column 8",
        details: { paths: [""], line: 3, column: 8, offset: 19 },
      },
    });
  });

  test("is found at any depth", () => {
    const depth = 100_000;
    expect(findJsonFault("[".repeat(depth))).toBe(depth);
    expect(findJsonFault("[".repeat(depth) + "]".repeat(depth))).toBeUndefined();
  });
});

describe("against JSON.parse", () => {
  test("random JSON, and random damage to it, is judged alike", () => {
    const damaged = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom("", '"', "{", "}", "[", "]", ",", ":", "0", "-", "e", "\\", "\n", "x"),
      )
      .map(([json, at, what]) => {
        const place = at % (json.length + 1);
        return json.slice(0, place) + what + json.slice(place + (at % 2));
      });
    fc.assert(
      fc.property(fc.oneof(fc.json(), damaged, fc.string()), (text) => {
        expect(findJsonFault(text) === undefined).toBe(parses(text));
      }),
      { numRuns: 3000 },
    );
  });
});

test("bytes that are not UTF-8 are refused, and a repeated member counts with its last value", () => {
  expect(parseJsonBytes(Uint8Array.of(0x22, 0xff, 0x22))).toMatchObject({
    ok: false,
    error: { code: "WORKLOAD_INVALID", message: "the body is not UTF-8" },
  });
  expect(parseJsonBytes(Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22))).toMatchObject({ ok: false });
  expect(parseJsonBytes(utf8('{"a":1,"a":2}'))).toEqual({ ok: true, value: { a: 2 } });
  expect(parseJsonBytes(utf8("\ufeff{}"))).toMatchObject({ ok: false, error: { details: { offset: 0 } } });
});

test("a member called __proto__ is a member, and changes no prototype", () => {
  const parsed = parseJsonBytes(utf8('{"__proto__":{"polluted":true}}'));
  expect(parsed.ok && Object.getPrototypeOf(parsed.value)).toBe(Object.prototype);
  expect(JSON.stringify(parsed.ok && parsed.value)).toBe('{"__proto__":{"polluted":true}}');
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

describe("a large body that nests too deeply", () => {
  // Escaped quotes and backslashes before brackets: none of them counts.
  const filler = JSON.stringify('a"[\\["\\\\[{'.repeat(20_000));

  test("is refused where it goes too deep, without being parsed", () => {
    const parsed = parseJsonBytes(utf8(`[${filler},${"[".repeat(4_000_000)}`));
    const error = { code: "WORKLOAD_INVALID", details: { line: 1, offset: filler.length + 2 + 271 } };
    expect(parsed).toMatchObject({ ok: false, error });
  });

  test("is taken when brackets stand in texts alone, escapes and all", () => {
    expect(parseJsonBytes(utf8(`[${filler},1]`))).toEqual({ ok: true, value: [JSON.parse(filler), 1] });
  });
});
