import type { Verdict } from "../history.ts";

/** How many violations of one validator are named on a terminal. */
const NAMED_MAX = 5;

/** A verdict as lines of text. */
export function renderVerdict({ validator, guarantee, checked, violations }: Verdict): string {
  const head = `${violations.length === 0 ? "ok  " : "FAIL"} ${validator} (${checked} facts): ${guarantee}`;
  const few = violations.slice(0, NAMED_MAX).map(({ workloadId = "", message }) => `       ${workloadId} ${message}`);
  const more = violations.length > few.length ? [`       and ${violations.length - few.length} more`] : [];
  return [head, ...few, ...more].join("\n");
}
