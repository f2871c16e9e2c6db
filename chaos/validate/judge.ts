import type { HistoryLine, Verdict } from "../history.ts";
import { acknowledgedEffects } from "./acknowledged-effects.ts";
import { approvalBeforeWork } from "./approval-before-work.ts";
import { attemptBudget } from "./attempt-budget.ts";
import { Collector } from "./collect.ts";
import { completeHistory } from "./complete-history.ts";
import { equalViews } from "./equal-views.ts";
import { exclusiveWork } from "./exclusive-work.ts";
import type { Facts } from "./facts.ts";
import { fencedWrites } from "./fenced-writes.ts";
import { grantedClaims } from "./granted-claims.ts";
import { liveness } from "./liveness.ts";
import { noCrashes } from "./no-crashes.ts";
import { noLeftovers } from "./no-leftovers.ts";
import { oneClaim } from "./one-claim.ts";
import { oneCreation } from "./one-creation.ts";
import { oneDecision } from "./one-decision.ts";
import { oneResult } from "./one-result.ts";
import { readHistory } from "./read-history.ts";
import { realTimeOrder } from "./real-time-order.ts";
import { recordSuccession } from "./record-succession.ts";
import { refusedEffects } from "./refused-effects.ts";
import { repeatedRequests } from "./repeated-requests.ts";
import { slotCapacity } from "./slot-capacity.ts";
import { slotsFollowClaims } from "./slots-follow-claims.ts";
import { timelyPasses } from "./timely-passes.ts";
import { trueRefusals } from "./true-refusals.ts";
import { revokedMeansOver } from "./revoked-means-over.ts";
import { tenantsApart } from "./tenants-apart.ts";
import { Findings, type Validator } from "./validator.ts";
import { workerSuccession } from "./worker-succession.ts";

/** Every guarantee that a run is judged by, in the order of a report. */
export const validators: readonly Validator[] = [
  recordSuccession,
  completeHistory,
  acknowledgedEffects,
  refusedEffects,
  trueRefusals,
  repeatedRequests,
  realTimeOrder,
  oneCreation,
  oneClaim,
  fencedWrites,
  exclusiveWork,
  attemptBudget,
  oneResult,
  approvalBeforeWork,
  oneDecision,
  slotCapacity,
  slotsFollowClaims,
  grantedClaims,
  workerSuccession,
  revokedMeansOver,
  tenantsApart,
  timelyPasses,
  liveness,
  equalViews,
  noLeftovers,
  noCrashes,
];

/** Whether a validator that saw nothing is a reason to worry. A run of no length is a story, made for something else. */
const isMissed = ({ validator, expectsFacts }: Validator, facts: Facts): boolean =>
  facts.parameters.expects.includes(validator) || (facts.run.minutes > 0 && expectsFacts(facts));

/** Judges one guarantee. A validator that saw nothing where there should have been something has not passed. */
export function judgeOne(validator: Validator, facts: Facts): Verdict {
  const findings = new Findings();
  validator.validate(facts, findings);
  if (findings.checked === 0 && findings.violations.length === 0 && isMissed(validator, facts))
    findings.violation("nothing was checked, though the run should have given it facts: it proves nothing");
  return {
    guarantee: validator.guarantee,
    validator: validator.validator,
    checked: findings.checked,
    violations: findings.violations,
  };
}

/** Judges joined facts by every guarantee. */
export const judgeFacts = (facts: Facts): readonly Verdict[] =>
  validators.map((validator) => judgeOne(validator, facts));

/**
 * Judges a history line by line.
 *
 * @throws HistoryError when it does not even say how the run was made.
 */
export async function judgeLines(
  lines: AsyncIterable<HistoryLine> | Iterable<HistoryLine>,
): Promise<readonly Verdict[]> {
  const collector = new Collector();
  for await (const line of lines) collector.add(line);
  return judgeFacts(collector.facts());
}

/**
 * Judges the history of a run: `history.ndjson` in `directory`. One verdict a validator; no violation anywhere is the only
 * pass. The history is read once, a line at a time; only the last version of each record is kept whole.
 *
 * @throws HistoryError when the file is damaged.
 */
export const judge = (directory: string): Promise<readonly Verdict[]> => judgeLines(readHistory(directory));
