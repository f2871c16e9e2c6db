import type { CallFact } from "./call-facts.ts";
import type { Facts } from "./facts.ts";
import { fieldsOf, textOf } from "./fields.ts";
import { isEndedBy, targetText, type Ended, type Holding } from "./grant-facts.ts";
import type { Findings, Validator } from "./validator.ts";

/** How old a node's view may be while it answers (contract 4.2, 5.5), ms. */
const FRESHNESS_MS = 3_000;

/** Revocations by what they end, so that not everything is compared with everything. */
class EndedIndex {
  readonly #byName = new Map<string, Ended[]>();
  readonly #wide: Ended[] = [];

  constructor(ended: readonly Ended[]) {
    for (const one of ended) {
      const { target } = one.revocation;
      if (target.kind === "grant") this.#add(target.grantId, one);
      else if (target.kind === "subject") this.#add(`${target.subject.kind}:${target.subject.id}`, one);
      else this.#wide.push(one);
    }
  }

  /** Those that end a grant. */
  of(holding: Holding): readonly Ended[] {
    const near = [holding.grantId, holding.subject].flatMap((name) => this.#byName.get(name) ?? []);
    return [...near, ...this.#wide].filter((one) => isEndedBy(one, holding));
  }

  #add(name: string, one: Ended): void {
    const known = this.#byName.get(name);
    if (known === undefined) this.#byName.set(name, [one]);
    else known.push(one);
  }
}

/** For how long of a time anything was paused, cut off or held up, ms: what was under way then may arrive that much later. */
function heldUpMs({ faults }: Facts, from: number, until: number): number {
  let sum = 0;
  let reached = from;
  const holding = faults.filter(({ target }) => target !== "keys");
  for (const fault of holding.toSorted((left, right) => left.from - right.from)) {
    const begin = Math.max(fault.from, reached);
    const end = Math.min(fault.until, until);
    if (end <= begin) continue;
    sum += end - begin;
    reached = end;
  }
  return sum;
}

/** What was committed after a revocation by more than a call under way may take. */
function checkCommits(facts: Facts, index: EndedIndex, findings: Findings): void {
  const boundMs = facts.parameters.commitDeadlineMs + FRESHNESS_MS;
  const late = (ended: Ended, storedAt: number): boolean =>
    storedAt > ended.storedAt + boundMs &&
    storedAt > ended.storedAt + boundMs + heldUpMs(facts, ended.storedAt, storedAt);
  for (const commit of facts.grants.commits)
    for (const ended of index.of(commit)) {
      findings.count();
      if (!late(ended, commit.storedAt)) continue;
      const after = Math.round(commit.storedAt - ended.storedAt);
      findings.violation(
        `revision ${commit.revision} was committed by ${commit.subject} ${after} ms after revision ${ended.revision} had ended its grant`,
        { evidence: { commit, revocation: ended } },
      );
    }
  for (const { workloadId, record, versions } of facts.workloads.values()) {
    if (record.reauthorize === "never") continue;
    const { grantId, subject, tenantId, applicationId } = record.authorization;
    const holding = { grantId, subject: `${subject.kind}:${subject.id}`, tenantId, applicationId };
    for (const ended of index.of(holding)) {
      findings.count();
      const claimed = versions.find(({ command, storedAt }) => command === "claim" && late(ended, storedAt));
      if (claimed === undefined) continue;
      findings.violation(
        `revision ${claimed.revision} claimed it, though revision ${ended.revision} had ended the grant that it was admitted under`,
        { workloadId, evidence: { revocation: ended } },
      );
    }
  }
}

const isOf = ({ args, bearer }: CallFact, { revocation }: Ended): boolean =>
  bearer?.tenantId === revocation.tenantId &&
  (bearer.applicationId === revocation.applicationId || revocation.target.kind === "tenant") &&
  targetText(fieldsOf(args["target"])) === targetText(fieldsOf(revocation.target));

/** When it was first said that a revocation stands; never, when nobody was told. */
const acknowledgedAt = (revokers: readonly CallFact[], ended: Ended): number =>
  Math.min(...revokers.filter((call) => isOf(call, ended)).map(({ endedAt }) => endedAt), Number.POSITIVE_INFINITY);

/** What was carried out though it was asked for when every node knew, or knew that it did not know. */
function checkCalls(facts: Facts, index: EndedIndex, findings: Findings): void {
  const revokers = facts.calls.filter(({ call, kind }) => call === "revoke" && kind === "acknowledged");
  const known = new Map(facts.grants.ended.map((ended) => [ended, acknowledgedAt(revokers, ended)]));
  for (const call of facts.calls) {
    if (call.bearer === undefined) continue;
    for (const ended of index.of(call.bearer)) {
      findings.count();
      const lateMs = call.startedAt - (known.get(ended) ?? Number.POSITIVE_INFINITY);
      if (call.kind !== "acknowledged" || lateMs <= FRESHNESS_MS || call.call === "metrics") continue;
      findings.violation(
        `${call.call} ${call.id} of ${textOf(call.bearer.subject)} was carried out, asked for ${Math.round(lateMs)} ms after its grant had ended`,
        { workloadId: call.workloadId, evidence: call },
      );
    }
  }
}

export const revokedMeansOver: Validator = {
  validator: "revoked-means-over",
  guarantee: "whoever's grant was revoked is given and changes nothing any more, but for what was under way",
  expectsFacts: ({ grants }) => grants.ended.length > 0,
  validate: (facts, findings) => {
    const index = new EndedIndex(facts.grants.ended);
    checkCommits(facts, index, findings);
    checkCalls(facts, index, findings);
  },
};
