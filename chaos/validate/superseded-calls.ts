import type { CallFact } from "./call-facts.ts";
import type { Facts } from "./facts.ts";
import { fieldsOf, textOf } from "./fields.ts";
import { versionBefore, type WorkerFacts } from "./registry-facts.ts";
import type { Findings } from "./validator.ts";

/** Calls that a process makes under its own name. */
const own = new Set(
  "registerWorker heartbeatWorker drainWorker recoverWorker removeWorker reconcileWorker claim claimNext".split(" "),
);

/** Revisions at which a process got a worker's name: the first, and the last. Several: the worker was removed in between. */
interface Beginning {
  readonly first: number;
  readonly last: number;
}

function beginningsOf({ versions }: WorkerFacts): ReadonlyMap<string, Beginning> {
  const beginnings = new Map<string, Beginning>();
  let current: string | undefined;
  for (const { record, revision } of versions) {
    const id = record?.incarnation.id;
    if (id !== undefined && id !== current)
      beginnings.set(id, { first: beginnings.get(id)?.first ?? revision, last: revision });
    current = id;
  }
  return beginnings;
}

/** When somebody was first told that a process has a worker's name, and where it begins. */
interface Told {
  readonly at: number;
  readonly beginning: number;
}

const incarnationIn = (call: CallFact): string | undefined =>
  textOf(fieldsOf(fieldsOf(fieldsOf(call.answer)["worker"])["incarnation"])["id"]);

/** A poll that ended without work, for one that may have gone: nobody was given anything. */
const gaveNothing = ({ call, answer }: CallFact): boolean =>
  call === "claimNext" && Array.isArray(answer) && answer.length === 0;

/** A call that was made under a process's name after its successor had been answered must not be carried out. */
function checkLate(
  call: CallFact,
  told: readonly Told[],
  how: { readonly beginning: number; readonly findings: Findings },
): void {
  const later = told.find(({ at, beginning }) => at < call.startedAt && beginning > how.beginning);
  if (later === undefined || gaveNothing(call)) return;
  how.findings.violation(
    `${call.call} ${call.id} of a superseded process was acknowledged; its successor, of revision ${later.beginning}, had been`,
    { evidence: call },
  );
}

/** What a process claims it is given while it has the name: a poll that outlived it must get nothing. */
function checkClaims(facts: Facts, call: CallFact, how: { worker: WorkerFacts; findings: Findings }): void {
  const { incarnation } = call.args;
  for (const { revision, command, workloadId } of facts.effectsOf(call)) {
    if (command !== "claim") continue;
    const current = versionBefore(how.worker.versions, revision)?.record?.incarnation.id;
    if (current === undefined || current === incarnation) continue;
    how.findings.violation(
      `${call.call} ${call.id} of ${textOf(incarnation)} was given it when ${current} had the name`,
      {
        workloadId,
        evidence: call,
      },
    );
  }
}

/** Nothing is acknowledged to a process once its successor is registered. */
export function checkSuperseded(facts: Facts, findings: Findings): void {
  const calls = facts.calls.filter(
    ({ call, kind, args }) => kind === "acknowledged" && own.has(call) && args["incarnation"] !== undefined,
  );
  const beginnings = new Map([...facts.registry.workers].map(([id, worker]) => [id, beginningsOf(worker)]));
  const told = new Map<string, Told[]>();
  for (const call of calls) {
    const workerId = textOf(call.args["workerId"]) ?? "";
    const beginning = beginnings.get(workerId)?.get(incarnationIn(call) ?? "");
    if (call.call !== "registerWorker" || beginning === undefined) continue;
    const known = told.get(workerId) ?? [];
    told.set(workerId, [...known, { at: call.endedAt, beginning: beginning.first }]);
  }
  for (const call of calls) {
    const workerId = textOf(call.args["workerId"]) ?? "";
    const worker = facts.registry.workers.get(workerId);
    const beginning = beginnings.get(workerId)?.get(textOf(call.args["incarnation"]) ?? "");
    if (worker === undefined || beginning === undefined) continue;
    findings.count();
    checkLate(call, told.get(workerId) ?? [], { beginning: beginning.last, findings });
    checkClaims(facts, call, { worker, findings });
  }
}
