import { errorRegistry, isErrorCode } from "../../src/core/errors.ts";
import type { CallFact } from "./call-facts.ts";
import { claimsIn } from "./effects.ts";
import { versionsOf, type Facts } from "./facts.ts";
import { fieldsOf } from "./fields.ts";
import type { Findings, Validator } from "./validator.ts";

/** The calls that repeat each other. Numbers that a worker counts anew for each claim are told apart by the claim. */
function groupsOf(facts: Facts): readonly (readonly CallFact[])[] {
  const groups = new Map<string, CallFact[]>();
  for (const call of facts.calls) {
    if (call.requestId === undefined) continue;
    const { claimId, workerId } = call.args;
    const key = JSON.stringify([call.caller, call.call, workerId, claimId, call.requestId]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [call]);
    else known.push(call);
  }
  return [...groups.values()].filter((group) => group.length > 1);
}

/** What must be the same in the answers to one request. Undefined: nothing, as for an empty hand. */
function essenceOf({ call, answer }: CallFact): string | undefined {
  const fields = fieldsOf(answer);
  switch (call) {
    case "admit":
      return JSON.stringify(fieldsOf(fields["workload"])["workloadId"]);
    case "claim":
    case "start":
      return JSON.stringify([fields["claimId"], fields["fencingToken"]]);
    case "heartbeat":
      return JSON.stringify(fieldsOf(fields["claim"])["claimId"]);
    case "checkpoint":
      return JSON.stringify([fields["checkpointId"], fields["stateHash"]]);
    case "complete":
      return JSON.stringify([fields["resultId"], fields["outputHash"], fields["provenance"]]);
    case "decide": {
      const { outcome, decidedBy, decidedAt } = fieldsOf(fields["decision"]);
      return JSON.stringify([outcome, decidedBy, decidedAt]);
    }
    case "fail":
    case "confirmCancel":
    case "cancel":
    case "timeout":
    case "retry":
      return JSON.stringify(fields["state"]);
    default:
      return undefined;
  }
}

const quorumOf = (facts: Facts, workloadId = ""): number =>
  facts.workloads.get(workloadId)?.record.approval?.policy.requiredApprovals ?? 1;

/** A refusal that says nothing about the request, only that now is not the time. */
const isForNow = ({ code }: CallFact): boolean => isErrorCode(code) && errorRegistry[code].retry;

/** Claims that no longer stand are missing from a later answer; none may be new. */
function haveDifferentHands(group: readonly CallFact[]): boolean {
  const hands = group
    .map(({ call, answer }) => claimsIn(call, answer).map(({ claimId }) => claimId))
    .filter((hand) => hand.length > 0);
  const largest = hands.reduce<readonly string[]>((most, hand) => (hand.length > most.length ? hand : most), []);
  return hands.some((hand) => hand.some((claimId) => !largest.includes(claimId)));
}

function compareAnswers(group: readonly CallFact[], facts: Facts, findings: Findings): void {
  const acknowledged = group.filter(({ kind }) => kind === "acknowledged");
  const [first] = acknowledged;
  if (first === undefined) return;
  findings.count(acknowledged.length);
  const what = `${first.call} with requestId ${first.requestId}`;
  const where = { workloadId: first.workloadId ?? claimsIn(first.call, first.answer)[0]?.workloadId, evidence: group };
  // An approval towards a quorum is answered with the decision once there is one.
  if (first.call === "decide" && quorumOf(facts, first.workloadId) > 1) return;
  const essences = new Set(acknowledged.map(essenceOf));
  const differs = first.call === "claimNext" ? haveDifferentHands(acknowledged) : essences.size > 1;
  if (differs) findings.violation(`${what} was answered in different ways`, where);
  if (first.call !== "complete" && first.call !== "decide") return;
  const refused = group.find((call) => call.kind === "refused" && call.startedAt > first.endedAt && !isForNow(call));
  if (refused !== undefined)
    findings.violation(`${what} was acknowledged, and its repeat refused with ${refused.code}`, where);
}

/** An operation's id begins with a mark of its request: two operations of one mark are two effects of one request. */
function compareMarks(facts: Facts, findings: Findings): void {
  const operations = new Map<string, string>();
  for (const { operation, workloadId } of versionsOf(facts)) {
    const mark = operation.slice(0, operation.indexOf(":"));
    if (mark === "") continue;
    findings.count();
    const known = operations.get(mark);
    if (known === undefined) operations.set(mark, operation);
    else if (known !== operation)
      findings.violation(`one request has two effects: the operations ${known} and ${operation}`, { workloadId });
  }
}

export const repeatedRequests: Validator = {
  validator: "repeated-requests",
  guarantee: "a request that is repeated has one effect and one answer, whatever became of its first try",
  expectsFacts: (facts) => groupsOf(facts).some((group) => group.some(({ kind }) => kind === "acknowledged")),
  validate: (facts, findings) => {
    for (const group of groupsOf(facts)) compareAnswers(group, facts, findings);
    compareMarks(facts, findings);
  },
};
