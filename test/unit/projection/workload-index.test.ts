/**
 * Goal: every index of the view holds exactly what a walk over all current records would find, whatever versions arrive
 * in whatever order, and however the clock is set.
 * Method: random versions of random workloads, some of them old or twice, shards forgotten in between; after each run the
 * indexes are compared with a model that keeps the records alone and walks them.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lacksApproval, pendingDependencies } from "../../../src/core/workload/claim.ts";
import { deadlinesOf } from "../../../src/core/workload/deadlines.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { heldStates, workloadStates, type WorkloadState } from "../../../src/core/workload/states.ts";
import { instantOf } from "../../../src/core/workload/transition.ts";
import { abilityOf } from "../../../src/store/projection/ability.ts";
import { pageOf } from "../../../src/store/projection/page.ts";
import { compareRank, rankOf, type Projected } from "../../../src/store/projection/projected.ts";
import { queueOf } from "../../../src/store/projection/ready-queues.ts";
import { WorkloadIndex } from "../../../src/store/projection/workload-index.ts";
import { admitted, claimed, recordIn, T0 } from "../core/fixtures.ts";

const names = ["a", "b", "c", "d", "e"] as const;
const now = { value: T0 };

const newIndex = (onLater: (at: number) => void = () => undefined): WorkloadIndex =>
  new WorkloadIndex({ now: () => now.value, onReady: () => undefined, onLater });

interface Version {
  readonly name: (typeof names)[number];
  readonly revision: number;
  readonly state: WorkloadState;
  readonly priority: number;
  readonly nextAttemptAt: number | undefined;
  readonly needs: readonly string[];
  readonly gated: boolean;
  readonly writable: boolean;
  readonly timeouts: WorkloadRecord["timeouts"];
}

const version: fc.Arbitrary<Version> = fc.record({
  name: fc.constantFrom(...names),
  revision: fc.integer({ min: 1, max: 40 }),
  state: fc.oneof(
    { weight: 3, arbitrary: fc.constant<WorkloadState>("READY") },
    { weight: 3, arbitrary: fc.constantFrom<WorkloadState>(...workloadStates) },
  ),
  priority: fc.integer({ min: -1, max: 1 }),
  nextAttemptAt: fc.option(fc.constantFrom(T0 - 5, T0 + 3, T0 + 50, T0 + 3_000_000_000), { nil: undefined }),
  needs: fc.subarray(["cpu", "gpu"]),
  gated: fc.boolean(),
  writable: fc.oneof({ weight: 9, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  timeouts: fc.record({ queueMs: fc.constantFrom(1, 100), overallMs: fc.constantFrom(10, 1000) }),
});

/** Who belongs where never changes, so it derives from the name; the rest is the version's. */
function projectedFrom(drawn: Version): Projected {
  const { name, revision, state, priority, nextAttemptAt, needs, gated, writable, timeouts } = drawn;
  const place = names.indexOf(name);
  const base = recordIn[state]();
  // The next of the same tenant; the last ones depend on somebody of the other, which never counts.
  const dependency = names[place + 2] ?? names[(place + 1) % 2];
  const record: WorkloadRecord = {
    ...base,
    workloadId: name,
    tenantId: place % 2 === 0 ? "acme" : "else",
    createdAt: T0 + place,
    priority,
    capabilities: needs,
    timeouts,
    dependencies: dependency === undefined ? [] : [{ workloadId: dependency, requiredState: "SUCCEEDED" }],
    ...(nextAttemptAt === undefined ? {} : { nextAttemptAt }),
    ...(gated ? { approval: { policy: { approverKinds: ["human"], approvers: [] } } } : {}),
  };
  return { record, writable, key: `w.${name}`, shard: place % 2, revision, operations: [], node: "n", action: "a" };
}

/** What a walk over the records finds. */
class Model {
  readonly workloads = new Map<string, Projected>();

  apply(next: Projected): void {
    const known = this.workloads.get(next.record.workloadId);
    if (known === undefined || known.revision < next.revision) this.workloads.set(next.record.workloadId, next);
  }

  forgetShard(shard: number): void {
    for (const [workloadId, { shard: home }] of this.workloads) if (home === shard) this.workloads.delete(workloadId);
  }

  where(test: (record: WorkloadRecord) => boolean): WorkloadRecord[] {
    return [...this.workloads.values()]
      .filter(({ record, writable }) => writable && test(record))
      .map(({ record }) => record);
  }

  claimable(queue: string, capabilities: readonly string[]): readonly string[] {
    const found = this.where(
      (record) =>
        queueOf(record) === queue &&
        record.state === "READY" &&
        !lacksApproval(record) &&
        (record.nextAttemptAt ?? 0) <= instantOf(record, now.value) &&
        pendingDependencies(record, this.#statesFor(record)).length === 0 &&
        record.capabilities.every((capability) => capabilities.includes(capability)),
    );
    return found.sort((left, right) => compareRank(rankOf(left), rankOf(right))).map(({ workloadId }) => workloadId);
  }

  leasesDue(at: number): readonly string[] {
    return this.#ids(
      ({ state, currentClaim, ...record }) =>
        currentClaim !== undefined &&
        heldStates.includes(state) &&
        currentClaim.expiresAt <= Math.max(at, record.history.at(-1)?.at ?? 0),
    );
  }

