/**
 * Goal: provenance comes back exactly as it was committed, and can't become any other header.
 * Method: random names and values, lone surrogates and control characters among them, through rendering and reading.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  OPERATIONS_HEADER,
  RenderedHeaders,
  blockBytes,
  headerLine,
  latin1,
  operationsIn,
  provenanceLines,
  provenanceIn,
} from "../../src/store/jetstream/headers.ts";

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string(),
  fc.constantFrom(
    "Operations",
    "operations",
    "%4Fperations",
    "a\r\nNats-Rollup: all",
    " x ",
    "%",
    "%u0041",
    "__proto__",
  ),
  fc.array(fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit))).map((units) => units.join("")),
);

const provenances = fc
  .array(fc.tuple(anyText, anyText), { maxLength: 8 })
  .map((pairs): Record<string, string> => Object.fromEntries(pairs));

it("gives names and values back exactly, beside the ring, and adds no other header", () => {
  fc.assert(
    fc.property(provenances, (provenance) => {
      const lines = headerLine(OPERATIONS_HEADER, "a,b") + provenanceLines(provenance);
      const block = new RenderedHeaders(lines).encode();
      const text = latin1(block);
      expect(provenanceIn(text)).toEqual(provenance);
      expect(operationsIn(text)).toEqual(["a", "b"]);
      const [opening, ...names] = text.split("\r\n").slice(0, -2);
      expect(opening).toBe("NATS/1.0");
      expect(names.every((name) => /^Mandate-[!-9;-~]*: [!-~]*$/.test(name))).toBe(true);
      expect(block).toHaveLength(blockBytes(lines));
    }),
  );
});
