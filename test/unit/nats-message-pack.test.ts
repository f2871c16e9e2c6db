/**
 * Goal: a msgpack message means what the same message in JSON means, or is refused with the place; no bytes reach
 * anything but plain values.
 * Method: random JSON through an independent encoder; hand-made bytes for what an encoder would not write; random bytes.
 */
import fc from "fast-check";
import { Packr } from "msgpackr";
import { describe, expect, test } from "vitest";
import { packValue } from "../../src/wire/codec.ts";
import { parseMessagePack } from "../../src/wire/message-pack.ts";

const bytes = (...parts: (number | string)[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "number" ? Buffer.of(part) : Buffer.from(part, "latin1"))));

const refused = (message: Uint8Array): unknown => {
  const parsed = parseMessagePack(message);
  return parsed.ok ? parsed : [parsed.error.code, parsed.error.details?.["offset"]];
};

test("every JSON value comes back as it was packed", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      // JSON has one zero; msgpack could carry two.
      const plain = JSON.parse(JSON.stringify(value)) as unknown;
      expect(parseMessagePack(packValue(plain))).toEqual({ ok: true, value: plain });
    }),
    { numRuns: 1000 },
  );
});

test.each([
  0, 127, 128, 255, 256, 65_535, 65_536, 4_294_967_295, -1, -32, -33, -128, -129, -32_768, -32_769, -2_147_483_648,
])("the integer %i comes back", (value) => expect(parseMessagePack(packValue(value))).toEqual({ ok: true, value }));

test("64-bit integers are numbers as far as numbers carry them exactly", () => {
  expect(parseMessagePack(bytes(0xcf, "\x00\x1f\xff\xff\xff\xff\xff\xff"))).toEqual({
    ok: true,
    value: Number.MAX_SAFE_INTEGER,
  });
  expect(refused(bytes(0xcf, "\x00\x20\x00\x00\x00\x00\x00\x00"))).toEqual(["WORKLOAD_INVALID", 9]);
  expect(parseMessagePack(bytes(0xd3, "\xff\xff\xff\xff\xff\xff\xff\xfe"))).toEqual({ ok: true, value: -2 });
});

test("a member that is undefined is absent, as in JSON", () => {
  const packed = new Packr({ useRecords: false }).pack({ a: 1, b: undefined });
  expect(parseMessagePack(packed)).toEqual({ ok: true, value: { a: 1 } });
});

test("a member called __proto__ is a member, and changes no prototype", () => {
  const parsed = parseMessagePack(bytes(0x81, 0xa9, "__proto__", 0x81, 0xa1, "x", 0x01));
  expect(parsed.ok && Object.getPrototypeOf(parsed.value)).toBe(Object.prototype);
  expect(JSON.stringify(parsed.ok && parsed.value)).toBe('{"__proto__":{"x":1}}');
});

describe("what is not the msgpack of a JSON value is refused with its place", () => {
  test.each<[string, Uint8Array, number]>([
    ["nothing", bytes(), 0],
    ["a text cut short", bytes(0xa5, "ab"), 1],
    ["an array that says four billion", bytes(0xdd, "\xff\xff\xff\xff", 0x01), 5],
    ["a map that says four billion", bytes(0xdf, "\xff\xff\xff\xff", 0x01), 5],
    ["two values", bytes(0x01, 0x02), 1],
    ["binary", bytes(0xc4, 0x01, 0x00), 0],
    ["a date", bytes(0xd6, 0xff, "\x00\x00\x00\x00"), 0],
    ["an extension of one byte", bytes(0xd4, 0x01, 0x00), 1],
    ["a record definition of msgpackr", bytes(0xd4, 0x72, 0x40, 0x91, 0xa1, "a", 0x01), 1],
    ["the byte that is never used", bytes(0xc1), 0],
    ["a key that is a number", bytes(0x81, 0x01, 0x01), 2],
    ["text that is not UTF-8", bytes(0xa1, 0xff), 2],
  ])("%s", (_, message, offset) => expect(refused(message)).toEqual(["WORKLOAD_INVALID", offset]));

  test("nesting beyond the bound, however deep", () => {
    expect(refused(new Uint8Array(1_000_000).fill(0x91))).toEqual(["WORKLOAD_INVALID", 257]);
    expect(refused(Buffer.concat(Array.from({ length: 100_000 }, () => bytes(0x81, 0xa1, "a"))))).toEqual([
      "WORKLOAD_INVALID",
      769,
    ]);
  });

  test("random bytes: refused or plain, never anything else", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (message) => {
        const parsed = parseMessagePack(message);
        if (parsed.ok) expect(() => JSON.stringify(parsed.value)).not.toThrow();
        else expect(parsed.error.code).toBe("WORKLOAD_INVALID");
      }),
      { numRuns: 5000 },
    );
  });
});
