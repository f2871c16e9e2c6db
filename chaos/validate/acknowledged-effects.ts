import type { WorkLine } from "../history.ts";
import { same } from "../model/same.ts";
import type { CallFact } from "./call-facts.ts";
import { claimsIn } from "./effects.ts";
import type { Facts, WorkloadFacts } from "./facts.ts";
import { fieldsOf, numberOf, textOf, type Fields } from "./fields.ts";
import { registryChecks } from "./registry-effects.ts";
import type { Validator } from "./validator.ts";

/** Says what of an answer is not in the store; nothing when all of it is. */
type Check = (call: CallFact, workload: WorkloadFacts, facts: Facts) => string | undefined;

/** A claim of which a worker says that it was handed it, against the one that is committed under its token. */
function findMissingClaim(line: WorkLine, facts: Facts): string | undefined {
  const workload = facts.workloads.get(line.workloadId);
  const { fencingToken, claimId, workerId } = line;
  const committed = workload?.versions.find(
    (version) => version.command === "claim" && version.fencingToken === fencingToken,
  )?.claim;
  if (committed === undefined) return `the claim with token ${fencingToken} is not committed`;
  const right = committed.claimId === claimId && committed.workerId === workerId;
  return right ? undefined : `token ${fencingToken} is the claim of ${committed.workerId}, not ${workerId}`;
}

/** An answered claim is one that was committed at some time, with this very lease. */
function findMissingLease(answered: unknown, facts: Facts): string | undefined {
  const { workloadId, fencingToken, expiresAt } = fieldsOf(answered);
  const versions = facts.workloads.get(textOf(workloadId) ?? "")?.versions ?? [];
  if (versions.some(({ claim }) => claim !== undefined && same(claim, answered))) return undefined;
  return `no such claim with token ${numberOf(fencingToken)} that ends at ${numberOf(expiresAt)} is committed`;
}

/** A workload that was shown is one of its committed versions, to the last field. */
function findUnknownVersion(answered: Fields, workload: WorkloadFacts): string | undefined {
  if (answered["honest"] !== true) return "its input was shown as another";
  const { fingerprint, state, events } = answered;
  if (workload.versions.some((version) => version.fingerprint === fingerprint)) return undefined;
  return `no committed version is ${textOf(state)} with ${numberOf(events)} events as it was shown`;
}

const hasEffect =
  (what: string): Check =>
  (call, _workload, facts) =>
    facts.effectsOf(call).length > 0 ? undefined : `${what} is not committed`;

/** The call led to a state, or found the workload on the way that it asks for. */
const hasState =
  (what: string): Check =>
  (call, workload, facts) => {
    const state = textOf(fieldsOf(call.answer)["state"]);
    const effects = facts.effectsOf(call);
    const led = effects.some((effect) => workload.versions.slice(effect.index).some((later) => later.state === state));
    if (led) return undefined;
    // Who asks for a cancellation that was asked for already changes nothing.
    const found = workload.versions.some((version) => version.state === state);
    if (call.call === "cancel" && state === "CANCELLATION_REQUESTED" && found) return undefined;
    return effects.length > 0 ? `it never was ${state} after ${what}` : `${what} is not committed`;
  };

const checks: { readonly [call: string]: Check } = {
  admit: (call, workload) => {
    const answered = fieldsOf(fieldsOf(call.answer)["workload"]);
    if (answered["workloadId"] !== workload.workloadId) return "the answer names another workload";
    if (call.args["digest"] !== workload.digest) return "what was admitted under the key differs from the request";
    if (answered["createdAt"] !== workload.record.createdAt) return "the answer is another creation";
    if (workload.versions[0]?.command !== "admit") return "its creation is not committed";
    return findUnknownVersion(answered, workload);
  },
  start: (call, _workload, facts) => findMissingLease(call.answer, facts),
  heartbeat: (call, _workload, facts) => findMissingLease(fieldsOf(call.answer)["claim"], facts),
  checkpoint: (call, workload, facts) => {
    const { honest, ...answered } = fieldsOf(call.answer);
    const kept = workload.record.checkpoints.some(({ state: _state, ...one }) => same(one, answered));
    if (!kept || honest !== true) return `${textOf(answered["checkpointId"])} is not committed like that`;
    return hasEffect("the checkpoint")(call, workload, facts);
  },
  complete: (call, workload, facts) => {
    const { honest, ...answered } = fieldsOf(call.answer);
    const { result } = workload.record;
    if (result === undefined) return `the result ${textOf(answered["resultId"])} is not committed`;
    const { output: _output, ...kept } = result;
    if (!same(kept, answered) || honest !== true) return "another result is committed";
    return hasEffect("the completion")(call, workload, facts);
  },
  fail: hasState("the failure"),
  confirmCancel: hasState("the end"),
  cancel: hasState("the cancellation"),
  timeout: hasState("the time-out"),
  retry: hasState("the re-arm"),
  decide: (call, workload) => {
    const answered = fieldsOf(call.answer)["decision"];
    const { decision, given = [] } = workload.record.approval ?? {};
    if ([decision, ...given].some((one) => one !== undefined && same(one, answered))) return undefined;
    return `the decision ${textOf(fieldsOf(answered)["outcome"])} is not committed like that`;
  },
  get: (call, workload) => findUnknownVersion(fieldsOf(call.answer), workload),
};

const isChecked = (call: string): boolean =>
  checks[call] !== undefined || registryChecks[call] !== undefined || call === "claim" || call === "claimNext";

function findMissing(call: CallFact, facts: Facts): string | undefined {
  if (call.call === "claim" || call.call === "claimNext") {
    for (const claim of claimsIn(call.call, call.answer)) {
      const missing = findMissingLease(claim, facts);
      if (missing !== undefined) return missing;
    }
    return undefined;
  }
  const ofRegistry = registryChecks[call.call];
  if (ofRegistry !== undefined) return ofRegistry(call, facts);
  const workload = facts.workloads.get(call.workloadId ?? "");
  return workload === undefined ? "its workload is not committed" : checks[call.call]?.(call, workload, facts);
}

export const acknowledgedEffects: Validator = {
  validator: "acknowledged-effects",
  guarantee: "nothing acknowledged is missing, and it is what the answer said",
  expectsFacts: (facts) => facts.calls.some(({ kind }) => kind === "acknowledged"),
  validate: (facts, findings) => {
    for (const call of facts.calls) {
      if (call.kind !== "acknowledged") continue;
      if (!isChecked(call.call)) continue;
      findings.count();
      const missing = findMissing(call, facts);
      if (missing === undefined) continue;
      const workloadId = call.workloadId ?? claimsIn(call.call, call.answer)[0]?.workloadId;
      findings.violation(`${call.call} ${call.id} was acknowledged, but ${missing}`, { workloadId, evidence: call });
    }
    for (const line of facts.work) {
      if (line.event !== "handed") continue;
      findings.count();
      const { workloadId, worker } = line;
      const missing = findMissingClaim(line, facts);
      if (missing !== undefined) findings.violation(`${worker} was handed work, but ${missing}`, { workloadId });
    }
  },
};
