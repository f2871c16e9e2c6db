import { same } from "../model/same.ts";
import type { CallFact } from "./call-facts.ts";
import type { Facts } from "./facts.ts";
import { fieldsOf, numberOf, textOf, type Fields } from "./fields.ts";

/** What acknowledged calls about workers and pools say, against what is committed. */

/** Of a worker that was shown, what is in its record; what its slots tell is derived. */
function recordOf(shown: Fields): Fields {
  const { capacity, lifecycle: _shown, claims: _derived, ...record } = shown;
  return { ...record, concurrency: fieldsOf(capacity)["concurrency"] };
}

function findUnknownWorker(shown: unknown, facts: Facts): string | undefined {
  const worker = recordOf(fieldsOf(shown));
  const workerId = textOf(worker["workerId"]) ?? "";
  const known = facts.registry.workers.get(workerId)?.versions ?? [];
  const right = known.some(({ record }) => {
    if (record === undefined) return false;
    const { grants: _known, lifecycle: _committed, superseded: _remembered, ...committed } = record;
    return same(committed, worker);
  });
  if (right) return undefined;
  const number = numberOf(fieldsOf(worker["incarnation"])["number"]);
  return `no committed version of ${workerId} is like that: incarnation ${number}, seen at ${numberOf(worker["lastSeen"])}`;
}

function findUnknownPool(shown: unknown, facts: Facts): string | undefined {
  const poolId = textOf(fieldsOf(shown)["poolId"]) ?? "";
  const known = facts.registry.pools.get(poolId)?.versions ?? [];
  return known.some(({ record }) => same(record, shown)) ? undefined : `no committed version of ${poolId} is like that`;
}

const findMissingRemoval = (workerId: unknown, facts: Facts): string | undefined =>
  facts.registry.workers.get(textOf(workerId) ?? "")?.versions.some(({ record }) => record === undefined) === true
    ? undefined
    : "its removal is not committed";

/** Says what of an answer about the registry is not in the store; nothing when all of it is. */
export const registryChecks: { readonly [call: string]: (call: CallFact, facts: Facts) => string | undefined } = {
  registerWorker: ({ answer }, facts) => findUnknownWorker(fieldsOf(answer)["worker"], facts),
  heartbeatWorker: ({ answer }, facts) => findUnknownWorker(fieldsOf(answer)["worker"], facts),
  reconcileWorker: ({ answer }, facts) => findUnknownWorker(fieldsOf(answer)["worker"], facts),
  getWorker: ({ answer }, facts) => findUnknownWorker(answer, facts),
  drainWorker: ({ answer }, facts) => findUnknownWorker(answer, facts),
  recoverWorker: ({ answer }, facts) => findUnknownWorker(answer, facts),
  removeWorker: ({ answer, args }, facts) =>
    findUnknownWorker(answer, facts) ?? findMissingRemoval(args["workerId"], facts),
  createPool: ({ answer }, facts) => findUnknownPool(answer, facts),
  changePool: ({ answer }, facts) => findUnknownPool(answer, facts),
  deletePool: ({ answer, args }, facts) => {
    const versions = facts.registry.pools.get(textOf(args["poolId"]) ?? "")?.versions ?? [];
    const gone = versions.some(({ record }) => record === undefined);
    return findUnknownPool(answer, facts) ?? (gone ? undefined : "its removal is not committed");
  },
};

/** A registration that was refused as definite, and of which nobody else may have made the process that is there. */
export function findRefusedRegistration(call: CallFact, facts: Facts): number | undefined {
  const { incarnation, workerId } = call.args;
  if (call.call !== "registerWorker" || call.kind !== "refused" || incarnation === undefined) return undefined;
  const made = facts.registry.workers
    .get(textOf(workerId) ?? "")
    ?.versions.find(({ record }) => record?.incarnation.id === incarnation);
  if (made === undefined) return undefined;
  const others = facts.calls.some(
    (other) =>
      other.call === "registerWorker" &&
      other.kind !== "refused" &&
      other.args["workerId"] === workerId &&
      other.args["incarnation"] === incarnation,
  );
  return others ? undefined : made.revision;
}
