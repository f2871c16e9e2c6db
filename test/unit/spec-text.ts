import { readFileSync } from "node:fs";
import { expect } from "vitest";

/** Where the paths that SPEC.md names begin. */
export const repository = new URL("../../", import.meta.url);

const lines = readFileSync(new URL("SPEC.md", repository), "utf8").split("\n");

/** The cells of every row of SPEC.md's table that has this heading. */
export function tableUnder(heading: string): readonly (readonly string[])[] {
  const start = lines.indexOf(heading);
  expect(start, heading).toBeGreaterThanOrEqual(0);
  const rows = lines.slice(start + 2);
  const end = rows.findIndex((line) => !line.startsWith("|"));
  return rows.slice(0, end === -1 ? undefined : end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}
