import type { RunLine, Verdict } from "../history.ts";
import { escapeText } from "./escape.ts";

/** How many violations of one validator are named. */
const NAMED_MAX = 20;

function caseOf({ validator, guarantee, checked, violations }: Verdict, suite: string): string {
  const head = `  <testcase classname="${escapeText(suite)}" name="${escapeText(`${validator}: ${guarantee}`)}">`;
  const body = [`    <system-out>${checked} facts checked</system-out>`];
  const [first] = violations;
  if (first !== undefined) {
    const named = violations
      .slice(0, NAMED_MAX)
      .map(({ workloadId = "", message }) => `${workloadId} ${message}`.trim());
    const more = violations.length > NAMED_MAX ? [`and ${violations.length - NAMED_MAX} more`] : [];
    const text = escapeText([...named, ...more].join("\n"));
    const message = escapeText(`${violations.length} violations, the first: ${first.message}`);
    body.unshift(`    <failure message="${message}">${text}</failure>`);
  }
  return [head, ...body, "  </testcase>"].join("\n");
}

/** The verdicts as JUnit XML: one test case a validator. */
export function renderJunit(run: RunLine | undefined, verdicts: readonly Verdict[]): string {
  const suite = `chaos.${run?.scenario ?? "unknown"}`;
  const failures = verdicts.filter(({ violations }) => violations.length > 0).length;
  const cases = verdicts.map((verdict) => caseOf(verdict, suite)).join("\n");
  const properties = [
    ["seed", run?.seed],
    ["minutes", run?.minutes],
    ["version", run?.version],
  ].map(([name, value]) => `    <property name="${name}" value="${escapeText(String(value))}"/>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="${escapeText(suite)}" tests="${verdicts.length}" failures="${failures}" errors="0">
  <properties>
${properties.join("\n")}
  </properties>
${cases}
</testsuite>
`;
}
