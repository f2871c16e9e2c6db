import { monotonicMs } from "../src/base/clock.ts";

/** What a measured stretch showed. Times are of one operation, ms. */
export interface Figures {
  readonly operations: number;
  readonly elapsedMs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** What failed, by code or message; not counted among the operations. */
  readonly failures: Readonly<Record<string, number>>;
}

/** When a closed loop ends: after a time, or when that many operations have begun. */
export type LoopEnd = { readonly ms: number } | { readonly operations: number };

const rounded = (value: number, digits = 3): number => Number(value.toFixed(digits));

/** The value below which a share of the sorted numbers lies; 0 when there are none. */
const quantile = (sorted: Float64Array, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

/** Sums up single times, ms. */
export function figuresOf(
  timesMs: readonly number[],
  elapsedMs: number,
  failures: Readonly<Record<string, number>> = {},
): Figures {
  const sorted = Float64Array.from(timesMs).sort();
  return {
    operations: timesMs.length,
    elapsedMs: rounded(elapsedMs, 0),
    perSecond: rounded((timesMs.length * 1000) / Math.max(elapsedMs, 0.001), 1),
    p50Ms: rounded(quantile(sorted, 0.5)),
    p99Ms: rounded(quantile(sorted, 0.99)),
    maxMs: rounded(sorted.at(-1) ?? 0),
    failures,
  };
}

/** Says why an operation failed in as few words as will tell kinds apart. */
const failureName = (thrown: unknown): string => {
  if (!(thrown instanceof Error)) return String(thrown);
  return "code" in thrown ? String(thrown.code) : thrown.message.slice(0, 80);
};

/** Adds one to a count. */
export const count = (counts: Record<string, number>, name: string): void => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/**
 * Keeps `inFlight` operations going, each lane beginning its next one when the last is done, until the end. An operation
 * is told its lane and a number that no other operation has; `false` says that nothing is left to do.
 */
export async function closedLoop(
  load: { readonly inFlight: number; readonly end: LoopEnd },
  operate: (lane: number, index: number) => Promise<boolean | void>,
): Promise<Figures> {
  const { inFlight, end } = load;
  const timesMs: number[] = [];
  const failures: Record<string, number> = {};
  const from = monotonicMs();
  const untilMs = "ms" in end ? from + end.ms : Number.POSITIVE_INFINITY;
  const operationsMax = "operations" in end ? end.operations : Number.POSITIVE_INFINITY;
  let begun = 0;
  const run = async (lane: number): Promise<void> => {
    while (begun < operationsMax) {
      const beganAt = monotonicMs();
      if (beganAt >= untilMs) return;
      const index = begun++;
      try {
        if ((await operate(lane, index)) === false) return;
        timesMs.push(monotonicMs() - beganAt);
      } catch (thrown) {
        count(failures, failureName(thrown));
      }
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, lane) => run(lane)));
  return figuresOf(timesMs, monotonicMs() - from, failures);
}

/** The middle one of several numbers. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
