import type { PoolRecord, WorkerRecord } from "../../src/core/worker/record.ts";
import { shownLifecycleOf } from "../model/worker-record.ts";
import type { CallFact } from "./call-facts.ts";
import type { Facts } from "./facts.ts";
import { isEndedBy } from "./grant-facts.ts";
import { fieldsOf, itemsOf, numberOf, textOf, type Fields } from "./fields.ts";
import type { KnownRevisions } from "./known-revisions.ts";
import { holdsAt, type Committed, type SlotVersion } from "./registry-facts.ts";

/** How far a worker's clock may be behind what was last heard from it, ms (contract 2.2). */
const CLOCK_TOLERANCE_MS = 5000;

/** A worker or a pool as it was at one moment of a call; without a record it was not there. */
interface Moment<Owner> {
  readonly record: Owner | undefined;
  /** How many of its slots were held then. */
  readonly active: number;
}

/** One refusal, and the moments of which one was that of its decision. */
interface Refused {
  readonly call: CallFact;
  readonly worker: readonly Moment<WorkerRecord>[];
  /** Of the pool that the refusal is about. */
  readonly pool: readonly Moment<PoolRecord>[];
  /** Whether a grant was revoked, before the call ended, that a worker was registered under, or one that it stems from. */
  readonly isWithdrawn: (worker: WorkerRecord) => boolean;
}

type Truth = (refused: Refused) => boolean;

const ofWorker =
  (holds: (worker: WorkerRecord, active: number, call: CallFact) => boolean): Truth =>
  ({ worker, call }) =>
    worker.some(({ record, active }) => record !== undefined && holds(record, active, call));

const differs: Truth = ofWorker(
  ({ version, capabilityVersion }, _active, { args }) =>
    version !== args["version"] || capabilityVersion !== args["capabilityVersion"],
);

const reasonOf = ({ details }: CallFact): Fields => fieldsOf(details?.["ineligible"]);

/** Why a worker may not run a workload, as the refusal says: it must have been so at some moment. */
function isIneligible({ call, worker, pool, isWithdrawn }: Refused): boolean {
  const told = reasonOf(call);
  const some = (holds: (record: WorkerRecord, active: number) => boolean): boolean =>
    worker.some(({ record, active }) => record !== undefined && holds(record, active));
  const somePool = (holds: (record: PoolRecord, active: number) => boolean): boolean =>
    pool.some(({ record, active }) => record !== undefined && holds(record, active));
  const missing = itemsOf(told["missing"]).map(String);
  switch (told["reason"]) {
    case "lifecycle":
      return some(({ lifecycle }) => lifecycle === told["lifecycle"]);
    case "health":
      return some(({ health }) => health === told["health"]);
    case "capacity":
      return some(({ concurrency }, active) => active >= concurrency);
    case "capabilities":
    case "pool_capabilities":
      return some(
        (record) => isWithdrawn(record) || missing.some((name) => !record.grantedCapabilities.includes(name)),
      );
    case "pool_unknown":
      return pool.some(({ record }) => record === undefined);
    case "pool_member":
      return somePool(({ workerIds }) => !workerIds.includes(textOf(call.args["workerId"]) ?? ""));
    case "pool_capacity":
      return somePool(({ maxConcurrency = 0 }, active) => active >= maxConcurrency);
    default:
      // Kinds and labels never change in a run.
      return true;
  }
}

/** What must have been true of the worker or the pool for a refusal to be right. */
const truths: { readonly [code: string]: Truth } = {
  WORKER_NOT_FOUND: ({ worker, call }) =>
    call.call === "createPool" || call.call === "changePool" || worker.some(({ record }) => record === undefined),
  WORKER_SUPERSEDED: ofWorker(({ incarnation }, _active, { args }) => incarnation.id !== args["incarnation"]),
  WORKER_HEARTBEAT_REJECTED: differs,
  WORKER_RECONCILIATION_DENIED: differs,
  WORKER_CLOCK_INVALID: ofWorker(
    ({ lastSeen }, _active, { args }) => (numberOf(args["timestamp"]) ?? 0) + CLOCK_TOLERANCE_MS < lastSeen,
  ),
  WORKER_RECOVERY_REQUIRED: ofWorker(({ lifecycle }) => lifecycle === "OFFLINE"),
  WORKER_BUSY: ofWorker((_record, active) => active > 0),
  WORKER_TRANSITION_DENIED: ofWorker((record, active, { call }) => {
    const shown = shownLifecycleOf(record, active);
    if (call === "recoverWorker") return shown !== "OFFLINE" && shown !== "RECOVERING";
    return shown !== "READY" && shown !== "BUSY" && record.lifecycle !== "DRAINING";
  }),
  WORKER_POOL_EXISTS: ({ pool }) => pool.some(({ record }) => record !== undefined),
  WORKER_POOL_NOT_FOUND: ({ pool }) => pool.some(({ record }) => record === undefined),
  MESH_PLACEMENT_DENIED: isIneligible,
};

interface Owner<Version> {
  readonly versions: readonly Version[];
  readonly slots: readonly SlotVersion[];
}

/**
 * The moments of which one was that of a call's decision: from what an answer had shown before the call began, to what was
 * stamped before it ended.
 */
function momentsOf<Record>(
  owner: Owner<Committed & { readonly record?: Record }> | undefined,
  call: CallFact,
  how: { readonly known: KnownRevisions; readonly clockErrorMs: number },
): readonly Moment<Record>[] {
  const all = [...(owner?.versions ?? []), ...(owner?.slots ?? [])];
  const latest = call.endedAt + how.clockErrorMs;
  const before = how.known.before(all[0]?.shard ?? 0, call.startedAt);
  const revisions = all
    .filter(({ revision, storedAt }) => revision > before && storedAt <= latest)
    .map(({ revision }) => revision);
  return [before, ...revisions].map((revision) => ({
    record: owner?.versions.findLast((version) => version.revision <= revision)?.record,
    active: holdsAt(owner?.slots ?? [], revision).size,
  }));
}

/** Whether a code speaks of workers or pools. */
export const isRegistryCode = (code: string | undefined): boolean => truths[code ?? ""] !== undefined;

/** Whether a refusal that speaks of workers or pools was so at some moment of its call. */
export function wasTrue(
  call: CallFact,
  facts: Facts,
  how: { readonly known: KnownRevisions; readonly clockErrorMs: number },
): boolean {
  const { workers, pools } = facts.registry;
  const placement = facts.workloads.get(call.workloadId ?? "")?.record.placement;
  const poolId =
    textOf(reasonOf(call)["poolId"]) ??
    textOf(call.args["poolId"]) ??
    textOf(call.details?.["poolId"]) ??
    placement?.poolId;
  return (
    truths[call.code ?? ""]?.({
      call,
      worker: momentsOf(workers.get(textOf(call.args["workerId"]) ?? ""), call, how),
      pool: momentsOf(pools.get(poolId ?? ""), call, how),
      isWithdrawn: ({ applicationId, grants = [], tenantId }) =>
        grants.some(({ grantId, subject }) =>
          facts.grants.ended.some(
            (ended) =>
              ended.storedAt <= call.endedAt + how.clockErrorMs &&
              isEndedBy(ended, { tenantId, applicationId, grantId, subject: `${subject.kind}:${subject.id}` }),
          ),
        ),
    }) ?? true
  );
}
