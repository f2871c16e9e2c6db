import { createHash } from "node:crypto";
import { encodeToken } from "../src/base/token.ts";
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
  /** Of the unknown ones that can be traced in the store: how many had taken effect before they were repeated. */
  readonly unknownLanded: number;
  readonly unsent: number;
  readonly versions: number;
  readonly workloads: number;
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

/** How an operation id begins when it stems from this request (who asks, what, under which id). */
function markOf({ surface, caller, call, requestId, arguments: given }: CallLine): string | undefined {
  if (requestId === undefined) return undefined;
  const { tenantId, applicationId, workerId } = (given ?? {}) as { readonly [name: string]: unknown };
  const who =
    surface === "http"
      ? caller
      : `${encodeToken(String(tenantId))}/${encodeToken(String(applicationId))}/worker:${String(workerId)}`;
  return createHash("sha256")
    .update(JSON.stringify([who, call, requestId]))
    .digest("base64url")
    .slice(0, 16);
}

/** Notes when each operation was committed, while the store is read. */
export class CommitTimes {
  readonly #times = new Map<string, number>();
  versions = 0;
  readonly workloads = new Set<string>();

  take({ at, operations, record }: EntryLine): void {
    if (record === undefined) return;
    this.versions += 1;
    this.workloads.add(record.workloadId);
    const mark = operations.at(-1)?.split(":")[0] ?? "";
    if (mark !== "" && !this.#times.has(mark)) this.#times.set(mark, at);
  }

  committedAt(mark: string): number | undefined {
    return this.#times.get(mark);
  }
}

/** Whether an unknown call had taken effect by the time that it was tried again. */
function countLanded(calls: readonly CallLine[], commits: CommitTimes): number {
  const tries = new Map<string, CallLine[]>();
  for (const call of calls) {
    const mark = markOf(call);
    if (mark === undefined) continue;
    const known = tries.get(mark);
    if (known === undefined) tries.set(mark, [call]);
    else known.push(call);
  }
  let landed = 0;
  for (const [mark, list] of tries) {
    const committedAt = commits.committedAt(mark);
    if (committedAt === undefined) continue;
    const first = list.findIndex(({ outcome, endedAt }) => outcome.kind !== "unknown" || endedAt >= committedAt);
    if (list[first]?.outcome.kind === "unknown") landed += 1;
  }
  return landed;
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
export function summarize(lines: readonly HistoryLine[], commits: CommitTimes): Summary {
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
    unknownLanded: countLanded(calls, commits),
    unsent: unsent.length,
    versions: commits.versions,
    workloads: commits.workloads.size,
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
export const renderSummary = (summary: Summary): string =>
  [
    `operations: ${summary.operations} (${summary.acknowledged} acknowledged, ${summary.refused} refused, ${summary.unknown} unknown, ${summary.unsent} never sent)`,
    `unknown outcomes that had landed before they were repeated: ${summary.unknownLanded}`,
    `committed: ${summary.versions} versions of ${summary.workloads} workloads`,
    `faults: ${Object.values(summary.faults).reduce((sum, count) => sum + count, 0)} (${list(summary.faults)})`,
    `refusals: ${list(summary.refusals)}`,
    `latency of changes: ${told(summary.latency)}`,
    `outages: ${told(summary.outages)}`,
    `recovery of all nodes after a fault: ${told(summary.recoveries)}`,
    ...summary.unexpectedEnds.map((end) => `ended by itself: ${end}`),
  ].join("\n");
