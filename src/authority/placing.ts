import { MandateError, refuse, type Refusal } from "../core/errors.ts";
import { decideClaim } from "../core/workload/claim.ts";
import { refused } from "../core/workload/decision.ts";
import type { Instant } from "../core/workload/fence.ts";
import type { Claim, WorkloadRecord } from "../core/workload/record.ts";
import { slotEvidence } from "../core/worker/claim-slots.ts";
import { findIneligibility, type Ineligibility, type PoolSeen } from "../core/worker/eligibility.ts";
import { checkIncarnation } from "../core/worker/incarnation.ts";
import { validateClaim } from "../core/worker/mesh-claim.ts";
import {
  denyPlacement,
  evidenceOfPlacement,
  explainPlacement,
  place,
  refuseNoWorker,
  type PlacementExplanation,
} from "../core/worker/placement.ts";
import type { PlacementDecision } from "../core/worker/record.ts";
import type { Scope } from "../store/keys.ts";
import { placeRequest, validateClaimRequest } from "../wire/worker-requests.ts";
import type { Answered, CallContext } from "./api.ts";
import { parseArguments } from "./arguments.ts";
import type { Work } from "./executor.ts";
import { dependencyStatesOf, type Records } from "./records.ts";
import { repeatClaim } from "./repeats.ts";
import type { SlotGrab, Slots } from "./slots.ts";
import {
  isRegisteredId,
  viewIsBehind,
  workerNotFound,
  type WorkerAsked,
  type WorkerRecords,
} from "./worker-records.ts";

/** How often a placement is looked at anew while commits of this node run ahead of what it has been told of others. */
const ROUNDS_MAX = 24;

/** A claim on one workload by a worker of the registry, its shape already checked. */
export interface PlacedClaim extends Omit<WorkerAsked, keyof Scope> {
  readonly workloadId: string;
  readonly leaseMs: number;
  readonly start?: boolean | undefined;
}

export interface PlacingOptions {
  readonly records: Records;
  readonly workerRecords: WorkerRecords;
  readonly slots: Slots;
  readonly instant: () => Instant;
  /** Waits until the view is newer than the call; throws when it can't be had. */
  readonly viewIsNew: () => Promise<void>;
}

/** Who may run what (contract 2.3). */
export class Placing {
  readonly #options: PlacingOptions;

  constructor(options: PlacingOptions) {
    this.#options = options;
  }

  /** The work of a claim that takes one of the worker's slots in the same commit. */
  claim(request: PlacedClaim, how: { readonly context: CallContext; readonly mark?: string | undefined }): Work<Claim> {
    const { workerRecords, slots } = this.#options;
    let grab: SlotGrab | undefined;
    let claim: Claim | undefined;
    /** The last denial. */
    let denied: Denied | undefined;
    /** What has been read from the store since the request came. */
    const isSure = { worker: false, pool: false, claims: false };
    /** The view did not come up to what was read: it can't tell what was held at one moment. */
    let isBehind = false;
    /** The worker, in the workload's own application: of any other it can't be. */
    let asked: WorkerAsked | undefined;
    const end = (): void => {
      grab?.end();
      grab = undefined;
    };
    return {
      workloadId: request.workloadId,
      context: how.context,
      mark: how.mark,
      decide: (seen, instant) => {
        end();
        denied = undefined;
        const { record } = seen.workload;
        const { tenantId, applicationId } = record;
        asked = { tenantId, applicationId, workerId: request.workerId };
        const held = workerRecords.present(asked);
        if (held === undefined) return refused(refusalOf(workerNotFound(request.workerId)));
        const worker = workerRecords.standing(held.value);
        const superseded = checkIncarnation(worker, request.incarnation);
        if (superseded !== undefined) return refused(superseded);
        const pool = this.#poolOf(record);
        const ineligible = findIneligibility(workerRecords.seen(worker), record, pool);
        const poolId = record.placement?.poolId;
        if (ineligible !== undefined) {
          denied = { reason: ineligible.reason, poolId };
          if (isBehind && isAboutRoom(denied.reason) && !workerRecords.showsOneMoment(asked, poolId))
            return refused(viewIsBehind);
          return refused(denyPlacement(worker.workerId, ineligible));
        }
        grab = slots.grab(held, poolId === undefined ? undefined : workerRecords.presentPool(asked, poolId));
        if (grab === undefined) return refused(allTried(worker.workerId));
        const placement = place(record, [workerRecords.seen(worker)], { pool, evaluatedAt: instant.now });
        const evidence = { ...slotEvidence(grab.slots), ...evidenceOfPlacement(placement) };
        const command = { ...request, capabilities: worker.grantedCapabilities, evidence };
        const decision = decideClaim(record, command, { ...instant, dependencies: dependencyStatesOf(seen) });
        claim = decision.ok ? decision.answer : undefined;
        return decision;
      },
      attach: () => ({
        slots: claim === undefined ? [] : (grab?.putsFor(claim) ?? []),
        asserts: grab?.asserts ?? [],
      }),
      refresh: async () => {
        if (asked === undefined) return;
        await workerRecords.fresh(asked);
        isSure.worker = true;
        if (denied === undefined) return;
        if (denied.poolId !== undefined) await workerRecords.refreshPool(asked, denied.poolId);
        isSure.pool = true;
        // Of a worker that takes no work it does not matter what it holds.
        const worker = workerRecords.present(asked)?.value;
        if (worker?.lifecycle !== "READY" || worker.health !== "HEALTHY") return;
        await workerRecords.refreshClaims(asked, denied.poolId);
        isBehind = !(await workerRecords.untilOneMoment(asked, denied.poolId));
        isSure.claims = true;
      },
      isDoubtful: () => {
        if (!isSure.worker) return true;
        if (asked === undefined || denied === undefined) return false;
        const { reason, poolId } = denied;
        if (reason.startsWith("pool_") && !isSure.pool) return true;
        if (!isAboutRoom(reason) || isBehind) return false;
        return !isSure.claims || !workerRecords.showsOneMoment(asked, poolId);
      },
      end,
      repeat: repeatClaim,
    };
  }

