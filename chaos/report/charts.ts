import { renderAxis, renderPlot, renderRows, type Series } from "./chart.ts";
import type { Bucket, Figures } from "./figures.ts";
import { quantileOf } from "./quantile.ts";

/** Colours by the kind of fault. */
const kinds: readonly (readonly [pattern: RegExp, color: string])[] = [
  [/kill|crash|ended/, "var(--red)"],
  [/stop|roll|scale|restart|step/, "var(--violet)"],
  [/pause|suspend/, "var(--orange)"],
  [/clock|time/, "var(--teal)"],
  [/disk/, "var(--brown)"],
];

const colorOfFault = (name: string): string => kinds.find(([pattern]) => pattern.test(name))?.[1] ?? "var(--blue)";

/** How many codes have a row of their own. */
const CODES_MAX = 10;

const perSecond = (figures: Figures, of: (bucket: Bucket) => number): readonly number[] =>
  figures.buckets.map((bucket) => (of(bucket) * 1000) / figures.bucketMs);

const latencyOf = (figures: Figures, share: number): readonly (number | undefined)[] =>
  figures.buckets.map(({ latencies }) => (latencies.length === 0 ? undefined : quantileOf(latencies, share)));

const outcomes = (figures: Figures): readonly Series[] => [
  {
    name: "no answer",
    color: "var(--red)",
    style: "bars",
    values: perSecond(figures, ({ acknowledged, refused, unknown }) => acknowledged + refused + unknown),
  },
  {
    name: "refused",
    color: "var(--orange)",
    style: "bars",
    values: perSecond(figures, ({ acknowledged, refused }) => acknowledged + refused),
  },
  { name: "acknowledged", color: "var(--green)", style: "bars", values: perSecond(figures, (one) => one.acknowledged) },
];

const palette = ["red", "orange", "blue", "violet", "teal", "brown", "pink", "olive", "grey", "green"];

function codes(figures: Figures): readonly Series[] {
  return figures.codes.slice(0, CODES_MAX).map(([code, count], index) => ({
    name: `${code} (${count})`,
    color: `var(--${palette[index] ?? "grey"})`,
    style: "line",
    values: perSecond(figures, (bucket) => bucket.codes.get(code) ?? 0),
  }));
}

/** All charts of a run, one below the other over one scale of time. */
export function renderCharts(figures: Figures): string {
  const { from, until, end, faults, readiness } = figures;
  const span = { from, until };
  const marks = end === undefined ? [] : [{ at: end.healedAt, name: "all healed" }];
  const axis = renderAxis(span, marks);
  return [
    renderRows({ title: "Faults", rows: faults, span, colorOf: ({ name }) => colorOfFault(name) }),
    renderRows({
      title: "Readiness: a bar where a node or server was not ready",
      rows: readiness,
      span,
      colorOf: () => "var(--dark)",
      ground: "var(--ground)",
    }),
    axis,
    renderPlot({
      title: "Commits per second",
      height: 110,
      series: [
        { name: "versions", color: "var(--blue)", style: "area", values: perSecond(figures, ({ commits }) => commits) },
      ],
    }),
    renderPlot({ title: "Calls per second, by outcome", height: 110, series: outcomes(figures) }),
    renderPlot({
      title: "Latency of acknowledged changes",
      height: 120,
      unit: " ms",
      logarithmic: true,
      series: [
        { name: "p50", color: "var(--blue)", style: "line", values: latencyOf(figures, 0.5) },
        { name: "p99", color: "var(--orange)", style: "line", values: latencyOf(figures, 0.99) },
      ],
    }),
    renderPlot({ title: "Refusals and missing answers per second, by code", height: 120, series: codes(figures) }),
    axis,
  ].join("\n");
}

/** What the page shows of the bucket under the pointer. */
export const bucketTexts = (figures: Figures): readonly (readonly string[])[] =>
  figures.buckets.map((bucket) => [
    `commits ${bucket.commits}`,
    `acknowledged ${bucket.acknowledged}, refused ${bucket.refused}, no answer ${bucket.unknown}`,
    bucket.latencies.length === 0
      ? "no latency"
      : `p50 ${Math.round(quantileOf(bucket.latencies, 0.5))} ms, p99 ${Math.round(quantileOf(bucket.latencies, 0.99))} ms`,
    ...[...bucket.codes]
      .sort(([, left], [, right]) => right - left)
      .slice(0, 5)
      .map(([code, count]) => `${code} ${count}`),
  ]);
