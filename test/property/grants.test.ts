/**
 * Goal: a child never reaches further than its parent, whatever both say: who may do something by a delegated grant
 * could have done it by every grant above; and a decision repeats.
 * Method: random grants, chains and requests from a small world in which they meet often. A failure prints fast-check's
 * seed: MANDATE_TEST_SEED=<seed> runs the same cases again.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { decideAuthorization } from "../../src/core/grant/authorize.ts";
import type { RequestFacts } from "../../src/core/grant/constraints.ts";
import { resourceKinds, type Grant, type GrantConstraints } from "../../src/core/grant/grant.ts";
import { covers, isInside, parseResource } from "../../src/core/grant/resource-uri.ts";
import { noRevocations } from "../../src/core/grant/revocation.ts";
import { childOf, grantOf, NOW, SKEW_MS } from "../unit/grant/grant-fixtures.ts";

const seed = process.env["MANDATE_TEST_SEED"];
const parameters = { numRuns: 3000, ...(seed === undefined ? {} : { seed: Number(seed) }) };

const part = fc.constantFrom("a", "b", "ab");
const parts = fc.array(part, { maxLength: 3 });
const uri = parts.map((each) => ["flow://shop", ...each].join("/"));
const resource = fc.record({
  kind: fc.constantFrom(...resourceKinds),
  uri: fc.tuple(uri, fc.constantFrom("", "", "/*", "*")).map(([path, end]) => path + end),
});
const capability = fc.constantFrom("workload:read", "workload:cancel");
const attributes = fc.dictionary(fc.constantFrom("x", "y"), fc.constantFrom("1", "2"), { maxKeys: 2 });

const constraints: fc.Arbitrary<GrantConstraints> = fc.record(
  {
    environments: fc.subarray(["test", "live"]),
    network: fc.constantFrom("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3"),
    workloadId: fc.constantFrom("w1", "w2"),
    connectionEnabled: fc.boolean(),
    minimumSchemaVersion: fc.integer({ min: 1, max: 3 }),
    workerClass: fc.constantFrom("process", "wasm"),
    subjectAttributes: attributes,
    resourceAttributes: attributes,
    contextAttributes: attributes,
  },
  { requiredKeys: [] },
);

const facts: fc.Arbitrary<RequestFacts> = fc.record(
  {
    environment: fc.constantFrom("test", "live"),
    network: fc.constantFrom("10.1.2.3", "10.9.9.9"),
    workloadId: fc.constantFrom("w1", "w2"),
    connectionEnabled: fc.boolean(),
    schemaVersion: fc.integer({ min: 1, max: 3 }),
    workerClass: fc.constantFrom("process", "wasm"),
    subjectAttributes: attributes,
    resourceAttributes: attributes,
    contextAttributes: attributes,
  },
  { requiredKeys: [] },
);

/** What one link of a chain says; drawn from few values, so that children are within their parents often enough. */
const content = fc.record({
  capabilities: fc.subarray(["workload:read", "workload:cancel"], { minLength: 1 }),
  resources: fc.oneof(
    fc.array(resource, { maxLength: 3 }),
    fc.constant([{ kind: "APPLICATION" as const, uri: "flow://shop" }]),
  ),
  constraints: fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: constraints }),
  issuedAt: fc.constantFrom(NOW - 2, NOW - 1),
  expiresAt: fc.constantFrom(NOW, NOW + 1, NOW + 2),
});
const members: ("capabilities" | "resources" | "constraints" | "issuedAt" | "expiresAt")[] = [
  "capabilities",
  "resources",
  "constraints",
  "issuedAt",
  "expiresAt",
];
const inherited = fc.subarray(members, { minLength: 3 });

/** A chain, the child first: each link says what the one above says, but for some members. */
const chains = fc
  .tuple(content, fc.array(fc.tuple(content, inherited), { maxLength: 3 }))
  .map(([first, rest]): readonly Grant[] => {
    const chain = [grantOf(first)];
    for (const [own, kept] of rest) {
      const above = chain[0] ?? grantOf();
      const same = Object.fromEntries(kept.map((name) => [name, above[name]]));
      chain.unshift(childOf(above, { ...own, ...same }));
    }
    return chain;
  });

const requests = fc.record({
  tenantId: fc.constant("acme"),
  applicationId: fc.constant("shop"),
  capability,
  target: fc.record({ resource: uri, facts }),
});

const context = { revocations: noRevocations, now: NOW, skewMs: SKEW_MS };

it("a child never reaches further than its parents", () => {
  let reached = 0;
  fc.assert(
    fc.property(chains, requests, ([grant = grantOf(), ...chain], request) => {
      const decision = decideAuthorization({ grant, chain, request, ...context });
      expect(decideAuthorization({ grant, chain, request, ...context })).toEqual(decision);
      if (!decision.allowed) return;
      if (chain.length > 0) reached += 1;
      for (const [index, above] of chain.entries())
        expect(decideAuthorization({ grant: above, chain: chain.slice(index + 1), request, ...context })).toEqual({
          allowed: true,
        });
    }),
    parameters,
  );
  expect(reached).toBeGreaterThan(100);
});

it("a region inside another holds nothing that the other does not", () => {
  fc.assert(
    fc.property(resource, resource, parts, (inner, outer, path) => {
      const [small, large] = [parseResource(inner), parseResource(outer)];
      if (small === undefined || large === undefined) return;
      const asked = ["shop", ...path];
      if (isInside(small, large) && covers(small, asked)) expect(covers(large, asked)).toBe(true);
      // The other way round: whatever is not inside has a witness among the region's own URI and what is below it.
      const witnesses = [
        small.parts,
        [...small.parts, "zz"],
        ...["a", "b", "ab"].map((each) => [...small.parts, each]),
      ];
      if (!isInside(small, large))
        expect(witnesses.some((each) => covers(small, each) && !covers(large, each))).toBe(true);
    }),
    parameters,
  );
});
