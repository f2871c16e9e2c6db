import type { Facts } from "./facts.ts";
import { fieldsOf, itemsOf, textOf } from "./fields.ts";
import { KnownRevisions } from "./known-revisions.ts";
import { holdsAt, type WorkerFacts } from "./registry-facts.ts";
import type { Findings } from "./validator.ts";

/** Members of an answer that tell a worker of claims which it does not hold. */
const told: { readonly [call: string]: string } = { heartbeatWorker: "stopClaims", reconcileWorker: "fencedClaims" };

/** The claims that hold a slot of a worker at every moment of a time, by the process that has its name then. */
function heldThroughout(
  worker: WorkerFacts,
  time: { readonly after: number; readonly until: number },
): ReadonlySet<string> {
  const { versions, slots } = worker;
  const number = versions.findLast(({ revision }) => revision <= time.after)?.record?.incarnation.number;
  const held = new Set<string>();
  for (const hold of holdsAt(slots, time.after).values()) if (hold.incarnation === number) held.add(hold.claimId);
  for (const { revision, before, storedAt } of slots)
    if (revision > time.after && storedAt <= time.until && before !== undefined) held.delete(before.claimId);
  for (const { revision, record, storedAt } of versions)
    if (revision > time.after && storedAt <= time.until && record?.incarnation.number !== number) held.clear();
  return held;
}

/** A worker that is told to stop a claim does not hold it at some moment of the call. */
export function checkStopped(facts: Facts, findings: Findings): void {
  const known = new KnownRevisions(facts);
  const { clockErrorMaxMs } = facts.parameters;
  for (const call of facts.calls) {
    const member = told[call.call];
    const worker = facts.registry.workers.get(textOf(call.args["workerId"]) ?? "");
    if (member === undefined || call.kind !== "acknowledged" || worker === undefined) continue;
    const stopped = itemsOf(fieldsOf(call.answer)[member]).map(String);
    if (stopped.length === 0) continue;
    findings.count(stopped.length);
    const after = known.before(worker.versions[0]?.shard ?? 0, call.startedAt);
    const held = heldThroughout(worker, { after, until: call.endedAt + clockErrorMaxMs });
    // A lease that ran out is fenced though its slot is still held: only its recovery frees it.
    const wrong = stopped.filter(
      (claimId) => held.has(claimId) && !isOver(facts, claimId, { after, until: call.endedAt }),
    );
    if (wrong.length > 0)
      findings.violation(`${call.call} ${call.id} tells ${worker.id} to stop ${wrong.join(", ")}, which it holds`, {
        evidence: call,
      });
  }
}

/** Whether a claim's lease, as it then stood, had run out at some moment of a time: a later one may have renewed it all the same. */
function isOver(facts: Facts, claimId: string, time: { readonly after: number; readonly until: number }): boolean {
  const { clockErrorMaxMs } = facts.parameters;
  for (const { versions } of facts.workloads.values()) {
    const bearing = versions.filter(({ claim, storedAt }) => claim?.claimId === claimId && storedAt <= time.until);
    if (bearing.length === 0) continue;
    return bearing.some(({ claim }, index) => {
      const next = bearing[index + 1];
      // What had been followed by another before the time began is of no account.
      if (claim === undefined || (next !== undefined && next.revision <= time.after)) return false;
      const until = next === undefined ? time.until : Math.min(time.until, next.storedAt);
      return claim.expiresAt <= until + clockErrorMaxMs;
    });
  }
  return false;
}
