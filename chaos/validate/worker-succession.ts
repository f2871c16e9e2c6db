import { silentAtOf } from "../model/worker-record.ts";
import type { CallFact } from "./call-facts.ts";
import { checkSuperseded } from "./superseded-calls.ts";
import type { Facts } from "./facts.ts";
import type { WorkerFacts, WorkerVersion } from "./registry-facts.ts";
import { checkStopped } from "./stopped-claims.ts";
import type { Findings, Validator } from "./validator.ts";

/** Longest grace that workers are given after an outage, ms: as for leases (contract 5.5). */
const GRACE_MAX_MS = 30_000;

const name = ({ id }: WorkerFacts, { revision, action }: WorkerVersion): string =>
  `${id}, revision ${revision}, ${action}`;

/** What the record says of time must agree with the store's own stamp, or a node's clock ran ahead. */
function checkEarly(facts: Facts, worker: WorkerFacts, how: { version: WorkerVersion; findings: Findings }): void {
  const { version, findings } = how;
  const { dueAt, storedAt, record } = version;
  const { clockErrorMaxMs } = facts.parameters;
  const evidence = { revision: version.revision, storedAt, dueAt };
  if (dueAt !== undefined && dueAt - storedAt > clockErrorMaxMs)
    findings.violation(
      `${name(worker, version)}: given up ${dueAt - storedAt} ms before its time-out by the store's clock`,
      { evidence },
    );
  else if (record !== undefined && record.lastSeen - storedAt > clockErrorMaxMs)
    findings.violation(`${name(worker, version)}: heard ${record.lastSeen - storedAt} ms ahead of the store's clock`, {
      evidence,
    });
}

/** While faults last lateness is excused; after the last heal it is bounded. */
function checkLate(
  { end, parameters }: Facts,
  worker: WorkerFacts,
  how: { readonly version: WorkerVersion; readonly next: WorkerVersion | undefined; readonly findings: Findings },
): void {
  const { version, next, findings } = how;
  const { record, storedAt } = version;
  if (end === undefined || record === undefined || record.lifecycle === "OFFLINE") return;
  const dueAt = silentAtOf(record);
  const until = next?.storedAt ?? end.endedAt;
  if (dueAt > until) return;
  findings.count();
  const lateMs = until - Math.max(dueAt, storedAt, end.healedAt);
  if (lateMs <= parameters.lateMaxMs + Math.min(record.heartbeatTimeoutMs, GRACE_MAX_MS)) return;
  findings.violation(
    `${name(worker, version)}: silent since ${record.lastSeen}, and not given up ${Math.round(lateMs)} ms after it was due`,
    { evidence: { revision: version.revision, lifecycle: record.lifecycle } },
  );
}

/** Whether somebody was told that a worker is registered. */
const isRegistration = ({ call, kind }: CallFact): boolean => call === "registerWorker" && kind === "acknowledged";

export const workerSuccession: Validator = {
  validator: "worker-succession",
  guarantee: "a worker's record follows the rules from version to version, and superseded processes change nothing",
  expectsFacts: (facts) => facts.calls.some(isRegistration),
  validate: (facts, findings) => {
    for (const worker of facts.registry.workers.values())
      for (const [index, version] of worker.versions.entries()) {
        findings.count();
        for (const breach of version.breaches)
          findings.violation(`${name(worker, version)}: ${breach}`, {
            evidence: { before: worker.versions[index - 1]?.record, after: version.record },
          });
        checkEarly(facts, worker, { version, findings });
        checkLate(facts, worker, { version, next: worker.versions[index + 1], findings });
      }
    checkSuperseded(facts, findings);
    checkStopped(facts, findings);
  },
};
