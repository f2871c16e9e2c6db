/**
 * Goal: every constraint of contract 4.1 can be satisfied, is refused otherwise, and can be tightened and not loosened.
 * Method: a table with, for each, facts that satisfy it and facts that do not, and constraints tighter and looser.
 */
import { describe, expect, it } from "vitest";
import { findBrokenConstraint, findLooserConstraint, type RequestFacts } from "../../../src/core/grant/constraints.ts";
import { constraintNames, type GrantConstraints } from "../../../src/core/grant/grant.ts";
import { isNetwork, isWithinNetwork } from "../../../src/core/grant/network.ts";

interface Row {
  readonly constraint: GrantConstraints;
  readonly satisfied: readonly RequestFacts[];
  readonly broken: readonly RequestFacts[];
  readonly tighter: readonly GrantConstraints[];
  readonly looser: readonly GrantConstraints[];
}

const attributeRow = (name: "subjectAttributes" | "resourceAttributes" | "contextAttributes"): Row => ({
  constraint: { [name]: { color: "red" } },
  satisfied: [{ [name]: { color: "red", size: "1" } }],
  broken: [{ [name]: { color: "blue" } }, { [name]: {} }, {}],
  tighter: [{ [name]: { color: "red" } }, { [name]: { color: "red", size: "1" } }],
  looser: [{ [name]: {} }, { [name]: { color: "blue" } }, {}],
});

const table: { readonly [Name in (typeof constraintNames)[number]]: Row } = {
  environments: {
    constraint: { environments: ["test", "staging"] },
    satisfied: [{ environment: "test" }, { environment: "staging" }],
    broken: [{ environment: "production" }, {}],
    tighter: [{ environments: ["test"] }, { environments: [] }],
    looser: [{ environments: ["test", "production"] }, {}],
  },
  workerClass: {
    constraint: { workerClass: "container" },
    satisfied: [{ workerClass: "container" }],
    broken: [{ workerClass: "process" }, {}],
    tighter: [{ workerClass: "container" }],
    looser: [{ workerClass: "process" }, {}],
  },
  network: {
    constraint: { network: "10.1.0.0/16" },
    satisfied: [{ network: "10.1.2.3" }, { network: "::ffff:10.1.2.3" }],
    broken: [{ network: "10.2.0.1" }, { network: "not an address" }, {}],
    tighter: [{ network: "10.1.2.0/24" }, { network: "10.1.2.3" }],
    looser: [{ network: "10.0.0.0/8" }, { network: "10.2.0.0/16" }, {}],
  },
  workloadId: {
    constraint: { workloadId: "w1" },
    satisfied: [{ workloadId: "w1" }],
    broken: [{ workloadId: "w2" }, {}],
    tighter: [{ workloadId: "w1" }],
    looser: [{ workloadId: "w2" }, {}],
  },
  connectionEnabled: {
    constraint: { connectionEnabled: false },
    satisfied: [{ connectionEnabled: false }],
    broken: [{ connectionEnabled: true }, {}],
    tighter: [{ connectionEnabled: false }],
    looser: [{ connectionEnabled: true }, {}],
  },
  minimumSchemaVersion: {
    constraint: { minimumSchemaVersion: 2 },
    satisfied: [{ schemaVersion: 2 }, { schemaVersion: 3 }],
    broken: [{ schemaVersion: 1 }, {}],
    tighter: [{ minimumSchemaVersion: 2 }, { minimumSchemaVersion: 3 }],
    looser: [{ minimumSchemaVersion: 1 }, {}],
  },
  subjectAttributes: attributeRow("subjectAttributes"),
  resourceAttributes: attributeRow("resourceAttributes"),
  contextAttributes: attributeRow("contextAttributes"),
};

describe.each(constraintNames)("the constraint %s", (name) => {
  const { constraint, satisfied, broken, tighter, looser } = table[name];

  it("holds for what satisfies it, and for nothing else", () => {
    for (const facts of satisfied) expect([facts, findBrokenConstraint(constraint, facts)]).toEqual([facts, undefined]);
    for (const facts of broken) expect([facts, findBrokenConstraint(constraint, facts)]).toEqual([facts, name]);
  });

  it("may be tightened by a child and not loosened", () => {
    for (const inner of tighter) expect([inner, findLooserConstraint(inner, constraint)]).toEqual([inner, undefined]);
    for (const inner of looser) expect([inner, findLooserConstraint(inner, constraint)]).toEqual([inner, name]);
    expect(findLooserConstraint(constraint, {})).toBeUndefined();
  });
});

it("inherited members of an object are no attributes", () => {
  const wanted = { contextAttributes: { toString: "x" } };
  expect(findBrokenConstraint(wanted, { contextAttributes: {} })).toBe("contextAttributes");
});

describe("a network", () => {
  it.each([
    ["192.168.1.1", "192.168.1.1", true],
    ["192.168.1.1", "192.168.1.0/24", true],
    ["192.168.2.1", "192.168.1.0/24", false],
    ["1.2.3.4", "0.0.0.0/0", true],
    ["::1", "0.0.0.0/0", false],
    ["::1", "::/0", true],
    ["fd00::1", "fd00::/8", true],
    ["fe80::1", "fd00::/8", false],
    ["2001:db8:0:0:0:0:0:1", "2001:db8::1", true],
    ["::ffff:7f00:1", "127.0.0.0/8", true],
    ["1.2.3.0/24", "1.2.0.0/16", true],
    ["1.2.0.0/16", "1.2.3.0/24", false],
  ])("%s within %s: %s", (inner, outer, expected) => {
    expect(isWithinNetwork(inner, outer)).toBe(expected);
  });

  it.each(["", "1.2.3", "1.2.3.256", "01.2.3.4", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/8/8", "1.2.3.4/-1"])(
    "is not %j",
    (text) => expect(isNetwork(text)).toBe(false),
  );

  it.each([
    ":",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "g::",
    "::/129",
    "1:2:3:4:5:6:7::8:9",
    "::1%lo",
  ])("is not %j", (text) => expect(isNetwork(text)).toBe(false));
});
