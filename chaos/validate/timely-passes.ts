import { isHeld } from "../model/states.ts";
import type { Facts, Version } from "./facts.ts";
import { takeBreaches, type Findings, type Validator } from "./validator.ts";

/** Longest grace that leases are given after an outage, ms (contract 5.5). */
const GRACE_MAX_MS = 30_000;

/** Something that has to happen to a workload as it is, unless something else happens first. */
interface Due {
  readonly what: string;
  readonly at: number;
  readonly graceMs: number;
}

function duesOf({ deadline, claim, state }: Version): readonly Due[] {
  const dues: Due[] = [];
  if (deadline !== undefined) dues.push({ what: `${deadline.deadline} deadline`, at: deadline.deadlineAt, graceMs: 0 });
  if (claim !== undefined && isHeld(state)) {
    const leaseMs = Math.max(0, claim.expiresAt - claim.lastHeartbeat);
    dues.push({ what: "end of the lease", at: claim.expiresAt, graceMs: Math.min(leaseMs, GRACE_MAX_MS) });
  }
  return dues;
}

/**
 * The record says that it was not early; the store's own stamp must agree, or a node's clock ran ahead. That shows in every
 * version: nothing is decided at an instant that the store's clock has not reached (contract 5.5).
 */
function checkEarly(facts: Facts, version: Version, findings: Findings): void {
  const { dueAt, storedAt, at, revision, command, workloadId } = version;
  const { clockErrorMaxMs } = facts.parameters;
  findings.count();
  const where = { workloadId, evidence: { revision, storedAt, at } };
  const what = `revision ${revision}, ${command}`;
  if (dueAt !== undefined && dueAt - storedAt > clockErrorMaxMs)
    findings.violation(`${what}: ${dueAt - storedAt} ms before its instant ${dueAt} by the store's clock`, where);
  else if (at - storedAt > clockErrorMaxMs)
    findings.violation(`${what}: decided ${at - storedAt} ms ahead of the store's clock`, where);
}

/** While faults last lateness is excused; after the last heal it is bounded. */
function checkLate(
  facts: Facts,
  version: Version,
  how: { readonly next: Version | undefined; readonly findings: Findings },
): void {
  const { end, parameters } = facts;
  if (end === undefined) return;
  const until = how.next?.storedAt ?? end.endedAt;
  for (const { what, at, graceMs } of duesOf(version)) {
    if (at > until) continue;
    how.findings.count();
    const from = Math.max(at, version.storedAt, end.healedAt);
    const lateMs = until - from;
    if (lateMs <= parameters.lateMaxMs + graceMs) continue;
    const unsettled = how.next === undefined ? "nothing has come of it" : `revision ${how.next.revision} came`;
    how.findings.violation(`the ${what} passed at ${at}; ${unsettled} ${Math.round(lateMs)} ms after it was due`, {
      workloadId: version.workloadId,
      evidence: { revision: version.revision, state: version.state },
    });
  }
}

export const timelyPasses: Validator = {
  validator: "timely-passes",
  guarantee: "every deadline and every recovery happens, never early, and after the last heal within a bound",
  expectsFacts: (facts) => facts.end !== undefined && facts.work.length > 0,
  validate: (facts, findings) => {
    takeBreaches(facts, "timing", findings);
    for (const { versions } of facts.workloads.values())
      for (const [index, version] of versions.entries()) {
        checkEarly(facts, version, findings);
        checkLate(facts, version, { next: versions[index + 1], findings });
      }
  },
};
