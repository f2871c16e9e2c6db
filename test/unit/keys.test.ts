/**
 * Goal: no identifier can widen a subject, leave its place in a key, or meet another identifier.
 * Method: the awkward ones by name, then arbitrary text: what is encoded decodes to itself, and different texts differ.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeToken, encodeToken } from "../../src/base/token.ts";
import {
  META_KEY,
  claimRequestKey,
  nodeKey,
  payloadKey,
  resultKey,
  shardOf,
  workloadKey,
  workloadPattern,
} from "../../src/store/keys.ts";

const awkward = [
  "a.b",
  ".",
  "..",
  "*",
  ">",
  "a*",
  "$SYS",
  " ",
  " a",
  "a ",
  "a\tb",
  "a\r\nb",
  "\u0000",
  "\u007f",
  "=",
  "=2E",
  "=2e",
  "==",
  "A",
  "a",
  "ü".normalize("NFC"),
  "ü".normalize("NFD"),
  "ﬀ",
  "ff",
  "🧵",
  "👩‍👩‍👧",
  "\ufeff",
  "\ufeffa",
  "\uffff",
  "__proto__",
  "x".repeat(300),
  "🧵".repeat(150),
];

const text = fc.string({ unit: "binary", minLength: 1, maxLength: 40 }).filter((candidate) => candidate.isWellFormed());
const near = fc.array(fc.constantFrom(".", "*", ">", "=", " ", "2", "E", "e", "A", "a", "é"), {
  minLength: 1,
  maxLength: 4,
});
const identifier = fc.oneof(
  text,
  near.map((parts) => parts.join("")),
  fc.constantFrom(...awkward),
);

describe("the encoding of a token", () => {
  it("leaves letters, digits, _ and - alone", () => {
    expect(encodeToken("Tenant-1_b")).toBe("Tenant-1_b");
    expect(encodeToken("a.b *")).toBe("a=2Eb=20=2A");
    expect(encodeToken("ü")).toBe("=C3=BC");
  });

  it("gives one token of a subject, whatever the text", () => {
    fc.assert(fc.property(identifier, (id) => /^[A-Za-z0-9_=-]+$/.test(encodeToken(id))));
  });

  it("decodes to the text it came from", () => {
    for (const id of awkward) expect(decodeToken(encodeToken(id))).toBe(id);
    fc.assert(
      fc.property(identifier, (id) => decodeToken(encodeToken(id)) === id),
      { numRuns: 1000 },
    );
  });

  it("never gives two texts the same token", () => {
    expect(new Set(awkward.map(encodeToken)).size).toBe(awkward.length);
    fc.assert(
      fc.property(
        identifier,
        identifier,
        (left, right) => (encodeToken(left) === encodeToken(right)) === (left === right),
      ),
      { numRuns: 1000 },
    );
  });

  it("refuses every token it would not have made", () => {
    for (const token of ["", "=", "=2", "=2e", "=41", "a.b", "=FF", "=C3", "=ED=A0=80", "a b", "=GG", "*"])
      expect(decodeToken(token), token).toBeUndefined();
    fc.assert(
      fc.property(
        fc.oneof(
          near.map((parts) => parts.join("")),
          fc.string(),
        ),
        (token) => {
          const decoded = decodeToken(token);
          if (decoded !== undefined) expect(encodeToken(decoded)).toBe(token);
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe("keys", () => {
  const scope = fc.record({ tenantId: identifier, applicationId: identifier });
  const kinds = [
    (of: { tenantId: string; applicationId: string }, id: string) => workloadKey(of, id),
    (of: { tenantId: string; applicationId: string }, id: string) => payloadKey(of, id, "input"),
    (of: { tenantId: string; applicationId: string }, id: string) => payloadKey(of, "w", id),
    (of: { tenantId: string; applicationId: string }, id: string) => resultKey(of, id),
    (of: { tenantId: string; applicationId: string }, id: string) => claimRequestKey(of, id),
  ];

  it("are the same for the same scope and identifier alone, and of one family each", () => {
    const kind = fc.constantFrom(...kinds.keys());
    fc.assert(
      fc.property(fc.tuple(kind, scope, identifier), fc.tuple(kind, scope, identifier), (left, right) => {
        // The two kinds of payload key are one: a workload's slot.
        fc.pre(!(left[0] !== right[0] && [1, 2].includes(left[0]) && [1, 2].includes(right[0])));
        const keyOf = ([index, of, id]: typeof left): string => kinds[index]?.(of, id) ?? "";
        const same =
          left[0] === right[0] &&
          left[2] === right[2] &&
          left[1].tenantId === right[1].tenantId &&
          left[1].applicationId === right[1].applicationId;
        expect(keyOf(left) === keyOf(right)).toBe(same);
      }),
      { numRuns: 500 },
    );
  });

  it("have as many tokens as their family says", () => {
    fc.assert(
      fc.property(scope, identifier, (of, id) => {
        expect(workloadKey(of, id).split(".")).toHaveLength(4);
        expect(payloadKey(of, id, "output").split(".")).toHaveLength(5);
        expect(resultKey(of, id)).toMatch(/^x\.[^.]+\.[^.]+\.[0-9a-f]{64}$/);
        expect(claimRequestKey(of, id).split(".")).toHaveLength(4);
        expect(nodeKey(id).split(".")).toHaveLength(2);
      }),
    );
    expect(META_KEY).toBe("m.meta");
  });

  it("are met by the pattern of their workload alone", () => {
    fc.assert(
      fc.property(scope, identifier, identifier, (of, id, other) => {
        const pattern = workloadPattern(id).split(".");
        const key = workloadKey(of, other).split(".");
        const meets = key.length === pattern.length && pattern.every((token, at) => token === "*" || token === key[at]);
        expect(meets).toBe(id === other);
      }),
    );
  });

  it("of one scope are all in one shard", () => {
    fc.assert(
      fc.property(scope, fc.integer({ min: 1, max: 64 }), (of, shards) => {
        const shard = shardOf(of, shards);
        expect(Number.isInteger(shard) && shard >= 0 && shard < shards).toBe(true);
        expect(shardOf({ ...of }, shards)).toBe(shard);
      }),
    );
    const used = new Set(
      Array.from({ length: 100 }, (_, index) => shardOf({ tenantId: `t${index}`, applicationId: "a" }, 3)),
    );
    expect(used.size).toBe(3);
  });
});
