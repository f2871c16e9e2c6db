import { inLanes } from "../base/lanes.ts";
import type { Log } from "../base/log.ts";
import { MandateError } from "../core/errors.ts";
import type { Instant } from "../core/workload/fence.ts";
import type { GrantSnapshot } from "../core/workload/record.ts";
import { decideSuperseded } from "../core/workload/recovery.ts";
import { decideWorkerHeartbeat, type WorkerHeartbeatAnswer } from "../core/worker/heartbeat.ts";
import { workerIdOf } from "../core/worker/identity.ts";
import { decideOffline, silentAt } from "../core/worker/liveness.ts";
import { decideDrain, decideRecoverWorker, decideRemove, type WorkerCall } from "../core/worker/operate-worker.ts";
import { withoutMember } from "../core/worker/pool.ts";
import type { WorkerDecision } from "../core/worker/decision.ts";
import { decideReconcile, type Reconciliation, type ReconcileFact } from "../core/worker/reconcile.ts";
import type { PoolRecord, WorkerRecord } from "../core/worker/record.ts";
import { decideRegister, type RegisterRequest } from "../core/worker/registration.ts";
import { claimIdsOf, supersededSlots, type WorkerSeen } from "../core/worker/slots.ts";
import { renderWorker, type WorkerView } from "../core/worker/worker-view.ts";
import type { Scope } from "../store/keys.ts";
import type { Projection } from "../store/projection/projection.ts";
import {
  heartbeatWorkerRequest,
  listWorkersRequest,
  reconcileWorkerRequest,
  registerWorkerRequest,
  workerRequest,
} from "../wire/worker-requests.ts";
import type { Answered, Answers, CallContext } from "./api.ts";
import { parseArguments } from "./arguments.ts";
import type { Executor } from "./executor.ts";
import { markOf } from "./operation-ids.ts";
import type { Records } from "./records.ts";
import { conflict, type WorkerChanges, type WorkerWork } from "./worker-changes.ts";
import { workerNotFound, type WorkerAsked, type WorkerRecords } from "./worker-records.ts";

/** A node, or a store, that has just come back gives workers this long at most to be heard again, ms: as for leases (contract 5.5). */
const GRACE_MAX_MS = 30_000;

/** How many workloads one call reads, or takes from a superseded process, at a time: they may be thousands. */
const WORKLOADS_CONCURRENCY = 32;

export interface WorkersOptions {
  readonly records: Records;
  readonly workerRecords: WorkerRecords;
  readonly changes: WorkerChanges;
  readonly executor: Executor;
  readonly projection: Projection;
  readonly instant: () => Instant;
  readonly log: Log;
  /** Waits until the view of a scope's shard is newer than the call; throws when it can't be had. */
  readonly viewIsNew: () => Promise<void>;
}

/** In open mode nobody is asked for a grant: whoever registers may do what he says he can. */
function openGrant(request: RegisterRequest, context: CallContext): GrantSnapshot {
  const subject = context.subject ?? { kind: "worker", id: workerIdOf(request) };
  const { tenantId, applicationId, declaredCapabilities = [] } = request;
  return {
    grantId: "open",
    issuer: subject,
    subject,
    tenantId,
    applicationId,
    capabilities: ["worker:register", ...declaredCapabilities.map((name) => `worker:capability:${name}`)],
    resources: [],
    constraints: {},
    issuedAt: 0,
    expiresAt: Number.MAX_SAFE_INTEGER,
    revision: 0,
  };
}

const inWords = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** The calls about workers (contract 2.2). */
export class Workers {
  readonly #options: WorkersOptions;

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  async register(value: unknown, context: CallContext): Promise<Answered<Answers["registerWorker"]>> {
    const { requestId: _unused, ...request } = parseArguments(registerWorkerRequest, value, "WORKER_INVALID");
    const { changes, workerRecords } = this.#options;
    const asked = { ...scopeOf(request), workerId: workerIdOf(request) };
    const grant = context.grant ?? openGrant(request, context);
    const registrar = context.subject ?? grant.subject;
    const { answer, position } = await changes.run({
      action: "registerWorker",
      asked,
      context,
      decide: (seen, { now }) => decideRegister(seen?.record, request, { registrar, grant, now }),
    });
    await this.#releaseSuperseded(answer.record);
    const { created } = answer;
    return { answer: { worker: renderWorker(workerRecords.seen(answer.record)), created }, ...placed(position) };
  }

