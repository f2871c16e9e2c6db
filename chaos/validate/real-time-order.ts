import { parsePosition, type CallFact } from "./call-facts.ts";
import type { Facts } from "./facts.ts";
import { textOf } from "./fields.ts";
import { KnownRevisions } from "./known-revisions.ts";
import type { Findings, Validator } from "./validator.ts";

const readings = new Set(["get", "list", "explain", "result", "executionContext", "events"]);

/** A change that this very call made comes after everything that was known before the call. */
function checkEffect(
  call: CallFact,
  facts: Facts,
  how: { readonly known: KnownRevisions; readonly findings: Findings },
): void {
  const [effect, ...others] = facts.effectsOf(call);
  if (effect === undefined || others.length > 0 || facts.authorsOf(effect).length > 1) return;
  how.findings.count();
  const before = how.known.before(effect.shard, call.startedAt);
  if (effect.revision > before) return;
  how.findings.violation(
    `${call.call} ${call.id} took effect at revision ${effect.revision}, though ${before} had been answered before it began`,
    { workloadId: effect.workloadId, evidence: call },
  );
}

/** An answer to a command reflects everything of its workload that was known before the call; a reading what it asks for. */
function checkPosition(
  call: CallFact,
  facts: Facts,
  how: { readonly known: KnownRevisions; readonly findings: Findings },
): void {
  const { position, workloadId, args } = call;
  if (position === undefined) return;
  const minimum = parsePosition(textOf(args["minRevision"]));
  if (minimum !== undefined && minimum.shard === position.shard) {
    how.findings.count();
    if (position.revision < minimum.revision)
      how.findings.violation(
        `${call.call} ${call.id} asked for revision ${minimum.revision} and was shown ${position.revision}`,
        { workloadId, evidence: call },
      );
  }
  const workload = facts.workloads.get(workloadId ?? "");
  if (workload === undefined || readings.has(call.call) || position.shard !== workload.shard) return;
  const before = how.known.before(position.shard, call.startedAt);
  const latest = workload.versions.findLast(({ revision }) => revision <= before);
  if (latest === undefined) return;
  how.findings.count();
  if (position.revision < latest.revision)
    how.findings.violation(
      `${call.call} ${call.id} reflects revision ${position.revision}, though ${latest.revision} had been answered before it began`,
      { workloadId, evidence: call },
    );
}

export const realTimeOrder: Validator = {
  validator: "real-time-order",
  guarantee: "a call that ended before another began is not ordered after it",
  expectsFacts: (facts) => facts.calls.some((call) => facts.effectsOf(call).length > 0),
  validate: (facts, findings) => {
    const known = new KnownRevisions(facts);
    for (const call of facts.calls) {
      if (call.kind !== "acknowledged") continue;
      checkEffect(call, facts, { known, findings });
      checkPosition(call, facts, { known, findings });
    }
  },
};
