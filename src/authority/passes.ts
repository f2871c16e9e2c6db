import { inLanes } from "../base/lanes.ts";
import type { Log } from "../base/log.ts";
import { decideExpire, passedDeadline } from "../core/workload/deadlines.ts";
import type { Decision } from "../core/workload/decision.ts";
import type { Instant } from "../core/workload/fence.ts";
import { decideRecover, isLeaseLost } from "../core/workload/recovery.ts";
import { instantOf } from "../core/workload/transition.ts";
import type { Projected } from "../store/projection/projected.ts";
import type { Projection } from "../store/projection/projection.ts";
import { queueOf } from "../store/projection/ready-queues.ts";
import type { Executor } from "./executor.ts";
import type { Seen } from "./records.ts";
import { inTurns } from "./turns.ts";

/** How many workloads a pass works on at once: 5,000 leases that end in one second must not stampede. */
const PASS_CONCURRENCY = 32;

export interface PassOptions {
  readonly projection: Projection;
  readonly executor: Executor;
  readonly instant: () => Instant;
  readonly log: Log;
}

/** Which of the due workloads a pass takes; the others are left to other nodes. */
export type Share = (workload: Projected, overdueMs: number) => boolean;

const everything: Share = () => true;

/**
 * The passes of contract 1.6 and 1.11. Each workload is decided on its committed version and on its own: one failure
 * never stops the pass for the others, and a lost race is no failure.
 */
export class Passes {
  readonly #options: PassOptions;

  constructor(options: PassOptions) {
    this.#options = options;
  }

  /** Recovers workloads whose lease ran out; ids of those that this node recovered. */
  recoverExpired(share: Share = everything): Promise<readonly string[]> {
    const { projection, instant } = this.#options;
    const { now } = instant();
    const due = this.#mine(projection.index.leasesDue(now), share, (workload) =>
      isLeaseLost(workload.record, instant()) ? now - (workload.record.currentClaim?.expiresAt ?? now) : undefined,
    );
    return this.#each("recover", due, ({ workload }, at) => decideRecover(workload.record, at));
  }

  /** Expires workloads of which a deadline has passed; ids of those that this node timed out. */
  enforceDeadlines(share: Share = everything): Promise<readonly string[]> {
    const { projection, instant } = this.#options;
    const { now } = instant();
    const due = this.#mine(projection.index.deadlinesDue(now), share, ({ record }) => {
      const passed = passedDeadline(record, instantOf(record, now));
      return passed === undefined ? undefined : now - passed.deadlineAt;
    });
    const expected = new Map(
      due.map((workload) => [
        workload.record.workloadId,
        passedDeadline(workload.record, instantOf(workload.record, now))?.deadline,
      ]),
    );
    return this.#each("expire", due, ({ workload }, at) => {
      const deadline = expected.get(workload.record.workloadId);
      return deadline === undefined ? { ok: true, answer: false } : decideExpire(workload.record, deadline, at.now);
    });
  }

  #mine(
    workloadIds: readonly string[],
    share: Share,
    overdueMs: (workload: Projected) => number | undefined,
  ): readonly Projected[] {
    return workloadIds.flatMap((workloadId) => {
      const workload = this.#options.projection.index.get(workloadId);
      const overdue = workload === undefined ? undefined : overdueMs(workload);
      return workload !== undefined && overdue !== undefined && share(workload, overdue) ? [workload] : [];
    });
  }

  async #each(
    pass: string,
    due: readonly Projected[],
    decide: (seen: Seen, instant: Instant) => Decision<boolean>,
  ): Promise<readonly string[]> {
    const done: string[] = [];
    const queue = inTurns(due, ({ record }) => queueOf(record));
    await inLanes(queue, PASS_CONCURRENCY, async ({ record }) => {
      const { workloadId } = record;
      try {
        const { answer } = await this.#options.executor.run({ workloadId, context: {}, trustsView: true, decide });
        if (answer) done.push(workloadId);
      } catch (cause) {
        this.#options.log.warn(
          { pass, workloadId, cause: String(cause) },
          "a workload could not be handled by a pass; it will be tried again",
        );
      }
    });
    return done;
  }
}
