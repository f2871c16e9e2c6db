import { sortedSet } from "../../base/text-order.ts";
import { refuse, type Refusal } from "../errors.ts";
import { sameValue } from "../workload/same-value.ts";
import { refuseIssues, type Issue, type PoolDecision } from "./decision.ts";
import { poolIdOf } from "./identity.ts";
import { CONCURRENCY_MAX, type Labels, type PoolRecord, type WorkerRecord } from "./record.ts";

/** A request to create a pool (contract 2.2), its shape already checked. */
export interface CreatePoolRequest {
  readonly tenantId: string;
  /** Absent: the pool takes workers of any of the tenant's applications, and can't have a limit. */
  readonly applicationId?: string | undefined;
  readonly name: string;
  readonly capabilities?: readonly string[] | undefined;
  readonly requiredLabels?: Labels | undefined;
  readonly workerIds?: readonly string[] | undefined;
  readonly maxConcurrency?: number | undefined;
}

/** Workers to put into a pool, or to take out. */
export interface PoolMembersCommand {
  readonly add?: readonly string[] | undefined;
  readonly remove?: readonly string[] | undefined;
}

/** The workers that a command names, as far as they exist, by id. */
export type KnownWorkers = ReadonlyMap<string, Pick<WorkerRecord, "tenantId" | "applicationId">>;

function findBadPool(request: CreatePoolRequest): Refusal | undefined {
  const { applicationId, name, maxConcurrency } = request;
  const issues: Issue[] = [];
  if (name.trim() === "") issues.push({ path: "name", message: "must not be blank" });
  if (maxConcurrency !== undefined) {
    if (!Number.isSafeInteger(maxConcurrency) || maxConcurrency < 1 || maxConcurrency > CONCURRENCY_MAX)
      issues.push({ path: "maxConcurrency", message: `must be a whole number from 1 to ${CONCURRENCY_MAX}` });
    if (applicationId === undefined) issues.push({ path: "applicationId", message: "is needed with maxConcurrency" });
  }
  return refuseIssues(issues);
}

/** Members must exist where the pool looks for workers; one of another tenant does not exist for it. */
function findUnknownMember(
  pool: Pick<PoolRecord, "tenantId" | "applicationId">,
  workerIds: readonly string[],
  known: KnownWorkers,
): Refusal | undefined {
  const unknown = workerIds.filter((workerId) => {
    const worker = known.get(workerId);
    if (worker === undefined || worker.tenantId !== pool.tenantId) return true;
    return pool.applicationId !== undefined && worker.applicationId !== pool.applicationId;
  });
  return unknown.length === 0
    ? undefined
    : refuse("WORKER_NOT_FOUND", `${unknown.length} of the pool's workers do not exist`, { workerIds: unknown });
}

/** Creates a pool (contract 2.2). */
export function decideCreatePool(
  existing: PoolRecord | undefined,
  request: CreatePoolRequest,
  context: { readonly workers: KnownWorkers; readonly now: number },
): PoolDecision<PoolRecord> {
  const { tenantId, applicationId, name, maxConcurrency } = request;
  const bad = findBadPool(request);
  if (bad !== undefined) return { ok: false, error: bad };
  const poolId = poolIdOf(request);
  if (existing !== undefined)
    return { ok: false, error: refuse("WORKER_POOL_EXISTS", "a pool of this name exists", { poolId }) };
  const record: PoolRecord = {
    poolId,
    tenantId,
    ...(applicationId === undefined ? {} : { applicationId }),
    name,
    capabilities: sortedSet(request.capabilities ?? []),
    requiredLabels: request.requiredLabels ?? {},
    workerIds: sortedSet(request.workerIds ?? []),
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
    createdAt: context.now,
  };
  const unknown = findUnknownMember(record, record.workerIds, context.workers);
  if (unknown !== undefined) return { ok: false, error: unknown };
  return { ok: true, answer: record, record };
}

/** Puts workers into a pool and takes others out. What is so already changes nothing; taking out asks for no worker to exist. */
export function decidePoolMembers(
  record: PoolRecord,
  command: PoolMembersCommand,
  workers: KnownWorkers,
): PoolDecision<PoolRecord> {
  const { add = [], remove = [] } = command;
  const both = add.filter((workerId) => remove.includes(workerId));
  const contradictory = refuseIssues(
    both.map((workerId) => ({ path: "remove", message: `names ${workerId}, as add does` })),
  );
  if (contradictory !== undefined) return { ok: false, error: contradictory };
  const unknown = findUnknownMember(record, add, workers);
  if (unknown !== undefined) return { ok: false, error: unknown };
  const kept = [...record.workerIds, ...add].filter((workerId) => !remove.includes(workerId));
  const next: PoolRecord = { ...record, workerIds: sortedSet(kept) };
  return sameValue(next, record) ? { ok: true, answer: record } : { ok: true, answer: next, record: next };
}

/** Lets a pool go. Claims that hold its slots run on and free them as they end. Answers the record that is to be deleted. */
export const decideDeletePool = (record: PoolRecord): PoolDecision<PoolRecord> => ({ ok: true, answer: record });

/** The pool once a worker that is removed has left it; nothing when it was no member. */
export const withoutMember = (record: PoolRecord, workerId: string): PoolRecord | undefined =>
  record.workerIds.includes(workerId)
    ? { ...record, workerIds: record.workerIds.filter((member) => member !== workerId) }
    : undefined;
