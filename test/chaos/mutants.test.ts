/**
 * Goal: the list of mutants stays true: each still fits the source that it breaks, and the documentation names them all.
 * Method: every edit is made on the source as it is; the tables of chaos/README.md are compared with the list, both ways.
 * That each mutant is caught is shown by test/mutation/ and `npm run chaos:mutants`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scenarios } from "../../chaos/scenarios.ts";
import { validators } from "../../chaos/validate/judge.ts";
import { chaosMutants } from "../mutation/chaos-mutants.ts";
import { applyEdit, mutatedFiles, root } from "../mutation/mutant.ts";
import { simulationMutants } from "../mutation/simulation-mutants.ts";

const readme = readFileSync(join(root, "chaos", "README.md"), "utf8");

/** The rows of all tables under the heading `## Mutants`, cell by cell, without those of the tables' heads. */
function documented(): readonly string[] {
  const section = /^## Mutants\n([\s\S]*?)(?=^## )/m.exec(readme)?.[1] ?? "";
  return section.split("\n").filter((line) => line.startsWith("| `"));
}

const rows = [
  ...simulationMutants.map(
    ({ name, broken, rule, seeds }) => `| \`${name}\` | ${broken} | ${rule} | simulation, within ${seeds} seeds |`,
  ),
  ...chaosMutants.map(({ name, broken, rule, foundBy, scenario, seed, minutes }) => {
    const by = foundBy.map((validator) => `\`${validator}\``).join(" or ");
    return `| \`${name}\` | ${broken} | ${rule} | ${by}: \`${scenario}\`, seed ${seed}, ${minutes} minutes |`;
  }),
];

describe("the list of mutants", () => {
  it.each([...simulationMutants, ...chaosMutants].map((mutant) => [mutant.name, mutant] as const))(
    "has %s fit the source",
    (_name, mutant) => {
      for (const [file, text] of mutatedFiles(mutant)) {
        expect(file).toMatch(/^src\//);
        expect(text).not.toBe(readFileSync(join(root, file), "utf8"));
      }
    },
  );

  it("gives no name twice", () => {
    const names = [...simulationMutants, ...chaosMutants].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it("names scenarios and validators that there are", () => {
    const known = validators.map(({ validator }) => validator);
    for (const { scenario, foundBy } of chaosMutants) {
      expect(Object.keys(scenarios)).toContain(scenario);
      expect(known).toEqual(expect.arrayContaining([...foundBy]));
    }
  });

  it("is what the documentation says", () => {
    expect(documented()).toEqual(rows);
  });
});

describe("an edit", () => {
  it("replaces a text that stands there once", () => {
    expect(applyEdit("one two", { file: "a.ts", find: "two", replace: "three" })).toBe("one three");
  });

  it.each(["one", "one two two", ""])("is refused in %j, where its text does not stand exactly once", (text) => {
    expect(() => applyEdit(text, { file: "a.ts", find: "two", replace: "three" })).toThrow(RangeError);
  });
});
