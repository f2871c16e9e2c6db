import type { CallLine, EndLine, FaultLine, HistoryLine, ProbeLine, RunLine } from "../history.ts";
import { quantileOf } from "./quantile.ts";

/** What one stretch of a run's time saw. */
export interface Bucket {
  /** Versions of workloads that were committed. */
  commits: number;
  acknowledged: number;
  refused: number;
  unknown: number;
  /** How long acknowledged changes took, ms. */
  readonly latencies: number[];
  readonly codes: Map<string, number>;
}

/** A bar of a timeline, epoch ms. */
export interface Bar {
  readonly label: string;
  readonly from: number;
  readonly until: number;
}

/** A row of a timeline. */
export interface Row {
  readonly name: string;
  readonly bars: readonly Bar[];
}

/** Everything that a report draws. */
export interface Figures {
  readonly run: RunLine;
  readonly end: EndLine | undefined;
  readonly from: number;
  readonly until: number;
  readonly bucketMs: number;
  readonly buckets: readonly Bucket[];
  readonly faults: readonly Row[];
  readonly readiness: readonly Row[];
  readonly codes: readonly (readonly [code: string, count: number])[];
  readonly totals: {
    readonly calls: number;
    readonly acknowledged: number;
    readonly refused: number;
    readonly unknown: number;
    readonly versions: number;
    readonly workloads: number;
    readonly faults: number;
    readonly p50: number;
    readonly p99: number;
  };
}

/** How many stretches a run is cut into, at most, and the shortest of them, ms. */
const BUCKETS_MAX = 240;
const BUCKET_MS_MIN = 1000;

/** Calls that wait for work on purpose, or only read: they say nothing about how long a change takes. */
const untimed = new Set(["claimNext", "get", "list", "result", "explain", "events", "executionContext"]);

interface Second extends Bucket {
  readonly at: number;
}

/** Counts a history, line by line. */
export class FigureCollector {
  #run: RunLine | undefined;
  #end: EndLine | undefined;
  readonly #seconds = new Map<number, Second>();
  readonly #faults: FaultLine[] = [];
  readonly #probes: ProbeLine[] = [];
  readonly #workloads = new Set<string>();
  #last = 0;

  add(line: HistoryLine): void {
    switch (line.line) {
      case "run":
        this.#run ??= line;
        return;
      case "end":
        this.#end = line;
        return;
      case "call":
        return this.#addCall(line);
      case "entry":
        if (line.record === undefined) return;
        this.#workloads.add(line.key);
        this.#second(line.at).commits += 1;
        return;
      case "fault":
        this.#faults.push(line);
        this.#last = Math.max(this.#last, line.at);
        return;
      case "probe":
        this.#probes.push(line);
        return;
      case "work":
      case "view":
      case "leftover":
      case "crash":
    }
  }

