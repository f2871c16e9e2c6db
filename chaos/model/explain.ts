import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import { examineAdmission } from "./admission.ts";
import { examineCancel, examineDecide, examineOperatorTimeout, examineRetry } from "./operator-steps.ts";
import {
  examineDisown,
  examineExhaust,
  examineExpire,
  examineRecover,
  LEASE_ENDED_ERROR,
  SUPERSEDED_ERROR,
} from "./pass-steps.ts";
import { beginsWith, differingMembers } from "./same.ts";
import { Examination, examineEvents, type Command, type Rule, type Step, type World } from "./step.ts";
import {
  examineCheckpoint,
  examineClaim,
  examineComplete,
  examineConfirmCancel,
  examineFail,
  examineHeartbeat,
  examineStart,
} from "./worker-steps.ts";

/**
 * The model: one commit is explained as one command of the contract. The command is guessed from what came; then the
 * rules say what the record must look like after it, and everything that differs is a breach.
 */

type Found = Pick<Step, "at" | "dueAt" | "lateByMs">;

const examine: { readonly [Name in Exclude<Command, "admit" | "none">]: (examination: Examination) => Found } = {
  claim: examineClaim,
  start: examineStart,
  heartbeat: examineHeartbeat,
  checkpoint: examineCheckpoint,
  complete: examineComplete,
  fail: examineFail,
  confirmCancel: examineConfirmCancel,
  cancel: examineCancel,
  timeout: examineOperatorTimeout,
  retry: examineRetry,
  decide: examineDecide,
  expire: examineExpire,
  recover: examineRecover,
  exhaust: examineExhaust,
  disown: examineDisown,
};

/** Which command makes no event: told by what grew. */
function silentCommandOf({ before, after }: Examination): Command {
  if (after.checkpoints.length > before.checkpoints.length) return "checkpoint";
  if ((after.approval?.given ?? []).length > (before.approval?.given ?? []).length) return "decide";
  // A renewal within the same millisecond, for as long as before, changes nothing.
  const { currentClaim: held } = before;
  return held !== undefined && held.claimId === after.currentClaim?.claimId ? "heartbeat" : "none";
}

function commandOf(examination: Examination): Command {
  const { events } = examination;
  const { state: from } = examination.before;
  const first = events[0];
  if (first === undefined) return silentCommandOf(examination);
  switch (first.to) {
    case "CLAIMED":
      return "claim";
    case "RUNNING":
      return "start";
    case "CHECKPOINTED":
      return "checkpoint";
    case "SUCCEEDED":
      return "complete";
    case "FAILED":
      return "fail";
    case "RECOVERING":
      return "recover";
    case "CANCELLATION_REQUESTED":
      return "cancel";
    case "CANCELLED":
      if (from !== "CANCELLATION_REQUESTED") return "cancel";
      return first.actor === "authority.recovery" ? "recover" : "confirmCancel";
    case "TIMED_OUT":
      return first.actor === "authority.deadline" ? "expire" : "timeout";
    case "DEAD_LETTER":
      if (from !== "READY") return "none";
      return first.evidence["decision"] === "authorization_lost" ? "disown" : "exhaust";
    case "REJECTED":
      return "decide";
    case "READY":
    case "AWAITING_APPROVAL":
      return from === "AWAITING_APPROVAL" ? "decide" : "retry";
    case "CREATED":
    default:
      // A damaged record may name a state that there is not.
      return "none";
  }
}

/** Fields whose unexpected change has a guarantee of its own. */
const ruleOfField: { readonly [field: string]: Rule } = {
  currentClaim: "tokens",
  fencingToken: "tokens",
  attemptCount: "tokens",
  approval: "decision",
  result: "result",
};

/** Compared by `examineEvents`, or free within the contract. */
const elsewhere = new Set(["history", "state", "updatedAt"]);

const textOf = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "absent";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
};

function compare(examination: Examination, command: Command): void {
  const { before, after } = examination;
  const expected = examination.expected();
  for (const field of differingMembers(expected, after)) {
    if (elsewhere.has(field)) continue;
    if (field === "lastFailure" && isOwnFailure(command, after)) continue;
    const name = field as keyof WorkloadRecord;
    const what = `${field} is ${textOf(after[name])} after ${command}, not ${textOf(expected[name])}`;
    examination.breach(ruleOfField[field] ?? "succession", what);
  }
  examination.require(beginsWith(after.history, before.history), "succession", "the history was rewritten");
}

/** Expiry, time-out and recovery may say what happened in `lastFailure`; the contract does not ask for it. */
function isOwnFailure(command: Command, { lastFailure = "" }: WorkloadRecord): boolean {
  if (command === "recover") return [LEASE_ENDED_ERROR, SUPERSEDED_ERROR].includes(lastFailure);
  return (command === "expire" || command === "timeout") && lastFailure.startsWith("timeout: ");
}

/** Explains one commit: from nothing, or from the version before. */
export function explainCommit(before: WorkloadRecord | undefined, after: WorkloadRecord, world: World): Step {
  if (before === undefined) return { command: "admit", at: after.createdAt, breaches: examineAdmission(after) };
  const examination = new Examination(before, after, world);
  const command = commandOf(examination);
  examineEvents(examination);
  if (command === "none" || command === "admit") {
    examination.breach("succession", "no command of the rules makes this commit");
    return { command: "none", at: examination.at, breaches: examination.breaches };
  }
  const found = examine[command](examination);
  compare(examination, command);
  const updatedAt = Math.max(before.updatedAt, found.at);
  examination.require(after.updatedAt === updatedAt, "succession", `updatedAt is ${after.updatedAt}, not ${updatedAt}`);
  return { command, ...found, breaches: examination.breaches };
}
