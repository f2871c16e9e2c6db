import { same } from "../model/same.ts";
import type { CallFact } from "./call-facts.ts";
import { claimsIn, type AnsweredClaim } from "./effects.ts";
import type { Facts, Version, WorkloadFacts } from "./facts.ts";
import { fieldsOf, numberOf, subjectText, textOf, type Fields } from "./fields.ts";
import type { Validator } from "./validator.ts";

/** Says what of an answer is not in the store; nothing when all of it is. */
type Check = (call: CallFact, workload: WorkloadFacts, facts: Facts) => string | undefined;

const claimVersionOf = (workload: WorkloadFacts | undefined, fencingToken: number): Version | undefined =>
  workload?.versions.find((version) => version.command === "claim" && version.fencingToken === fencingToken);

/** A claim as it was handed out, against the one that is committed under its token. */
function findMissingClaim(claim: AnsweredClaim, facts: Facts): string | undefined {
  const version = claimVersionOf(facts.workloads.get(claim.workloadId), claim.fencingToken);
  const committed = version?.claim;
  if (committed === undefined) return `the claim with token ${claim.fencingToken} is not committed`;
  const right = committed.claimId === claim.claimId && committed.workerId === claim.workerId;
  return right ? undefined : `token ${claim.fencingToken} is the claim of ${committed.workerId}, not ${claim.workerId}`;
}

/** The answer's claim is one that was committed at some time with this very end of its lease. */
function findMissingLease(answer: Fields, workload: WorkloadFacts): string | undefined {
  const token = numberOf(answer["fencingToken"]);
  const committed = workload.versions.some(
    ({ claim }) => claim?.fencingToken === token && claim?.expiresAt === answer["expiresAt"],
  );
  return committed
    ? undefined
    : `no lease under token ${token} that ends at ${numberOf(answer["expiresAt"])} is committed`;
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
    return workload.versions[0]?.command === "admit" ? undefined : "its creation is not committed";
  },
  start: (call, workload) => findMissingLease(fieldsOf(call.answer), workload),
  heartbeat: (call, workload) => findMissingLease(fieldsOf(fieldsOf(call.answer)["claim"]), workload),
  checkpoint: (call, workload, facts) => {
    const { checkpointId, stateHash } = fieldsOf(call.answer);
    const kept = workload.record.checkpoints.some(
      (one) => one.checkpointId === checkpointId && one.stateHash === stateHash,
    );
    return kept ? hasEffect("the checkpoint")(call, workload, facts) : `${textOf(checkpointId)} is not committed`;
  },
  complete: (call, workload, facts) => {
    const { resultId, outputHash, provenance } = fieldsOf(call.answer);
    const { result } = workload.record;
    if (result === undefined || result.resultId !== resultId) return `the result ${textOf(resultId)} is not committed`;
    const right = result.outputHash === outputHash && same(result.provenance, provenance);
    return right ? hasEffect("the completion")(call, workload, facts) : "another result is committed";
  },
  fail: hasState("the failure"),
  confirmCancel: hasState("the end"),
  cancel: hasState("the cancellation"),
  timeout: hasState("the time-out"),
  retry: hasState("the re-arm"),
  decide: (call, workload) => {
    const { outcome, decidedBy } = fieldsOf(fieldsOf(call.answer)["decision"]);
    const { decision, given = [] } = workload.record.approval ?? {};
    const made = [decision, ...given].some(
      (one) => one !== undefined && one.outcome === outcome && subjectText(one.decidedBy) === subjectText(decidedBy),
    );
    return made ? undefined : `the decision ${textOf(outcome)} is not committed`;
  },
  get: (call, workload) => {
    const { state, events, updatedAt, fencingToken } = fieldsOf(call.answer);
    const shown = workload.versions.some(
      (version) =>
        version.state === state &&
        version.events === events &&
        version.updatedAt === updatedAt &&
        version.fencingToken === fencingToken,
    );
    return shown
      ? undefined
      : `no committed version is ${textOf(state)} with ${numberOf(events)} events as it was shown`;
  },
};

function findMissing(call: CallFact, facts: Facts): string | undefined {
  if (call.call === "claim" || call.call === "claimNext") {
    for (const claim of claimsIn(call.call, call.answer)) {
      const missing = findMissingClaim(claim, facts);
      if (missing !== undefined) return missing;
    }
    return undefined;
  }
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
      if (checks[call.call] === undefined && call.call !== "claim" && call.call !== "claimNext") continue;
      findings.count();
      const missing = findMissing(call, facts);
      if (missing === undefined) continue;
      const workloadId = call.workloadId ?? claimsIn(call.call, call.answer)[0]?.workloadId;
      findings.violation(`${call.call} ${call.id} was acknowledged, but ${missing}`, { workloadId, evidence: call });
    }
    for (const { event, worker, workloadId, workerId, claimId, fencingToken } of facts.work) {
      if (event !== "handed") continue;
      findings.count();
      const missing = findMissingClaim({ workloadId, claimId, workerId, fencingToken, expiresAt: 0 }, facts);
      if (missing !== undefined) findings.violation(`${worker} was handed work, but ${missing}`, { workloadId });
    }
  },
};