  /**
   * Who should run a workload (contract 2.3).
   *
   * @throws MandateError `MESH_NO_ELIGIBLE_WORKER`, with every reason, when nobody may; `AUTHORITY_NOT_READY` when the view can't tell.
   */
  async place(value: unknown, context: CallContext): Promise<Answered<PlacementDecision>> {
    const request = parseArguments(placeRequest, value, "WORKER_INVALID");
    const { records, workerRecords, instant, viewIsNew } = this.#options;
    await viewIsNew();
    const { workload } = await records.fresh(request.workloadId, { scope: context.scope ?? request });
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const candidates = workerRecords.candidatesOf(workload.record);
      const pool = this.#poolOf(workload.record);
      const decision = place(workload.record, candidates, { pool, evaluatedAt: instant().now });
      if (decision.selectedWorker !== undefined)
        return { answer: decision, position: { shard: workload.shard, revision: workload.revision } };
      const poolId = pool?.record.poolId;
      const workers = candidates.map(({ record }) => record);
      const doubtful = workers.filter((worker) => !workerRecords.showsOneMoment(worker, poolId));
      if (doubtful.length === 0)
        throw MandateError.of(refuseNoWorker(explainPlacement(workload.record, candidates, pool)));
      const waits = doubtful.map((worker) => workerRecords.untilOneMoment(worker, poolId));
      if ((await Promise.all(waits)).includes(false)) break;
    }
    throw MandateError.of(viewIsBehind);
  }

  /** Who could run a workload and why nobody does; nothing when the application has no workers in the registry. */
  explain(record: WorkloadRecord): PlacementExplanation | undefined {
    const { workerRecords } = this.#options;
    const candidates = workerRecords.candidatesOf(record);
    return candidates.length === 0 ? undefined : explainPlacement(record, candidates, this.#poolOf(record));
  }

  /**
   * Tells a resource whether a claim still counts (contract 2.3).
   *
   * @throws MandateError `MESH_CLAIM_SCOPE_DENIED`, `MESH_STALE_FENCE`, `MESH_CAPABILITY_DENIED`.
   */
  async validate(value: unknown, context: CallContext): Promise<Answered<{ readonly valid: true }>> {
    const claim = parseArguments(validateClaimRequest, value, "WORKER_INVALID");
    const { records, workerRecords, instant } = this.#options;
    const scope = context.scope ?? { tenantId: claim.tenantId, applicationId: claim.applicationId };
    const { workload } = await records.fresh(claim.workloadId, { scope }).catch((cause: unknown) => {
      throw isUnknownWork(cause) ? MandateError.of(foreignWork) : cause;
    });
    const asked = { ...scope, workerId: claim.workerId };
    const registered = isRegisteredId(claim.workerId) ? await workerRecords.fresh(asked) : undefined;
    const standing = registered === undefined ? undefined : workerRecords.standing(registered);
    const worker = standing ?? { ...asked, grantedCapabilities: claim.capabilities };
    const refusal = validateClaim(claim, { ...scope, workload: workload.record, worker }, instant());
    if (refusal !== undefined) throw MandateError.of(refusal);
    return { answer: { valid: true }, position: { shard: workload.shard, revision: workload.revision } };
  }

  #poolOf(record: WorkloadRecord): PoolSeen | undefined {
    const poolId = record.placement?.poolId;
    return poolId === undefined ? undefined : this.#options.workerRecords.viewedPool(record, poolId);
  }
}

/** Why the worker that was named may not run the workload, and the pool that the workload names. */
interface Denied {
  readonly reason: Ineligibility["reason"];
  readonly poolId: string | undefined;
}

/** Whether a denial counts slots: it is true only if all of them were held at one moment. */
const isAboutRoom = (reason: Ineligibility["reason"]): boolean => reason === "capacity" || reason === "pool_capacity";

const refusalOf = ({ code, message, details }: MandateError): Parameters<typeof MandateError.of>[0] => ({
  code,
  message,
  ...(details === undefined ? {} : { details }),
});

const isUnknownWork = (cause: unknown): boolean => cause instanceof MandateError && cause.code === "WORKLOAD_NOT_FOUND";

/** Work of another tenant or application, or none at all: nobody is told which. */
const foreignWork = refuse("MESH_CLAIM_SCOPE_DENIED", "the claim is of no workload of this tenant and application", {
  fields: ["workloadId"],
});

/** Every free slot is being taken by another claim at this moment, which may fail, or the view is behind: nothing is sure. */
const allTried = (workerId: string): Refusal =>
  refuse("WORKLOAD_CONFLICT", "none of its free slots can be given out at this moment; try again", { workerId });
