/**
 * Goal: a worker may be told to stop a claim whose lease had run out at a moment of the call, though another node renewed
 * it before the answer came; and never one whose lease ran all the time.
 * Method: a claim, its renewal and a reconciliation, as facts.
 */
import { expect, test } from "vitest";
import type { Facts } from "../../chaos/validate/facts.ts";
import { checkStopped } from "../../chaos/validate/stopped-claims.ts";
import type { Findings } from "../../chaos/validate/validator.ts";

function violationsOf(firstLeaseEnds: number): number {
  const incarnation = { number: 1 };
  const claim = (expiresAt: number): object => ({ claimId: "claim_1", expiresAt });
  const facts = {
    parameters: { clockErrorMaxMs: 5 },
    effectsOf: () => [],
    calls: [
      { call: "get", kind: "acknowledged", startedAt: 20, endedAt: 30, args: {}, position: { shard: 0, revision: 3 } },
      {
        ...{ call: "reconcileWorker", id: 1, kind: "acknowledged", startedAt: 110, endedAt: 200 },
        ...{ args: { workerId: "w" }, answer: { fencedClaims: ["claim_1"] } },
      },
    ],
    registry: {
      workers: new Map([
        [
          "w",
          {
            versions: [{ shard: 0, revision: 1, storedAt: 0, record: { incarnation } }],
            slots: [{ index: 0, revision: 3, storedAt: 10, held: { claimId: "claim_1", incarnation: 1 } }],
          },
        ],
      ]),
    },
    workloads: new Map([
      [
        "workload_1",
        {
          versions: [
            { revision: 2, storedAt: 10, claim: claim(firstLeaseEnds) },
            { revision: 5, storedAt: 160, claim: claim(1_000) },
          ],
        },
      ],
    ]),
  };
  let violations = 0;
  const findings: Pick<Findings, "count" | "violation"> = {
    count: () => undefined,
    violation: () => void (violations += 1),
  };
  checkStopped(facts as unknown as Facts, findings as Findings);
  return violations;
}

test.each([
  ["ran out before the call and was renewed during it", 100, 0],
  ["ran out during the call, before it was renewed", 150, 0],
  ["never ran out", 900, 1],
])("a lease that %s", (_what, firstLeaseEnds, violations) => {
  expect(violationsOf(firstLeaseEnds)).toBe(violations);
});
