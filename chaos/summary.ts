import type { Unknowns } from "./landed.ts";
import type { CallLine, EntryLine, FaultLine, HistoryLine, ProbeLine } from "./history.ts";

/** Figures of one measure. */
export interface Figures {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** What a run amounted to, for the person who made it. Times in ms. */
export interface Summary {
  readonly operations: number;
  readonly acknowledged: number;
  readonly refused: number;
  readonly refusals: { readonly [code: string]: number };
  /** Sent, and never or not surely answered. */
  readonly unknown: number;
  readonly unsent: number;
  readonly versions: number;
  readonly workloads: number;
  /** Writes of the nodes that the nats-servers answered twice, and those that one of two refused and the other stored. */
  readonly answeredTwice: number;
  readonly contradicted: number;
  readonly faults: { readonly [fault: string]: number };
  /** Processes that ended though no fault ended them. */
  readonly unexpectedEnds: readonly string[];
  /** How long an acknowledged change took. */
  readonly latency: Figures;
  /** Gaps of half a second and more in which no change was acknowledged. */
  readonly outages: Figures;
  /** From the end of a fault until every node was ready again. */
  readonly recoveries: Figures;
}

const OUTAGE_MS = 500;

export function figuresOf(values: readonly number[]): Figures {
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number): number =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

const changing = new Set([
  "admit",
  "admitMany",
  "claim",
  "claimNext",
  "start",
  "checkpoint",
  "complete",
  "fail",
  "confirmCancel",
  "cancel",
  "retry",
  "timeout",
  "decide",
]);

/** Counts what was committed, while the store is read. */
export class Commits {
  versions = 0;
  readonly workloads = new Set<string>();

  take({ record }: EntryLine): void {
    if (record === undefined) return;
    this.versions += 1;
    this.workloads.add(record.workloadId);
  }
}

function outagesOf(calls: readonly CallLine[]): readonly number[] {
  const times = calls.map(({ endedAt }) => endedAt).sort((left, right) => left - right);
  return times.flatMap((at, index) => {
    const gap = at - (times[index - 1] ?? at);
    return gap >= OUTAGE_MS ? [gap] : [];
  });
}

function recoveriesOf(faults: readonly FaultLine[], probes: readonly ProbeLine[]): readonly number[] {
  const nodes = probes.filter(({ target }) => target.startsWith("a")).sort((left, right) => left.at - right.at);
  const recoveries: number[] = [];
  for (const { at: healedAt, phase } of faults) {
    if (phase !== "end") continue;
    const away = new Set<string>();
    let readyAt: number | undefined = healedAt;
    for (const { target, at, ready } of nodes) {
      if (at > healedAt && away.size === 0) break;
      if (ready) away.delete(target);
      else if (at <= healedAt) away.add(target);
      readyAt = Math.max(healedAt, at);
    }
    if (away.size === 0) recoveries.push(readyAt - healedAt);
  }
  return recoveries;
}

const countBy = (names: readonly string[]): { readonly [name: string]: number } => {
  const counts: { [name: string]: number } = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

/** Counts what a run did. */
export function summarize(
  lines: readonly HistoryLine[],
  commits: Commits,
  answers: { readonly twice: number; readonly contradicted: number },
): Summary {
  const calls = lines.filter((line): line is CallLine => line.line === "call");
  const faults = lines.filter((line): line is FaultLine => line.line === "fault");
  const probes = lines.filter((line): line is ProbeLine => line.line === "probe");
  const unsent = calls.filter(({ outcome }) => outcome.kind === "unknown" && outcome.cause.startsWith("unsent"));
  const unknown = calls.filter(({ outcome }) => outcome.kind === "unknown").length - unsent.length;
  const acknowledged = calls.filter(({ outcome }) => outcome.kind === "acknowledged");
  const changes = acknowledged.filter(({ call }) => changing.has(call));
  const waited = changes.filter(({ call }) => call !== "claimNext");
  const own = faults.filter(({ fault }) => fault !== "ended-by-itself");
  return {
    operations: calls.length,
    acknowledged: acknowledged.length,
    refused: calls.filter(({ outcome }) => outcome.kind === "refused").length,
    refusals: countBy(calls.flatMap(({ outcome }) => (outcome.kind === "refused" ? [outcome.code] : []))),
    unknown,
    unsent: unsent.length,
    versions: commits.versions,
    workloads: commits.workloads.size,
    answeredTwice: answers.twice,
    contradicted: answers.contradicted,
    faults: countBy(own.flatMap(({ phase, fault }) => (phase === "begin" ? [fault] : []))),
    unexpectedEnds: faults.flatMap(({ fault, phase, target, details }) =>
      fault === "ended-by-itself" && phase === "begin" ? [`${target} ${JSON.stringify(details)}`] : [],
    ),
    latency: figuresOf(waited.map(({ startedAt, endedAt }) => endedAt - startedAt)),
    outages: figuresOf(outagesOf(waited)),
    recoveries: figuresOf(recoveriesOf(own, probes)),
  };
}

const told = ({ count, p50, p99, max }: Figures): string => `${count} (p50 ${p50} ms, p99 ${p99} ms, max ${max} ms)`;

const list = (counts: { readonly [name: string]: number }): string =>
  Object.entries(counts)
    .sort(([, left], [, right]) => right - left)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

/** The summary as lines of text. */
export const renderSummary = (summary: Summary, unknowns: Unknowns): string =>
  [
    `operations: ${summary.operations} (${summary.acknowledged} acknowledged, ${summary.refused} refused, ${summary.unknown} unknown, ${summary.unsent} never sent)`,
    `unknown outcomes looked for in the store: ${unknowns.count}; landed before they were repeated: ${unknowns.landed}`,
    `committed: ${summary.versions} versions of ${summary.workloads} workloads`,
    `writes answered twice by the nats-servers: ${summary.answeredTwice} (refused by one and stored by the other: ${summary.contradicted})`,
    `faults: ${Object.values(summary.faults).reduce((sum, count) => sum + count, 0)} (${list(summary.faults)})`,
    `refusals: ${list(summary.refusals)}`,
    `latency of changes: ${told(summary.latency)}`,
    `outages: ${told(summary.outages)}`,
    `recovery of all nodes after a fault: ${told(summary.recoveries)}`,
    ...summary.unexpectedEnds.map((end) => `ended by itself: ${end}`),
  ].join("\n");
