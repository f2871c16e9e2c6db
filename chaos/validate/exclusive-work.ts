import type { WorkLine } from "../history.ts";
import { LEASE_ENDED_ERROR } from "../model/pass-steps.ts";
import type { Facts } from "./facts.ts";
import type { Validator } from "./validator.ts";

/** One attempt as its worker lived it. */
interface Span {
  readonly worker: string;
  readonly workerId: string;
  readonly fencingToken: number;
  readonly from: number;
  /** When the worker noticed its end; undefined when it never did. */
  until: number | undefined;
}

function spansOf(lines: readonly WorkLine[]): ReadonlyMap<string, readonly Span[]> {
  const spans = new Map<string, Span[]>();
  for (const { workloadId, worker, workerId, fencingToken, event, at } of lines) {
    const known = spans.get(workloadId) ?? [];
    spans.set(workloadId, known);
    if (event === "began") known.push({ worker, workerId, fencingToken, from: at, until: undefined });
    if (event !== "ended" && event !== "abandoned") continue;
    const open = known.findLast((span) => span.worker === worker && span.fencingToken === fencingToken);
    if (open !== undefined) open.until ??= at;
  }
  return spans;
}

/** Whether the lease ran out before the work was given to somebody else: only then had its holder to stop by himself. */
function wasLost(facts: Facts, workloadId: string, fencingToken: number): boolean {
  const attempts = facts.workloads.get(workloadId)?.record.attempts ?? [];
  return attempts.some((attempt) => attempt.fencingToken === fencingToken && attempt.error === LEASE_ENDED_ERROR);
}

/** Faults that take the process itself away; one that is cut off still has to notice that its lease is over. */
const takesAway = /^(pause|kill|stop|suspend)/;

/** The worker was stopped or killed at that moment, or had only just been let go on: it could not notice anything. */
function wasAway(facts: Facts, span: Span, at: number): boolean {
  const { resumeSlackMs } = facts.parameters;
  return facts.faults.some(
    ({ fault, target, from, until }) =>
      takesAway.test(fault) &&
      (target === span.worker || target === span.workerId) &&
      from <= at &&
      at <= until + resumeSlackMs &&
      until >= span.from,
  );
}

/**
 * Who holds a lease works on until it is over by his own careful count; then he stops, before anybody else is given the
 * work. Where the authority took the work from him earlier (a deadline, an operator) he learns of it with his next call,
 * so those successions are not looked at; nor is a worker that never said when it stopped.
 */
export const exclusiveWork: Validator = {
  validator: "exclusive-work",
  guarantee: "two workers never both believe that they hold a workload",
  expectsFacts: (facts) => facts.work.some(({ event }) => event === "began"),
  validate: (facts, findings) => {
    for (const [workloadId, spans] of spansOf(facts.work)) {
      findings.count(spans.length);
      for (const later of spans)
        for (const earlier of spans) {
          if (earlier.fencingToken >= later.fencingToken || earlier.workerId === later.workerId) continue;
          const overlapMs = (earlier.until ?? later.from) - later.from;
          const overlaps = later.from >= earlier.from && overlapMs > facts.parameters.busySlackMs;
          if (!overlaps || !wasLost(facts, workloadId, earlier.fencingToken)) continue;
          if (wasAway(facts, earlier, later.from)) continue;
          findings.violation(
            `${later.worker} began with token ${later.fencingToken} while ${earlier.worker} still worked with token ${earlier.fencingToken}`,
            { workloadId, evidence: { earlier, later } },
          );
        }
    }
  },
};