  deadlinesDue(at: number): readonly string[] {
    return this.#ids((record) =>
      deadlinesOf(record).some(({ deadlineAt }) => deadlineAt <= Math.max(at, record.history.at(-1)?.at ?? 0)),
    );
  }

  #ids(test: (record: WorkloadRecord) => boolean): readonly string[] {
    return this.where(test)
      .map(({ workloadId }) => workloadId)
      .sort();
  }

  #statesFor({ tenantId, applicationId }: WorkloadRecord): ReadonlyMap<string, WorkloadState> {
    const same = [...this.workloads.values()].filter(
      ({ record }) => record.tenantId === tenantId && record.applicationId === applicationId,
    );
    return new Map(same.map(({ record }) => [record.workloadId, record.state]));
  }
}

function compare(index: WorkloadIndex, model: Model): void {
  expect([...index.all()].map(({ record }) => record.workloadId).sort()).toEqual([...model.workloads.keys()].sort());
  for (const at of [T0 - 100, T0, T0 + 60, T0 + 5000, T0 + 1_000_000_000]) {
    expect([...index.leasesDue(at)].sort()).toEqual(model.leasesDue(at));
    expect([...index.deadlinesDue(at)].sort()).toEqual(model.deadlinesDue(at));
  }
  for (const tenantId of ["acme", "else"]) {
    const queue = queueOf({ tenantId, applicationId: "invoices" });
    for (const capabilities of [[], ["cpu"], ["gpu", "cpu"]]) {
      const candidates = [...index.ready.candidates(queue, abilityOf(capabilities))].map(
        ({ workloadId }) => workloadId,
      );
      expect(candidates).toEqual(model.claimable(queue, capabilities));
    }
    const listed = pageOf(index, { tenantId, applicationId: "invoices" }, { limit: 100 }).workloads;
    const wanted = [...model.workloads.values()].filter(({ record }) => record.tenantId === tenantId);
    wanted.sort((left, right) => compareRank(rankOf(left.record), rankOf(right.record)));
    expect(listed.map(({ revision }) => revision)).toEqual(wanted.map(({ revision }) => revision));
  }
  for (const state of workloadStates)
    expect(index.counts().get(state) ?? 0).toBe(
      [...model.workloads.values()].filter(({ record }) => record.state === state).length,
    );
}

describe("the index of workloads", () => {
  it("agrees with a walk over the records, whatever arrives, and at any reading of the clock", () => {
    const step = fc.oneof(
      { weight: 10, arbitrary: version.map((drawn) => ({ kind: "apply" as const, drawn })) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 1 }).map((shard) => ({ kind: "forget" as const, shard })) },
      { weight: 2, arbitrary: fc.constantFrom(-20, 0, 3, 40, 5000).map((by) => ({ kind: "clock" as const, by })) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        now.value = T0;
        const index = newIndex();
        const model = new Model();
        for (const next of steps) {
          if (next.kind === "apply") {
            const projected = projectedFrom(next.drawn);
            const known = model.workloads.get(projected.record.workloadId);
            expect(index.apply(projected)).toBe(known === undefined || known.revision < projected.revision);
            model.apply(projected);
          } else if (next.kind === "forget") {
            index.forgetShard(next.shard);
            model.forgetShard(next.shard);
          } else now.value = Math.max(now.value, T0 + next.by);
        }
        index.promoteDue();
        compare(index, model);
      }),
      { numRuns: 200 },
    );
  });

  it("tells when early work will be due, and when something enters a queue", () => {
    now.value = T0;
    const later: number[] = [];
    const ready: string[] = [];
    const index = new WorkloadIndex({
      now: () => now.value,
      onReady: (queue) => ready.push(queue),
      onLater: (at) => later.push(at),
    });
    const early = admitted({ notBefore: T0 + 500 });
    const of = (record: WorkloadRecord, revision: number): Projected => ({
      record,
      writable: true,
      key: "w",
      shard: 0,
      revision,
      operations: [],
      node: undefined,
      action: undefined,
    });
    index.apply(of(early, 1));
    expect([later, ready, index.ready.nextDueAt()]).toEqual([[T0 + 500], [], T0 + 500]);
    now.value = T0 + 500;
    index.promoteDue();
    expect([ready, index.ready.nextDueAt()]).toEqual([[queueOf(early)], undefined]);
    index.apply(of(claimed(early, T0 + 500), 2));
    expect(index.ready.size(queueOf(early))).toBe(0);
    expect(index.claimsOf(early, "w1")).toEqual([early.workloadId]);
    expect(index.claimsOf(early, "w2")).toEqual([]);
  });
});
