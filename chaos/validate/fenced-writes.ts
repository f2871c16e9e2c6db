import type { Facts, Version } from "./facts.ts";
import { versionsOf } from "./facts.ts";
import { takeBreaches, type Validator } from "./validator.ts";

/** Longest grace that leases are given after an outage, ms (contract 5.5). */
const GRACE_MAX_MS = 30_000;

const written = new Set(["start", "heartbeat", "checkpoint", "complete", "fail", "confirmCancel"]);

/**
 * While nobody could take a renewal no lease ends, so a node that has just come back may take a late one: for the length
 * of the lease after the outage. Whether there was an outage is told generously, since a guess must not accuse.
 */
function mayBeGrace(facts: Facts, version: Version): boolean {
  const { held, at } = version;
  const leaseMs = Math.max(0, (held?.expiresAt ?? 0) - (held?.lastHeartbeat ?? 0));
  const from = at - Math.min(leaseMs, GRACE_MAX_MS) - facts.parameters.outageTailMs;
  const meets = (span: { readonly from: number; readonly until: number }): boolean =>
    span.from <= at && span.until >= from;
  return facts.faults.some(meets) || facts.outages.some(meets) || facts.run.startedAt >= from;
}

export const fencedWrites: Validator = {
  validator: "fenced-writes",
  guarantee: "a worker whose claim or lease is gone never lands a write",
  expectsFacts: (facts) =>
    facts.calls.some(({ call, kind }) => kind === "acknowledged" && (call === "complete" || call === "heartbeat")),
  validate: (facts, findings) => {
    takeBreaches(facts, "fence", findings);
    for (const version of versionsOf(facts)) {
      if (!written.has(version.command)) continue;
      findings.count();
      if (version.lateByMs === undefined || mayBeGrace(facts, version)) continue;
      findings.violation(
        `revision ${version.revision}, ${version.command}: the lease had been over for ${version.lateByMs} ms, and no outage excuses it`,
        { workloadId: version.workloadId, evidence: { revision: version.revision, held: version.held } },
      );
    }
  },
};
