/**
 * Goal: the digest by which chaos tells one request of a key from another sees a placement as the authority does.
 * Method: digests of requests and of the records that the core makes of them are compared.
 */
import { expect, it } from "vitest";
import { requestDigest } from "../../chaos/validate/request-digest.ts";
import type { AdmitRequest } from "../../src/core/workload/admission.ts";
import { admitted, requestOf } from "../unit/core/fixtures.ts";

const placements: readonly AdmitRequest["placement"][] = [
  undefined,
  {},
  { requiredLabels: {}, affinity: {}, antiAffinity: {} },
  { requiredLabels: { zone: "a", disk: "ssd" } },
  { requiredLabels: { disk: "ssd", zone: "a" }, affinity: {} },
  { affinity: { zone: "a", disk: "ssd" } },
  { antiAffinity: { zone: "a", disk: "ssd" } },
  { poolId: "pool_1" },
];

it("is the same for a request and the record that it made", () => {
  for (const placement of placements)
    expect(requestDigest(requestOf({ placement }))).toBe(requestDigest(admitted({ placement })));
});

it("differs with each part of a placement, and not with the order of labels or with what is empty", () => {
  const digests = placements.map((placement) => requestDigest(requestOf({ placement })));
  expect(digests.map((digest) => digests.indexOf(digest))).toEqual([0, 0, 0, 3, 3, 5, 6, 7]);
});
