/**
 * Goal: URIs and kinds of resources as contract 4.1 has them.
 * Method: tables of what each kind covers and does not, of malformed URIs, and of regions inside others.
 */
import { describe, expect, it } from "vitest";
import { resourceKinds, type ResourceKind } from "../../../src/core/grant/grant.ts";
import {
  covers,
  isInside,
  parseResource,
  parseResourceUri,
  renderResourceUri,
} from "../../../src/core/grant/resource-uri.ts";

const reaches = (kind: ResourceKind, uri: string, asked: string): boolean | undefined => {
  const region = parseResource({ kind, uri });
  const parts = parseResourceUri(asked);
  return region === undefined || parts === undefined ? undefined : covers(region, parts);
};

const exactKinds = resourceKinds.filter((kind) => kind !== "APPLICATION" && kind !== "RESOURCE_PREFIX");

describe("a resource of a grant", () => {
  it.each([
    ["flow://shop", "flow://shop", true],
    ["flow://shop", "flow://shop/workloads", true],
    ["flow://shop", "flow://shop/workloads/w1", true],
    ["flow://shop", "flow://shop2/workloads", false],
    ["flow://shop", "flow://sho", false],
    ["flow://shop", "flow://SHOP", false],
    ["flow://shop/workloads", "flow://shop/workloads/w1", true],
    ["flow://shop/workloads", "flow://shop", false],
    ["flow://shop/workloads", "flow://shop/workloads2", false],
  ])("of kind APPLICATION: %s reaches %s: %s", (uri, asked, expected) => {
    expect(reaches("APPLICATION", uri, asked)).toBe(expected);
  });

  it.each([
    ["flow://shop/workloads*", "flow://shop/workloads", true],
    ["flow://shop/workloads*", "flow://shop/workloads/w1", true],
    ["flow://shop/workloads*", "flow://shop/workloads/w1/deep", true],
    ["flow://shop/workloads*", "flow://shop/workloads2", false],
    ["flow://shop/work*", "flow://shop/workloads", false],
    ["flow://shop/workloads", "flow://shop/workloads/w1", true],
    ["flow://shop/workloads/*", "flow://shop/workloads/w1", true],
    ["flow://shop/workloads/*", "flow://shop/workloads", false],
    ["flow://shop*", "flow://shop", true],
    ["flow://shop*", "flow://shop2", false],
  ])("of kind RESOURCE_PREFIX: %s reaches %s: %s", (uri, asked, expected) => {
    expect(reaches("RESOURCE_PREFIX", uri, asked)).toBe(expected);
  });

  it.each(exactKinds)("of kind %s reaches its own URI, or with /* what is below", (kind) => {
    expect(reaches(kind, "flow://shop/workloads/w1", "flow://shop/workloads/w1")).toBe(true);
    expect(reaches(kind, "flow://shop/workloads/w1", "flow://shop/workloads/w1/x")).toBe(false);
    expect(reaches(kind, "flow://shop/workloads/w1", "flow://shop/workloads/w11")).toBe(false);
    expect(reaches(kind, "flow://shop/workloads/w1", "flow://shop/workloads")).toBe(false);
    expect(reaches(kind, "flow://shop/workloads/*", "flow://shop/workloads/w1")).toBe(true);
    expect(reaches(kind, "flow://shop/workloads/*", "flow://shop/workloads/w1/x")).toBe(true);
    expect(reaches(kind, "flow://shop/workloads/*", "flow://shop/workloads")).toBe(false);
    expect(reaches(kind, "flow://shop/workloads/*", "flow://shop/workers/w1")).toBe(false);
    expect(parseResource({ kind, uri: "flow://shop/work*" })).toBeUndefined();
  });

  it.each([
    "flow://",
    "flow:///workloads",
    "flow://shop/",
    "flow://shop//workloads",
    "flow://shop/../other",
    "flow://shop/a..b",
    "flow://shop/.",
    "flow://shop/%2e%2e/other",
    "flow://shop/%2E",
    "flow://shop/workloads%2Fw1",
    "flow://shop/workloads%2fw1",
    "flow://shop/a%5Cb",
    "flow://shop/a\\b",
    "flow://shop/a%252Fb",
    "flow://shop/a?x=1",
    "flow://shop/a#b",
    "flow://shop/a%3Fb",
    "flow://shop/a%23b",
    "flow://shop/%2A",
    "flow://shop/a%00b",
    "flow://shop/a\nb",
    "flow://shop/%",
    "flow://shop/%ff",
    "flow://shop/*/x",
    "flow://*",
    "FLOW://shop",
    "http://shop",
    "shop",
    "",
  ])("is none when its URI is %j", (uri) => {
    for (const kind of resourceKinds) expect([kind, parseResource({ kind, uri })]).toEqual([kind, undefined]);
    expect(parseResourceUri(uri)).toBeUndefined();
  });

  it("is compared by what it says, not by how it is escaped", () => {
    expect(reaches("RESOURCE", "flow://café/a b", "flow://caf%C3%A9/a%20b")).toBe(true);
    expect(reaches("RESOURCE", renderResourceUri("café", "a b%"), "flow://café/a b%25")).toBe(true);
  });
});

describe("the URI of an identifier", () => {
  it.each(["workload_0123", "a.b:c@d", "Größe", "a b", "50%", "~!'()"])("%j is carried", (id) => {
    expect(parseResourceUri(renderResourceUri("shop", "workloads", id))).toEqual(["shop", "workloads", id]);
  });

  it.each(["a/b", "..", ".", "a..b", "*", "a*", "?", "#", "a\\b", "%2F", "", "\u0000"])(
    "%j can't be carried, so no grant reaches it",
    (id) => {
      expect(parseResourceUri(renderResourceUri("shop", "workloads", id))).toBeUndefined();
    },
  );
});

describe("a region", () => {
  const inside = (inner: [ResourceKind, string], outer: [ResourceKind, string]): boolean => {
    const [small, large] = [inner, outer].map(([kind, uri]) => parseResource({ kind, uri }));
    if (small === undefined || large === undefined) throw new TypeError("malformed");
    return isInside(small, large);
  };

  it.each([
    [["RESOURCE", "flow://shop/a/b"], ["APPLICATION", "flow://shop"], true],
    [["RESOURCE", "flow://shop/a/*"], ["APPLICATION", "flow://shop"], true],
    [["APPLICATION", "flow://shop"], ["APPLICATION", "flow://shop"], true],
    [["APPLICATION", "flow://shop"], ["RESOURCE", "flow://shop/*"], false],
    [["RESOURCE", "flow://shop/*"], ["APPLICATION", "flow://shop/a"], false],
    [["RESOURCE", "flow://shop/a/*"], ["RESOURCE", "flow://shop/a"], false],
    [["RESOURCE", "flow://shop/a"], ["RESOURCE", "flow://shop/a/*"], false],
    [["RESOURCE", "flow://shop/a/b/*"], ["RESOURCE", "flow://shop/a/*"], true],
    [["RESOURCE_PREFIX", "flow://shop/a*"], ["RESOURCE", "flow://shop/a/*"], false],
    [["RESOURCE_PREFIX", "flow://shop/a/*"], ["RESOURCE", "flow://shop/a/*"], true],
    [["RESOURCE", "flow://shop/ab"], ["RESOURCE_PREFIX", "flow://shop/a*"], false],
  ] as [[ResourceKind, string], [ResourceKind, string], boolean][])("%j inside %j: %s", (inner, outer, expected) => {
    expect(inside(inner, outer)).toBe(expected);
  });
});
