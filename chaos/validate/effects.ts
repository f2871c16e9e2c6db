import type { CallFact } from "./call-facts.ts";
import type { Version, WorkloadFacts } from "./facts.ts";
import { actorOf, fieldsOf, itemsOf, numberOf, subjectText, textOf } from "./fields.ts";
import { ownResultIdOf } from "../model/identities.ts";

/** Whether the version was written under the claim that the call names. */
function isUnderFence({ args }: CallFact, { held }: Version): boolean {
  return (
    held !== undefined &&
    held.fencingToken === args["fencingToken"] &&
    held.claimId === args["claimId"] &&
    held.workerId === args["workerId"]
  );
}

const lastEventOf = (
  { record }: WorkloadFacts,
  version: Version,
  back = 1,
): WorkloadFacts["record"]["history"][number] | undefined => record.history[version.events - back];

/** The event that a command begins with, when it makes two. */
function firstEventOf(workload: WorkloadFacts, version: Version): ReturnType<typeof lastEventOf> {
  const before = workload.versions[version.index - 1]?.events ?? 0;
  return workload.record.history[before];
}

/** A kept text is the given one, or its beginning. */
const isKeptFrom = (kept: string | undefined, given: unknown): boolean =>
  kept === undefined || textOf(given) === undefined || kept.slice(0, 200) === textOf(given)?.slice(0, 200);

function isAttemptOf(workload: WorkloadFacts, version: Version, error: unknown): boolean {
  const attempt = workload.record.attempts.find(({ fencingToken }) => fencingToken === version.held?.fencingToken);
  return isKeptFrom(attempt?.error, error);
}

function isDecisionOf({ args }: CallFact, { record }: WorkloadFacts, version: Version): boolean {
  const made = [record.approval?.decision, ...(record.approval?.given ?? [])];
  return made.some(
    (decision) =>
      decision !== undefined &&
      decision.decidedAt === version.at &&
      subjectText(decision.decidedBy) === subjectText(args["decider"]) &&
      decision.outcome === args["outcome"] &&
      isKeptFrom(decision.reason, args["reason"]),
  );
}

/** Whether a version is what a call asks for, told by values that the call gave; whether it was this call is another question. */
export function isEffectOf(call: CallFact, version: Version, workload: WorkloadFacts): boolean {
  const { args } = call;
  const started = version.command === "claim" && version.state === "RUNNING";
  if (call.call === "start" && started) return false;
  if (call.call === "claimNext") return isClaimOf(call, version);
  if (call.call !== version.command) return false;
  switch (version.command) {
    case "admit":
      return args["digest"] === workload.digest;
    case "claim":
      return isClaimOf(call, version);
    case "start":
    case "confirmCancel":
      return isUnderFence(call, version);
    case "heartbeat":
      return isUnderFence(call, version) && isRenewalOf(call, version);
    case "checkpoint": {
      const checkpoint = workload.record.checkpoints[version.checkpoints - 1];
      return isUnderFence(call, version) && checkpoint?.stateHash === args["stateHash"];
    }
    case "complete": {
      const { result } = workload.record;
      const resultId = args["resultId"] ?? ownResultIdOf(workload.record.attempts.at(-1)?.attemptId ?? "");
      return isUnderFence(call, version) && result?.resultId === resultId && result.outputHash === args["outputHash"];
    }
    case "fail": {
      const kind = firstEventOf(workload, version)?.evidence["failureKind"];
      return isUnderFence(call, version) && kind === args["kind"] && isAttemptOf(workload, version, args["error"]);
    }
    case "cancel":
    case "timeout":
    case "retry": {
      const event = firstEventOf(workload, version);
      return event?.actor === actorOf(args["actor"]) && isKeptFrom(event?.evidence["reason"], args["reason"]);
    }
    case "decide":
      return isDecisionOf(call, workload, version);
    case "expire":
    case "recover":
    case "exhaust":
    case "disown":
    case "none":
      return false;
  }
}

function isClaimOf({ call, args, kind, answer }: CallFact, { command, claim }: Version): boolean {
  if (command !== "claim" || claim === undefined || claim.workerId !== args["workerId"]) return false;
  if (kind !== "acknowledged") return true;
  return claimsIn(call, answer).some(
    ({ workloadId, fencingToken }) => workloadId === claim.workloadId && fencingToken === claim.fencingToken,
  );
}

function isRenewalOf({ args, answer }: CallFact, { claim, at }: Version): boolean {
  if (claim === undefined) return false;
  const answered = numberOf(fieldsOf(fieldsOf(answer)["claim"])["expiresAt"]);
  return answered === undefined ? claim.expiresAt - at === args["extendMs"] : claim.expiresAt === answered;
}

/** A claim as an answer names it. */
export interface AnsweredClaim {
  readonly workloadId: string;
  readonly claimId: string;
  readonly workerId: string;
  readonly fencingToken: number;
  readonly expiresAt: number;
}

/** The claims that an answer hands out. */
export function claimsIn(call: string, answer: unknown): readonly AnsweredClaim[] {
  const claims = call === "claimNext" ? itemsOf(answer) : call === "claim" ? [answer] : [];
  return claims.map(fieldsOf) as readonly unknown[] as readonly AnsweredClaim[];
}
