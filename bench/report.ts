/** One line of the table. */
export interface Row {
  /** What was measured, such as `lifecycle, 64 in flight`. */
  readonly name: string;
  /** The product's figure and the floor's, in words. */
  readonly product: string;
  readonly raw: string;
  /** The figure that the goal speaks of. */
  readonly value: number;
  readonly unit: string;
  readonly goal?: Goal;
  /** Everything that was measured, for the JSON. */
  readonly detail: unknown;
}

/** What is hoped for. Missing it is reported; it fails nothing. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number };

/** What one scenario measured. */
export interface Section {
  readonly scenario: string;
  readonly rows: readonly Row[];
}

export const meets = (value: number, goal: Goal): boolean =>
  "atLeast" in goal ? value >= goal.atLeast : value <= goal.atMost;

const describeGoal = (goal: Goal | undefined, unit: string): string => {
  if (goal === undefined) return "";
  return "atLeast" in goal ? `≥ ${goal.atLeast} ${unit}`.trim() : `≤ ${goal.atMost} ${unit}`.trim();
};

const verdictOf = ({ value, goal }: Row): string => {
  if (goal === undefined) return "";
  return meets(value, goal) ? "met" : "missed";
};

/** A number with as many digits as it deserves. */
export const shortNumber = (value: number): string => {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
};

/** The table as text. */
export function renderTable(title: string, rows: readonly Row[]): string {
  const head = ["", "product", "raw store", "figure", "goal", "verdict"];
  const lines = rows.map((row) => [
    row.name,
    row.product,
    row.raw,
    `${shortNumber(row.value)} ${row.unit}`.trim(),
    describeGoal(row.goal, row.unit),
    verdictOf(row),
  ]);
  const widths = head.map((name, column) => Math.max(name.length, ...lines.map((line) => (line[column] ?? "").length)));
  const render = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [title, render(head), render(widths.map((width) => "─".repeat(width))), ...lines.map(render)].join("\n");
}
