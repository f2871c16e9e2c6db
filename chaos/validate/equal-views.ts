import type { ShownWorker, ViewLine } from "../history.ts";
import { shownLifecycleOf } from "../model/worker-record.ts";
import type { Facts } from "./facts.ts";
import { holdsAt, type WorkerFacts } from "./registry-facts.ts";
import type { Findings, Validator } from "./validator.ts";

/** A worker as it is committed in the end; nothing when it was removed. */
function committedOf({ versions, slots }: WorkerFacts): ShownWorker | undefined {
  const record = versions.at(-1)?.record;
  if (record === undefined) return undefined;
  const holds = holdsAt(slots, Number.POSITIVE_INFINITY);
  return {
    lifecycle: shownLifecycleOf(record, holds.size),
    concurrency: record.concurrency,
    claims: [...holds.values()].map(({ claimId }) => claimId).sort(),
    incarnation: record.incarnation.number,
  };
}

const inWords = (worker: ShownWorker | undefined): string =>
  worker === undefined
    ? "not at all"
    : `${worker.lifecycle}, incarnation ${worker.incarnation}, ${worker.claims.length} of ${worker.concurrency} claims (${worker.claims.join(" ")})`;

/** The workers that a node shows are those that are committed. */
function checkWorkers(
  { registry, parameters }: Facts,
  view: Required<Pick<ViewLine, "node" | "at" | "workers">>,
  findings: Findings,
): void {
  for (const worker of registry.workers.values()) {
    const changedAt = Math.max(worker.versions.at(-1)?.storedAt ?? 0, worker.slots.at(-1)?.storedAt ?? 0);
    // What was replaced only just before may still be shown, and what came afterwards can't be.
    if (changedAt >= view.at - parameters.viewAgeMaxMs) continue;
    findings.count();
    const found = view.workers[worker.id];
    const shown = inWords(found === undefined ? undefined : { ...found, claims: found.claims.toSorted() });
    const committed = inWords(committedOf(worker));
    if (shown !== committed) findings.violation(`${view.node} shows ${worker.id} as ${shown}; it is ${committed}`);
  }
  for (const workerId of Object.keys(view.workers))
    if (!registry.workers.has(workerId))
      findings.violation(`${view.node} shows ${workerId}; the store does not hold it`);
}

export const equalViews: Validator = {
  validator: "equal-views",
  guarantee: "in the end every node shows what the store holds",
  expectsFacts: (facts) => facts.workloads.size > 0,
  validate: (facts, findings) => {
    const { viewAgeMaxMs } = facts.parameters;
    for (const { node, at, workloads, workers } of facts.views) {
      for (const { workloadId, versions } of facts.workloads.values()) {
        findings.count();
        // What was replaced only just before may still be shown, and what came afterwards can't be.
        const current = versions.filter(
          ({ storedAt }, index) =>
            storedAt <= at + viewAgeMaxMs && (versions[index + 1]?.storedAt ?? at) >= at - viewAgeMaxMs,
        );
        const shown = workloads[workloadId];
        const right =
          shown === undefined
            ? (versions[0]?.storedAt ?? 0) >= at - viewAgeMaxMs
            : current.some(({ state, events }) => state === shown.state && events === shown.events);
        if (right) continue;
        const last = versions.at(-1);
        const what = shown === undefined ? "not at all" : `${shown.state} with ${shown.events} events`;
        findings.violation(`${node} shows it ${what}; it is ${last?.state} with ${last?.events} events`, {
          workloadId,
        });
      }
      for (const workloadId of Object.keys(workloads))
        if (!facts.workloads.has(workloadId))
          findings.violation(`${node} shows it; the store does not hold it`, { workloadId });
      if (workers !== undefined) checkWorkers(facts, { node, at, workers }, findings);
    }
  },
};
