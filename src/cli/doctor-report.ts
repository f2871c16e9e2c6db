/** One thing that doctor looked at. */
export interface ReportedCheck {
  readonly name: string;
  readonly verdict: "ok" | "warning" | "failure" | "skipped";
  readonly explanation: string;
}

const marks = { ok: "ok     ", warning: "warning", failure: "FAILURE", skipped: "-      " } as const;

/** The report for people: a line a check, and a last one that sums up. */
export function renderChecks(checks: readonly ReportedCheck[]): string {
  const width = Math.max(0, ...checks.map(({ name }) => name.length));
  const lines = checks.map(
    ({ name, verdict, explanation }) => `${marks[verdict]}  ${name.padEnd(width)}  ${explanation}`,
  );
  const count = (verdict: ReportedCheck["verdict"]): number =>
    checks.filter((check) => check.verdict === verdict).length;
  const failures = count("failure");
  const warnings = count("warning");
  const verdict = failures > 0 ? `${failures} failed` : warnings > 0 ? "nothing failed" : "all is well";
  return `${lines.join("\n")}\n\n${verdict}${warnings > 0 ? `, ${warnings} to look at` : ""}\n`;
}
