import { ownResultIdOf } from "../model/identities.ts";
import { rearmsOf } from "../model/retry.ts";
import { isCancelledAtOnce, isHeld, isRunning, mayFail, mayRearm, mayTimeOut } from "../model/states.ts";
import type { CallFact } from "./call-facts.ts";
import type { Facts, Version, WorkloadFacts } from "./facts.ts";
import { numberOf, textOf } from "./fields.ts";
import { KnownRevisions } from "./known-revisions.ts";
import { isRegistryCode, wasTrue } from "./registry-refusals.ts";
import type { Findings, Validator } from "./validator.ts";

/** One refusal, and the versions of which one was the current one when it was decided. */
interface Refused {
  readonly call: CallFact;
  readonly workload: WorkloadFacts;
  readonly versions: readonly Version[];
  readonly facts: Facts;
  /** The instants at which it may have been decided, by the store's clock. */
  readonly from: number;
  readonly until: number;
  readonly versionsOf: (workloadId: string) => readonly Version[] | undefined;
}

type Truth = (refused: Refused) => boolean;

const ofSome =
  (holds: (version: Version, refused: Refused) => boolean): Truth =>
  (refused) =>
    refused.versions.some((version) => holds(version, refused));

const isFenceOf = ({ args }: CallFact, { claim }: Version): boolean =>
  claim?.claimId === args["claimId"] &&
  claim?.workerId === args["workerId"] &&
  claim?.fencingToken === args["fencingToken"];

/** The states that a call is denied in. */
function isDenied({ call }: CallFact, { state }: Version): boolean {
  switch (call) {
    case "start":
      return state !== "CLAIMED";
    case "checkpoint":
    case "complete":
      return !isRunning(state);
    case "fail":
      return !mayFail(state);
    case "confirmCancel":
      return state !== "CANCELLATION_REQUESTED";
    case "cancel":
      return !isCancelledAtOnce(state) && !isHeld(state);
    case "timeout":
      return !mayTimeOut(state);
    case "retry":
      return !mayRearm(state);
    default:
      return true;
  }
}

const hasEvent =
  (to: string, evidence: (of: { readonly [name: string]: string }, refused: Refused) => boolean): Truth =>
  (refused) =>
    refused.workload.record.history.some((event) => event.to === to && evidence(event.evidence, refused));

const dependencyPending: Truth = ({ workload, versionsOf }) =>
  workload.record.dependencies.some(({ workloadId, requiredState }) => {
    const versions = versionsOf(workloadId);
    return versions === undefined || versions.some(({ state }) => state !== requiredState);
  });

/** The result that the call names is there; without a name it names its own attempt's. */
const hasResult: Truth = ({ workload: { record }, call: { args } }) => {
  const attempt = record.attempts.find(({ fencingToken }) => fencingToken === args["fencingToken"]);
  const resultId = textOf(args["resultId"]) ?? ownResultIdOf(attempt?.attemptId ?? "");
  return record.result?.resultId === resultId;
};

/** What must have been true of the workload for a refusal to be right. Codes that are not here speak of the request alone. */
const truths: { readonly [code: string]: Truth } = {
  WORKLOAD_NOT_READY: ofSome(({ state }) => !["READY", "AWAITING_APPROVAL", "REJECTED"].includes(state)),
  WORKLOAD_APPROVAL_PENDING: ofSome(
    ({ state, decided }, { workload }) => state === "AWAITING_APPROVAL" || (workload.gated && decided !== "approved"),
  ),
  WORKLOAD_REJECTED: ofSome(({ state }) => state === "REJECTED"),
  WORKLOAD_NOT_YET_ELIGIBLE: ofSome(({ nextAttemptAt = 0 }, { from }) => nextAttemptAt > from),
  WORKLOAD_DEPENDENCY_PENDING: dependencyPending,
  WORKLOAD_CLAIM_INVALID: ofSome(({ claim }, { call }) => claim === undefined || call.call === "claim"),
  WORKLOAD_STALE_FENCE: ofSome((version, { call }) => version.claim !== undefined && !isFenceOf(call, version)),
  WORKLOAD_LEASE_EXPIRED: ofSome(
    (version, { call, until }) => isFenceOf(call, version) && (version.claim?.expiresAt ?? until) <= until,
  ),
  WORKLOAD_TRANSITION_DENIED: ofSome((version, { call }) => isDenied(call, version)),
  WORKLOAD_TIMED_OUT: hasEvent("TIMED_OUT", ({ deadlineAt }, { call }) => {
    const told = call.details?.["deadlineAt"];
    return told === undefined || deadlineAt === String(numberOf(told));
  }),
  WORKLOAD_ATTEMPTS_EXHAUSTED: hasEvent("DEAD_LETTER", ({ reason }) => reason === "attempt_budget_exhausted"),
  WORKLOAD_APPROVAL_DECIDED: ofSome(({ decided }, { call }) => decided !== "no" && decided !== call.args["outcome"]),
  WORKLOAD_APPROVAL_NOT_ACTIONABLE: ofSome(({ state, decided }) => state !== "AWAITING_APPROVAL" && decided === "no"),
  WORKLOAD_APPROVAL_NOT_REQUIRED: ({ workload }) => !workload.gated,
  WORKLOAD_APPROVAL_STALE: ({ workload, call }) => workload.record.inputHash !== call.args["inputHash"],
  WORKLOAD_RETRY_EXHAUSTED: ({ workload }) => rearmsOf(workload.record) >= workload.record.retryPolicy.maxAttempts,
  WORKLOAD_RESULT_CONFLICT: hasResult,
  IDEMPOTENCY_KEY_REUSED: ({ workload, call }) => workload.digest !== call.args["digest"],
};

