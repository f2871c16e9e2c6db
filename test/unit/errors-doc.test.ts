/**
 * Goal: README tells every error code, its status, whether it is definite and whether to repeat, exactly as the registry
 * has them.
 * Method: the table between README's markers is compared with the one made from the registry; a mismatch prints it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { errorRegistry } from "../../src/core/errors.ts";

const BEGIN = "<!-- errors:begin -->";
const END = "<!-- errors:end -->";

const yesNo = (value: boolean): string => (value ? "yes" : "no");

/** The table as README must have it. */
const expected = [
  "| code | status | definite | retry | meaning |",
  "| --- | --- | --- | --- | --- |",
  ...Object.entries(errorRegistry).map(
    ([code, { httpStatus, definite, retry, doc }]) =>
      `| \`${code}\` | ${httpStatus} | ${yesNo(definite)} | ${yesNo(retry)} | ${doc} |`,
  ),
];

test("README's table of errors is the registry's, row by row in both directions", () => {
  const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
  const parts = readme.split(BEGIN);
  expect(parts, `README.md has ${BEGIN} once`).toHaveLength(2);
  const table = (parts[1] ?? "").split(END);
  expect(table, `README.md has ${END} after it`).toHaveLength(2);
  const rows = (table[0] ?? "").trim().split("\n");
  expect(rows, `between ${BEGIN} and ${END} there must be:\n\n${expected.join("\n")}\n`).toEqual(expected);
});
