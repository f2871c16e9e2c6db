/**
 * Goal: a request says where its work may run in one form only; anything else is refused with the place that is wrong.
 * Method: requests to admit are parsed that differ in their placement.
 */
import { describe, expect, it } from "vitest";
import { parseShape } from "../../src/wire/parse.ts";
import { admitRequest } from "../../src/wire/requests.ts";
import { requestOf } from "./core/fixtures.ts";

const parse = (placement: unknown) => parseShape(admitRequest, { ...requestOf(), placement });

const pathsOf = (placement: unknown): unknown => {
  const parsed = parse(placement);
  return parsed.ok ? "taken" : parsed.error.details?.["paths"];
};

describe("a placement", () => {
  it("may be left out, and so may each of its parts", () => {
    for (const placement of [undefined, {}, { poolId: "pool_1" }, { affinity: {} }])
      expect(pathsOf(placement)).toBe("taken");
  });

  it("keeps its labels as they are given, empty values too", () => {
    const placement = { requiredLabels: { zone: "a", constructor: "" }, antiAffinity: { ö: "☃" } };
    const parsed = parse(placement);
    expect(parsed.ok && parsed.value.placement).toEqual(placement);
  });

  const wrong: readonly (readonly [string, unknown, string])[] = [
    ["a member that it does not have", { zone: "a" }, "placement.zone"],
    ["labels that are no texts", { affinity: { zone: 1 } }, "placement.affinity.zone"],
    ["labels in a list", { affinity: ["zone"] }, "placement.affinity"],
    ["no labels", { requiredLabels: null }, "placement.requiredLabels"],
    ["a nameless label", { requiredLabels: { "": "a" } }, "placement.requiredLabels."],
    ["a name that would be lost", { requiredLabels: JSON.parse('{"__proto__":"a"}') }, "placement.requiredLabels"],
    ["a long value", { antiAffinity: { zone: "a".repeat(513) } }, "placement.antiAffinity.zone"],
    [
      "too many labels",
      { affinity: Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`l${index}`, "a"])) },
      "placement.affinity",
    ],
    ["an empty pool", { poolId: "" }, "placement.poolId"],
  ];
  for (const [what, placement, path] of wrong)
    it(`with ${what} is refused by its place`, () => {
      expect(pathsOf(placement)).toEqual([path]);
    });
});