/**
 * The versions of which one was current at some moment of a call: from the last one that an answer had shown before the
 * call began, to the last that was stamped before it ended. Undefined: the workload may not have been there at all.
 */
function windowOf(
  workload: WorkloadFacts | undefined,
  call: CallFact,
  how: { readonly known: KnownRevisions; readonly clockErrorMs: number },
): { readonly versions: readonly Version[]; readonly maybeAbsent: boolean } {
  if (workload === undefined) return { versions: [], maybeAbsent: true };
  const before = how.known.before(workload.shard, call.startedAt);
  const first = workload.versions.findLastIndex(({ revision }) => revision <= before);
  const latest = call.endedAt + how.clockErrorMs;
  const versions = workload.versions.slice(Math.max(first, 0)).filter(({ storedAt }) => storedAt <= latest);
  return { versions, maybeAbsent: first < 0 };
}

/** The workload that a call is about; for who is of another tenant there is none. */
function shownTo({ workloadId, bearer }: CallFact, facts: Facts): WorkloadFacts | undefined {
  const workload = facts.workloads.get(workloadId ?? "");
  return bearer === undefined || workload?.record.tenantId === bearer.tenantId ? workload : undefined;
}

/** What is said of workers and pools. */
function checkRegistry(
  facts: Facts,
  call: CallFact,
  how: { readonly known: KnownRevisions; readonly findings: Findings },
): void {
  how.findings.count();
  if (wasTrue(call, facts, { known: how.known, clockErrorMs: facts.parameters.clockErrorMaxMs })) return;
  how.findings.violation(
    `${call.call} ${call.id} was refused with ${call.code}, which was not so at any moment of the call`,
    { workloadId: call.workloadId, evidence: call },
  );
}

/** A stale refusal is the quiet failure: nothing is written, and yet a caller was told what was no longer so. */
export const trueRefusals: Validator = {
  validator: "true-refusals",
  guarantee: "every refusal was true at some moment of its call",
  expectsFacts: (facts) =>
    facts.calls.some(
      ({ kind, code, workloadId }) =>
        kind === "refused" && workloadId !== undefined && truths[code ?? ""] !== undefined,
    ),
  validate: (facts, findings) => {
    const known = new KnownRevisions(facts);
    const clockErrorMs = facts.parameters.clockErrorMaxMs;
    for (const call of facts.calls) {
      if (call.kind === "refused" && isRegistryCode(call.code)) checkRegistry(facts, call, { known, findings });
      if (call.kind !== "refused" || call.workloadId === undefined) continue;
      const workload = shownTo(call, facts);
      const { versions, maybeAbsent } = windowOf(workload, call, { known, clockErrorMs });
      const truth = truths[call.code ?? ""];
      if (call.code !== "WORKLOAD_NOT_FOUND" && truth === undefined) continue;
      findings.count();
      const versionsOf = (workloadId: string): readonly Version[] | undefined => {
        const window = windowOf(facts.workloads.get(workloadId), call, { known, clockErrorMs });
        return window.maybeAbsent ? undefined : window.versions;
      };
      const from = call.startedAt - clockErrorMs;
      const until = call.endedAt + clockErrorMs;
      const right =
        truth === undefined
          ? maybeAbsent
          : workload !== undefined && truth({ call, workload, versions, facts, from, until, versionsOf });
      if (right) continue;
      findings.violation(
        `${call.call} ${call.id} was refused with ${call.code}, which was not so at any moment of the call`,
        {
          workloadId: call.workloadId,
          evidence: { call, versions: versions.map(({ revision, state }) => ({ revision, state })) },
        },
      );
    }
  },
};