  async heartbeat(value: unknown, context: CallContext): Promise<Answered<WorkerHeartbeatAnswer>> {
    const request = parseArguments(heartbeatWorkerRequest, value, "WORKER_INVALID");
    await this.#compareClaims(request, request.runningClaims);
    return this.#onWorker("heartbeatWorker", request, {
      context,
      decide: (seen, { now }) => decideWorkerHeartbeat(seen, request, now),
    });
  }

  async drain(value: unknown, context: CallContext): Promise<Answered<WorkerView>> {
    return this.#operate("drainWorker", value, { context, decide: decideDrain });
  }

  async recover(value: unknown, context: CallContext): Promise<Answered<WorkerView>> {
    return this.#operate("recoverWorker", value, { context, decide: decideRecoverWorker });
  }

  /** Takes a worker without claims out of the registry and of its pools. Answers it as it was. */
  async remove(value: unknown, context: CallContext): Promise<Answered<WorkerView>> {
    const request = parseArguments(workerRequest, value, "WORKER_INVALID");
    const { changes, workerRecords, projection } = this.#options;
    for (let round = 0; round < 24; round++) {
      await workerRecords.fresh(request);
      // One that is given work is closed first, which a refusal must not leave behind: what it holds is made sure of before.
      await workerRecords.refreshClaims(request);
      const record = (await workerRecords.withClaims(request))?.value;
      if (record === undefined) throw workerNotFound(request.workerId);
      const decision = decideRemove(workerRecords.seen(record), request);
      if (!decision.ok) throw MandateError.of(decision.error);
      if (!decision.answer) {
        // Closed first: then no claim can be on its way.
        if (decision.record !== undefined) await changes.replace(decision.record, "removeWorker", context);
        continue;
      }
      const pools: PoolRecord[] = [];
      for (const { value: pool } of projection.registry.pools.values()) {
        const left = pool === undefined ? undefined : withoutMember(pool, record.workerId);
        if (left !== undefined) pools.push(left);
      }
      if (await changes.remove(record, pools, context)) return { answer: renderWorker({ record, slots: [] }) };
    }
    throw conflict();
  }

  async reconcile(value: unknown, context: CallContext): Promise<Answered<Omit<Reconciliation, "freed">>> {
    const request = parseArguments(reconcileWorkerRequest, value, "WORKER_INVALID");
    await this.#compareClaims(request, request.knownClaims);
    const { answer, position } = await this.#onWorker("reconcileWorker", request, {
      context,
      decide: async (seen, instant) => {
        const workloads = await this.#factsOf(seen, request);
        return decideReconcile({ ...seen, workloads }, request, instant);
      },
      freed: ({ freed }) => freed,
    });
    const { freed: _done, ...shown } = answer;
    return { answer: shown, ...placed(position) };
  }

  async get(value: unknown): Promise<Answered<WorkerView>> {
    const request = parseArguments(workerRequest, value, "WORKER_INVALID");
    const { workerRecords } = this.#options;
    const record = await workerRecords.fresh(request);
    if (record === undefined) throw workerNotFound(request.workerId);
    return { answer: renderWorker(workerRecords.seen(record)) };
  }

  /** A page of an application's workers by id, none of it older than the call. */
  async list(value: unknown): Promise<Answered<Answers["listWorkers"]>> {
    const { limit, after = "", ...scope } = parseArguments(listWorkersRequest, value, "WORKER_INVALID");
    const { workerRecords, viewIsNew } = this.#options;
    await viewIsNew();
    const rest = workerRecords
      .workersOf(scope)
      .filter(({ workerId }) => workerId > after)
      .sort((left, right) => (left.workerId < right.workerId ? -1 : 1));
    const page = rest.slice(0, limit);
    const last = page.at(-1);
    return {
      answer: {
        workers: page.map((record) => renderWorker(workerRecords.seen(record))),
        ...(rest.length > limit && last !== undefined ? { after: last.workerId } : {}),
      },
    };
  }

  /**
   * The pass over workers (contract 2.2): silent ones are OFFLINE, and claims of processes that were superseded are taken
   * away, should whoever registered their successor not have come to it. Ids of the workers that it took OFFLINE. One
   * worker's failure never stops the pass for the others.
   */
  async detectFailures(isMine: (workerId: string, overdueMs: number) => boolean): Promise<readonly string[]> {
    const { projection, log, instant } = this.#options;
    const done: string[] = [];
    for (const { value: record } of [...projection.registry.workers.values()]) {
      if (record === undefined || !isMine(record.workerId, instant().now - silentAt(record))) continue;
      try {
        if (await this.#takeOffline(record)) done.push(record.workerId);
        await this.#releaseSuperseded(record);
      } catch (cause) {
        log.warn(
          { workerId: record.workerId, cause: inWords(cause) },
          "a worker could not be handled by a pass; it will be tried again",
        );
      }
    }
    return done;
  }

  async #takeOffline(record: WorkerRecord): Promise<boolean> {
    const { changes, instant, workerRecords } = this.#options;
    const { now, servingSince } = instant();
    if (servingSince !== undefined && now < servingSince + Math.min(record.heartbeatTimeoutMs, GRACE_MAX_MS))
      return false;
    const first = decideOffline(workerRecords.seen(record), now);
    if (!first.ok || first.record === undefined) return false;
    const nothing: WorkerDecision<boolean> = { ok: true, answer: false };
    const { answer } = await changes.run({
      action: "detectFailures",
      asked: { ...scopeOf(record), workerId: record.workerId },
      context: {},
      trustsView: true,
      decide: (seen, at) => (seen === undefined ? nothing : decideOffline(seen, at.now)),
    });
    return answer;
  }

  /** Claims of earlier processes are taken away at once; what can't be done now is done by a pass. */
  async #releaseSuperseded(record: WorkerRecord): Promise<void> {
    const { workerRecords, executor, log } = this.#options;
    const slots = supersededSlots(workerRecords.seen(record));
    await inLanes(slots, WORKLOADS_CONCURRENCY, async ({ held }) => {
      if (held === undefined) return;
      const { workloadId, claimId } = held;
      try {
        await executor.run({
          workloadId,
          context: {},
          trustsView: true,
          decide: ({ workload }, instant) => decideSuperseded(workload.record, claimId, instant),
        });
      } catch (cause) {
        log.warn(
          { workerId: record.workerId, workloadId, cause: inWords(cause) },
          "a superseded claim could not be taken away; it will be tried again",
        );
      }
    });
  }

  /** Where a worker and the view differ on its claims, the store is asked: a claim that the view has not seen yet must not be stopped. */
  async #compareClaims(asked: WorkerAsked, named: readonly string[]): Promise<void> {
    const { workerRecords } = this.#options;
    const record = workerRecords.viewed(asked)?.value;
    const held = new Set(record === undefined ? [] : claimIdsOf(workerRecords.seen(record).slots));
    if (held.size === new Set(named).size && named.every((claimId) => held.has(claimId))) return;
    // How many slots there are to be read is for the record to say, as it is committed now.
    await workerRecords.fresh(asked);
    await workerRecords.refreshClaims(asked);
  }

  /** The workloads that a worker's slots, its running attempts or the view's index of its claims name. */
  async #factsOf(
    { record, slots }: WorkerSeen,
    named: { readonly runningAttempts: readonly string[] },
  ): Promise<readonly ReconcileFact[]> {
    const { records, projection } = this.#options;
    const ids = new Set(slots.flatMap(({ held }) => held?.workloadId ?? []));
    for (const workloadId of projection.index.claimsOf(record, record.workerId)) ids.add(workloadId);
    for (const attemptId of named.runningAttempts) {
      const workloadId = /^attempt_(.*)_\d+$/.exec(attemptId)?.[1];
      if (workloadId !== undefined) ids.add(workloadId);
    }
    const facts = new Map<string, ReconcileFact>();
    await inLanes(ids, WORKLOADS_CONCURRENCY, async (workloadId) => {
      try {
        facts.set(workloadId, (await records.fresh(workloadId, { scope: record })).workload.record);
      } catch (cause) {
        if (!(cause instanceof MandateError) || cause.code !== "WORKLOAD_NOT_FOUND") throw cause;
      }
    });
    return [...ids].flatMap((workloadId) => facts.get(workloadId) ?? []);
  }

  async #operate(
    action: string,
    value: unknown,
    how: {
      readonly context: CallContext;
      readonly decide: (seen: WorkerSeen, call: WorkerCall) => WorkerDecision<WorkerRecord>;
    },
  ): Promise<Answered<WorkerView>> {
    const request = parseArguments(workerRequest, value, "WORKER_INVALID");
    const { requestId } = request;
    const caller = how.context.caller ?? request.workerId;
    const { answer, position } = await this.#onWorker<WorkerRecord>(action, request, {
      context: how.context,
      decide: (seen) => how.decide(seen, request),
      mark: markOf(caller, action, requestId),
      repeat: (record) => record,
    });
    return { answer: renderWorker(this.#options.workerRecords.seen(answer)), ...placed(position) };
  }

  #onWorker<Answer>(
    action: string,
    asked: WorkerAsked,
    how: {
      readonly context: CallContext;
      readonly decide: (seen: WorkerSeen, instant: Instant) => WorkerDecision<Answer> | Promise<WorkerDecision<Answer>>;
    } & Pick<WorkerWork<Answer>, "freed" | "mark" | "repeat">,
  ): Promise<Answered<Answer>> {
    return this.#options.changes.run<Answer>({
      action,
      asked,
      context: how.context,
      decide: (seen, instant) => {
        if (seen !== undefined) return how.decide(seen, instant);
        const { code, message, details } = workerNotFound(asked.workerId);
        return { ok: false, error: { code, message, ...(details === undefined ? {} : { details }) } };
      },
      mark: how.mark,
      ...(how.freed === undefined ? {} : { freed: how.freed }),
      ...(how.repeat === undefined ? {} : { repeat: how.repeat }),
    });
  }
}

const scopeOf = ({ tenantId, applicationId }: Scope): Scope => ({ tenantId, applicationId });

const placed = (position: Answered<unknown>["position"]): Pick<Answered<unknown>, "position"> =>
  position === undefined ? {} : { position };
