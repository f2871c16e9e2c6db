import { escapeText } from "./escape.ts";
import type { Row } from "./figures.ts";

/** Geometry that all charts of a page share, so that one instant stands at one place in all of them. */
export const WIDTH = 1120;
export const GUTTER = 170;
export const RIGHT = 16;
const PLOT = WIDTH - GUTTER - RIGHT;

/** The time that a chart shows, epoch ms. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

const round = (value: number): number => Math.round(value * 100) / 100;

/** Where an instant stands. */
export const placeOf = ({ from, until }: Span, at: number): number =>
  round(GUTTER + (Math.min(Math.max(at, from), until) - from) * (PLOT / (until - from)));

/** One line or area of a chart, a value a bucket; undefined: nothing to draw there. */
export interface Series {
  readonly name: string;
  readonly color: string;
  readonly values: readonly (number | undefined)[];
  readonly style: "line" | "area" | "bars";
}

const plain = (value: number): string =>
  value >= 10_000 ? `${Math.round(value / 1000)}k` : String(value >= 10 ? Math.round(value) : round(value));

/** A value that a scale may end at: one, two or five times a power of ten. */
function ceiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

interface Scale {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

const linearScale = (highest: number, height: number): Scale => {
  const top = ceiling(highest);
  return { place: (value) => round(height - (value / top) * (height - 10)), ticks: [0, top / 2, top] };
};

/** For values that differ by powers of ten: from 1 on. */
const logarithmicScale = (highest: number, height: number): Scale => {
  const decades = Math.max(1, Math.ceil(Math.log10(Math.max(highest, 2))));
  const ticks = Array.from({ length: decades + 1 }, (_, power) => 10 ** power);
  return { place: (value) => round(height - (Math.log10(Math.max(value, 1)) / decades) * (height - 10)), ticks };
};

const gridOf = ({ place, ticks }: Scale, unit: string): string =>
  ticks
    .map((tick) => {
      const y = place(tick);
      return `<line class="grid" x1="${GUTTER}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/><text class="tick" x="${GUTTER - 8}" y="${y + 4}">${plain(tick)}${unit}</text>`;
    })
    .join("");

/** The stretches of a series in which every bucket has a value. */
function stretchesOf(values: readonly (number | undefined)[]): readonly (readonly (readonly [number, number])[])[] {
  const stretches: [number, number][][] = [[]];
  for (const [index, value] of values.entries())
    if (value === undefined) stretches.push([]);
    else stretches.at(-1)?.push([index, value]);
  return stretches.filter((stretch) => stretch.length > 0);
}

function drawSeries(
  series: Series,
  how: { readonly scale: Scale; readonly step: number; readonly height: number },
): string {
  const { values, style, color } = series;
  const { scale, step, height } = how;
  const x = (index: number): number => round(GUTTER + (index + 0.5) * step);
  if (style === "bars")
    return values
      .map((value, index) => {
        if (value === undefined || value === 0) return "";
        const y = scale.place(value);
        const width = Math.max(step - 0.6, 0.6);
        return `<rect x="${round(GUTTER + index * step)}" y="${y}" width="${round(width)}" height="${round(height - y)}" fill="${color}"/>`;
      })
      .join("");
  return stretchesOf(values)
    .map((stretch) => {
      const points = stretch.map(([index, value]) => `${x(index)},${scale.place(value)}`).join(" ");
      const first = stretch[0]?.[0] ?? 0;
      const last = stretch.at(-1)?.[0] ?? 0;
      const area =
        style === "area"
          ? `<polygon points="${x(first)},${height} ${points} ${x(last)},${height}" fill="${color}" opacity="0.16"/>`
          : "";
      const dot =
        stretch.length === 1
          ? `<circle cx="${x(first)}" cy="${scale.place(stretch[0]?.[1] ?? 0)}" r="1.6" fill="${color}"/>`
          : "";
      return `${area}${dot}<polyline points="${points}" fill="none" stroke="${color}" stroke-width="1.5" stroke-linejoin="round"/>`;
    })
    .join("");
}

/** A chart over the time of the run. Bars are stacked by the caller: the highest comes first. */
export function renderPlot(plot: {
  readonly title: string;
  readonly series: readonly Series[];
  readonly height: number;
  readonly unit?: string;
  readonly logarithmic?: boolean;
}): string {
  const { title, series, height, unit = "", logarithmic = false } = plot;
  const highest = series.flatMap(({ values }) => values).reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  const scale = logarithmic ? logarithmicScale(highest, height) : linearScale(highest, height);
  const count = Math.max(1, ...series.map(({ values }) => values.length));
  const drawn = series.map((one) => drawSeries(one, { scale, step: PLOT / count, height })).join("");
  const legend = series
    .map(({ name, color }) => `<span class="key"><i style="background:${color}"></i>${escapeText(name)}</span>`)
    .join("");
  return `<figure><figcaption>${escapeText(title)}<span class="legend">${legend}</span></figcaption><svg class="chart" viewBox="0 0 ${WIDTH} ${height + 2}" role="img" aria-label="${escapeText(title)}">${gridOf(scale, unit)}${drawn}</svg></figure>`;
}

const ROW = 18;

/** Rows of bars over the time of the run. */
export function renderRows(chart: {
  readonly title: string;
  readonly rows: readonly Row[];
  readonly span: Span;
  readonly colorOf: (row: Row) => string;
  /** Drawn behind the bars, over the whole row. */
  readonly ground?: string;
}): string {
  const { title, rows, span, colorOf, ground } = chart;
  const drawn = rows.map((row, index) => {
    const y = index * ROW;
    const back =
      ground === undefined
        ? ""
        : `<rect x="${GUTTER}" y="${y + 5}" width="${PLOT}" height="${ROW - 10}" fill="${ground}" rx="2"/>`;
    const bars = row.bars.map(({ label, from, until }) => {
      const x = placeOf(span, from);
      const width = Math.max(placeOf(span, until) - x, 2);
      const lasted = `${((until - from) / 1000).toFixed(1)} s`;
      return `<rect x="${x}" y="${y + 3}" width="${round(width)}" height="${ROW - 6}" rx="2" fill="${colorOf(row)}"><title>${escapeText(`${row.name} ${label} (${lasted})`)}</title></rect>`;
    });
    return `<text class="label" x="${GUTTER - 8}" y="${y + 13}">${escapeText(row.name)}</text><line class="grid" x1="${GUTTER}" x2="${WIDTH - RIGHT}" y1="${y + ROW}" y2="${y + ROW}"/>${back}${bars.join("")}`;
  });
  return `<figure><figcaption>${escapeText(title)}</figcaption><svg class="chart" viewBox="0 0 ${WIDTH} ${Math.max(rows.length, 1) * ROW + 2}" role="img" aria-label="${escapeText(title)}">${drawn.join("")}</svg></figure>`;
}

/** The scale of time, and marks on it. */
export function renderAxis(span: Span, marks: readonly { readonly at: number; readonly name: string }[]): string {
  const lengthMs = span.until - span.from;
  const stepMs = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600].find(
    (seconds) => lengthMs / seconds / 1000 <= 12,
  );
  const every = (stepMs ?? 3600) * 1000;
  const ticks = Array.from({ length: Math.floor(lengthMs / every) + 1 }, (_, index) => index * every);
  const text = ticks.map((offset) => {
    const x = placeOf(span, span.from + offset);
    return `<line class="tickmark" x1="${x}" x2="${x}" y1="0" y2="5"/><text class="tick middle" x="${x}" y="18">${clockText(offset)}</text>`;
  });
  const named = marks.map(({ at, name }) => {
    const x = placeOf(span, at);
    return `<line class="mark" x1="${x}" x2="${x}" y1="0" y2="26"/><text class="tick middle" x="${x}" y="36">${escapeText(name)}</text>`;
  });
  return `<svg class="chart axis" viewBox="0 0 ${WIDTH} 40" aria-hidden="true">${text.join("")}${named.join("")}</svg>`;
}

/** A length of time as minutes and seconds. */
export function clockText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
