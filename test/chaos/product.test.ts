/**
 * Goal: the judge has nothing against what the product really does. A model that accuses the innocent is of no use, and
 * one that was written from the contract alone is only known to agree with the product when both have met.
 * Method: three authorities over the simulated store, with lost replies, false refusals and held views, are called at
 * random; the history is judged whole. MANDATE_TEST_SEED=<seed> plays another one, MANDATE_TEST_RUNS=<number> more of them.
 */
import { describe, expect, it } from "vitest";
import { judgeLines } from "../../chaos/validate/judge.ts";
import { playProduct } from "./product-play.ts";

const first = Number(process.env["MANDATE_TEST_SEED"] ?? 1);
const runs = Number(process.env["MANDATE_TEST_RUNS"] ?? 2);

/** Asked in open mode, the product is shown no grant. */
const ofGrants = ["revoked-means-over", "tenants-apart"];

describe("the judge", () => {
  it.each(Array.from({ length: runs }, (_, index) => first + index))(
    "finds nothing against the product (seed %i)",
    async (seed) => {
      const verdicts = await judgeLines(await playProduct(seed, 200));
      const views = "equal-views";
      const found = verdicts.filter(({ validator }) => validator !== views).flatMap(({ violations }) => violations);
      expect(found).toEqual([]);
      const silent = verdicts.filter(({ checked }) => checked === 0).map(({ validator }) => validator);
      expect(silent).toEqual([
        "exclusive-work",
        "slot-capacity",
        "slots-follow-claims",
        "granted-claims",
        "worker-succession",
        ...ofGrants,
        views,
      ]);
    },
  );

  it.each(Array.from({ length: runs }, (_, index) => first + index))(
    "finds nothing against the product with workers of the registry (seed %i)",
    async (seed) => {
      const verdicts = await judgeLines(await playProduct(seed, 200, { registry: true }));
      const views = "equal-views";
      const found = verdicts
        .filter(({ validator }) => validator !== views)
        .flatMap(({ validator, violations }) => violations.map((violation) => ({ validator, ...violation })));
      expect(found).toEqual([]);
      const silent = verdicts.filter(({ checked }) => checked === 0).map(({ validator }) => validator);
      expect(silent).toEqual(["exclusive-work", ...ofGrants, views]);
    },
  );
});
