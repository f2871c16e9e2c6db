import type { Verdict } from "../history.ts";
import { clockText, GUTTER, RIGHT, WIDTH } from "./chart.ts";
import { bucketTexts, renderCharts } from "./charts.ts";
import { escapeText } from "./escape.ts";
import type { Figures } from "./figures.ts";
import { renderStories, type StoryCollector } from "./story.ts";
import { script, styleSheet } from "./style.ts";

/** How many violations of one validator the table names. */
const NAMED_MAX = 20;

const grouped = (value: number): string => Math.round(value).toLocaleString("en-US");

const counted = (violations: number): string => `${violations} violation${violations === 1 ? "" : "s"}`;

const card = (value: string, name: string): string =>
  `<div class="card"><b>${escapeText(value)}</b><span>${escapeText(name)}</span></div>`;

function renderCards({ totals, from, until }: Figures, violations: number): string {
  return [
    card(clockText(until - from), "duration"),
    card(grouped(totals.calls), "calls"),
    card(grouped(totals.acknowledged), "acknowledged"),
    card(grouped(totals.refused), "refused"),
    card(grouped(totals.unknown), "without an answer"),
    card(grouped(totals.versions), "versions committed"),
    card(grouped(totals.workloads), "workloads"),
    card(grouped(totals.faults), "faults"),
    card(`${grouped(totals.p50)} / ${grouped(totals.p99)} ms`, "latency p50 / p99"),
    card(grouped(violations), "violations"),
  ].join("");
}

function renderVerdict({ validator, guarantee, checked, violations }: Verdict, told: ReadonlySet<string>): string {
  const named = violations.slice(0, NAMED_MAX).map(({ workloadId, message }) => {
    const id = escapeText(workloadId ?? "");
    const link =
      workloadId === undefined
        ? ""
        : told.has(workloadId)
          ? `<a href="#${id}"><code>${id}</code></a> `
          : `<code>${id}</code> `;
    return `<li>${link}${escapeText(message)}</li>`;
  });
  const more = violations.length > NAMED_MAX ? `<li>and ${violations.length - NAMED_MAX} more</li>` : "";
  const details =
    named.length === 0
      ? ""
      : `<details open><summary class="bad">${counted(violations.length)}</summary><ul>${named.join("")}${more}</ul></details>`;
  const passed = violations.length === 0;
  return `<tr><td class="state ${passed ? "ok" : "bad"}">${passed ? "✓" : "✗"}</td><td>${escapeText(guarantee)}${details}</td><td><code>${escapeText(validator)}</code></td><td class="number">${grouped(checked)}</td></tr>`;
}

const renderParameters = ({ run }: Figures): string =>
  Object.entries({ version: run.version, startedAt: new Date(run.startedAt).toISOString(), ...run.parameters })
    .map(([name, value]) => {
      const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
      return `<tr><td>${escapeText(name)}</td><td><code>${escapeText(text)}</code></td></tr>`;
    })
    .join("");

/** JSON within a script element: no text can end the element. */
const embedded = (value: unknown): string => JSON.stringify(value).replaceAll("<", "\\u003c");

/** The report of a run as one page that needs nothing beside itself. */
export function renderPage(figures: Figures, verdicts: readonly Verdict[], collector: StoryCollector): string {
  const { run, from, until } = figures;
  const violations = verdicts.reduce((sum, verdict) => sum + verdict.violations.length, 0);
  const told = new Set(collector.stories().keys());
  const title = `Chaos run: ${run.scenario}, seed ${run.seed}`;
  const stories =
    told.size === 0
      ? ""
      : `<h2>What happened to the workloads that broke a rule</h2>${renderStories(collector, verdicts, from)}`;
  const data = { width: WIDTH, gutter: GUTTER, right: RIGHT, lengthMs: until - from, texts: bucketTexts(figures) };
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>${styleSheet}</style>
</head>
<body>
<main>
<header><h1>${escapeText(title)}</h1><span class="badge ${violations === 0 ? "pass" : "fail"}">${violations === 0 ? "no violations" : counted(violations)}</span></header>
<p class="sub">${run.minutes} minutes · Mandate ${escapeText(run.version)} · ${escapeText(new Date(run.startedAt).toISOString())} · repeat with <code>npm run chaos -- --scenario ${escapeText(run.scenario)} --seed ${run.seed} --minutes ${run.minutes}</code></p>
<section class="cards">${renderCards(figures, violations)}</section>
<h2>Guarantees</h2>
<section class="panel verdicts"><table><thead><tr><th></th><th>guarantee</th><th>validator</th><th class="number">facts checked</th></tr></thead><tbody>${verdicts.map((verdict) => renderVerdict(verdict, told)).join("")}</tbody></table></section>
<h2>The run</h2>
<section class="panel charts">${renderCharts(figures)}<div id="line"></div></section>
${stories}
<h2>Parameters</h2>
<section class="panel parameters"><table><tbody>${renderParameters(figures)}</tbody></table></section>
</main>
<div id="tip"></div>
<script type="application/json" id="data">${embedded(data)}</script>
<script>${script}</script>
</body>
</html>
`;
}
