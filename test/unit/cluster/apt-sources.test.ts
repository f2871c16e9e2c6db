/**
 * Goal: the machine's own archives are read from whatever form apt has them in, and versions compare as numbers.
 * Method: texts as they stand on real systems, with host names of no meaning.
 */
import { describe, expect, test } from "vitest";
import { isNewEnough, NATS_SERVER_VERSION } from "../../../cluster/nats-server-binary.ts";
import { parseListFile, parseSourcesFile } from "../../../cluster/nats-server-debian.ts";

describe("apt's sources", () => {
  test("are read from the one-line form, without comments, source packages and options", () => {
    const text = [
      "# deb http://old.example/debian bookworm main",
      "deb [arch=amd64 signed-by=/k.gpg] http://a.example/debian bookworm main contrib # note",
      "deb-src http://a.example/debian bookworm main",
      "",
    ].join("\n");
    expect(parseListFile(text)).toEqual([
      { uri: "http://a.example/debian", suites: ["bookworm"], components: ["main", "contrib"] },
    ]);
  });

  test("are read from the stanza form, with comments between and within, several addresses, and stanzas switched off", () => {
    const text = [
      "Types: deb",
      "# a comment",
      "URIs: http://a.example/debian",
      "  http://b.example/debian",
      "Suites: bookworm bookworm-updates",
      "Components: main",
      "Signed-By: /k.gpg",
      "",
      "Types: deb",
      "Enabled: no",
      "URIs: http://c.example/debian",
      "Suites: bookworm",
      "Components: main",
    ].join("\n");
    const suites = ["bookworm", "bookworm-updates"];
    expect(parseSourcesFile(text)).toEqual([
      { uri: "http://a.example/debian", suites, components: ["main"] },
      { uri: "http://b.example/debian", suites, components: ["main"] },
    ]);
  });
});

test("a version counts as new enough by its numbers, not its letters", () => {
  expect(isNewEnough(NATS_SERVER_VERSION)).toBe(true);
  expect(["2.15.2", "2.16.0", "2.100.0", "3.0.0"].filter(isNewEnough)).toHaveLength(4);
  expect(["2.9.25", "2.15.0", "1.99.99"].filter(isNewEnough)).toEqual([]);
});