  /** The figures; undefined when the history does not even say how the run was made. */
  figures(): Figures | undefined {
    const run = this.#run;
    if (run === undefined) return undefined;
    const seconds = [...this.#seconds.values()];
    // Beginnings that were saved from elsewhere must not stretch the picture.
    const from = Math.min(
      this.#end?.endedAt ?? run.startedAt,
      ...seconds.slice(0, 1).map(({ at }) => at),
      run.startedAt,
    );
    const until = Math.max(this.#end?.endedAt ?? this.#last, from + BUCKET_MS_MIN);
    const bucketMs = Math.max(BUCKET_MS_MIN, Math.ceil((until - from) / BUCKETS_MAX / 1000) * 1000);
    const buckets = Array.from({ length: Math.ceil((until - from) / bucketMs) }, emptyBucket);
    for (const second of seconds) {
      const bucket = buckets[Math.min(Math.max(Math.floor((second.at - from) / bucketMs), 0), buckets.length - 1)];
      if (bucket !== undefined) pour(second, bucket);
    }
    const codes = new Map<string, number>();
    const all = emptyBucket();
    for (const bucket of buckets) {
      pour(bucket, all);
      for (const [code, count] of bucket.codes) codes.set(code, (codes.get(code) ?? 0) + count);
    }
    return {
      run,
      end: this.#end,
      from,
      until,
      bucketMs,
      buckets,
      faults: rowsOfFaults(this.#faults, until),
      readiness: rowsOfProbes(this.#probes, until),
      codes: [...codes].sort(([, left], [, right]) => right - left),
      totals: {
        calls: all.acknowledged + all.refused + all.unknown,
        acknowledged: all.acknowledged,
        refused: all.refused,
        unknown: all.unknown,
        versions: all.commits,
        workloads: this.#workloads.size,
        faults: this.#faults.filter(({ phase }) => phase === "begin").length,
        p50: quantileOf(all.latencies, 0.5),
        p99: quantileOf(all.latencies, 0.99),
      },
    };
  }

  #addCall({ call, startedAt, endedAt, outcome }: CallLine): void {
    const second = this.#second(endedAt);
    second[outcome.kind] += 1;
    if (outcome.kind === "acknowledged" && !untimed.has(call)) second.latencies.push(endedAt - startedAt);
    const code = outcome.kind === "refused" ? outcome.code : outcome.kind === "unknown" ? "no answer" : undefined;
    if (code !== undefined) second.codes.set(code, (second.codes.get(code) ?? 0) + 1);
  }

  #second(at: number): Second {
    const start = Math.floor(at / 1000) * 1000;
    const known = this.#seconds.get(start) ?? { at: start, ...emptyBucket() };
    this.#seconds.set(start, known);
    this.#last = Math.max(this.#last, at);
    return known;
  }
}

const emptyBucket = (): Bucket => ({
  commits: 0,
  acknowledged: 0,
  refused: 0,
  unknown: 0,
  latencies: [],
  codes: new Map(),
});

function pour(from: Bucket, into: Bucket): void {
  into.commits += from.commits;
  into.acknowledged += from.acknowledged;
  into.refused += from.refused;
  into.unknown += from.unknown;
  for (const latency of from.latencies) into.latencies.push(latency);
  for (const [code, count] of from.codes) into.codes.set(code, (into.codes.get(code) ?? 0) + count);
}

function rowsOfFaults(lines: readonly FaultLine[], until: number): readonly Row[] {
  const rows = new Map<string, Bar[]>();
  const open = new Map<string, FaultLine>();
  for (const line of [...lines].sort((left, right) => left.at - right.at)) {
    const { fault, target, phase, at } = line;
    const key = `${fault} ${target}`;
    const bars = rows.get(fault) ?? [];
    rows.set(fault, bars);
    if (phase === "begin") {
      open.set(key, line);
      continue;
    }
    bars.push({ label: target, from: open.get(key)?.at ?? at, until: at });
    open.delete(key);
  }
  for (const { fault, target, at } of open.values()) rows.get(fault)?.push({ label: target, from: at, until });
  return [...rows].sort(([left], [right]) => (left < right ? -1 : 1)).map(([name, bars]) => ({ name, bars }));
}

/** The times in which each target was not ready. */
function rowsOfProbes(lines: readonly ProbeLine[], until: number): readonly Row[] {
  const rows = new Map<string, Bar[]>();
  const since = new Map<string, ProbeLine>();
  const close = (target: string, at: number): void => {
    const began = since.get(target);
    if (began === undefined) return;
    rows.get(target)?.push({ label: (began.reasons ?? ["not ready"]).join("; "), from: began.at, until: at });
    since.delete(target);
  };
  for (const line of [...lines].sort((left, right) => left.at - right.at)) {
    if (!rows.has(line.target)) rows.set(line.target, []);
    close(line.target, line.at);
    if (!line.ready) since.set(line.target, line);
  }
  for (const target of since.keys()) close(target, until);
  return [...rows].sort(([left], [right]) => (left < right ? -1 : 1)).map(([name, bars]) => ({ name, bars }));
}
