/**
 * Goal: whatever registers, is heard, drains, claims, ends claims and reconciles, in whatever order and through whatever
 * nodes, a worker never has more claims than its concurrency gives, no claim is counted twice, and every commit keeps the
 * invariants of a worker (src/core/worker/invariants.ts). Placement does not depend on an order.
 * Method: random sequences of steps by three nodes, each of which decides on a view of its own that may be several commits
 * old, and commits only if the keys that it guards are as it saw them. A failure prints fast-check's seed and path:
 * MANDATE_TEST_SEED=<seed> runs the same sequences again, MANDATE_TEST_RUNS=<number> runs more of them.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assert } from "../../src/base/assert.ts";
import type { WorkerDecision } from "../../src/core/worker/decision.ts";
import { decideWorkerHeartbeat } from "../../src/core/worker/heartbeat.ts";
import { findBrokenWorker, findBrokenWorkerSuccession } from "../../src/core/worker/invariants.ts";
import { decideOffline } from "../../src/core/worker/liveness.ts";
import { decideDrain, decideRecoverWorker, decideRemove } from "../../src/core/worker/operate-worker.ts";
import { place } from "../../src/core/worker/placement.ts";
import { decideReconcile, type ReconcileFact } from "../../src/core/worker/reconcile.ts";
import type { Slot, WorkerRecord } from "../../src/core/worker/record.ts";
import {
  activeOf,
  freeSlot,
  holdsOf,
  holdSlot,
  openSlots,
  supersededSlots,
  type WorkerSeen,
} from "../../src/core/worker/slots.ts";
import { sameValue } from "../../src/core/workload/same-value.ts";
import { admitted, claimed, frozen, T0 } from "../unit/core/fixtures.ts";
import { heartbeatOf, ready, register, withClaims } from "../unit/worker/fixtures.ts";

const seed = process.env["MANDATE_TEST_SEED"];
const parameters: { readonly numRuns: number; readonly seed?: number } = {
  numRuns: Number(process.env["MANDATE_TEST_RUNS"] ?? 1000),
  ...(seed === undefined ? {} : { seed: Number(seed) }),
};

const verbs = {
  register: 4,
  heartbeat: 6,
  drain: 1,
  recover: 2,
  remove: 1,
  offline: 1,
  claim: 16,
  free: 8,
  supersede: 2,
  reconcile: 2,
} as const;
type Verb = keyof typeof verbs;

interface Step {
  readonly verb: Verb;
  /** Which node does it. */
  readonly node: number;
  /** How many of the commits that it has not yet seen the node reads before. */
  readonly reads: number;
  readonly choice: number;
  readonly concurrency: number;
  readonly boot: string;
  readonly jumpMs: number;
}

const NODES = 3;

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    verb: fc.oneof(
      ...Object.entries(verbs).map(([verb, weight]) => ({ weight, arbitrary: fc.constant(verb as Verb) })),
    ),
    node: fc.nat({ max: NODES - 1 }),
    reads: fc.constantFrom(0, 0, 1, 2, 99, 99),
    choice: fc.nat({ max: 9 }),
    concurrency: fc.integer({ min: 1, max: 4 }),
    boot: fc.constantFrom("boot_1", "boot_1", "boot_2", "boot_3"),
    jumpMs: fc.constantFrom(0, 1, 40, 700, -50, 40_000),
  }),
  { minLength: 10, maxLength: 80, size: "max" },
);

/** The store at one instant: a version for each key, as the guards of a commit compare them. */
interface Version {
  readonly record: WorkerRecord | undefined;
  readonly recordVersion: number;
  readonly slots: ReadonlyMap<number, { readonly slot: Slot; readonly version: number }>;
}

/** What a node wants to commit on the version that it saw. */
interface Wish {
  /** Absent: left as it is. `"gone"`: deleted. */
  readonly record?: WorkerRecord | "gone" | undefined;
  /** The commit must find the record as it was seen, though it does not write it. */
  readonly assertsRecord?: boolean;
  readonly slots?: readonly Slot[];
}

class World {
  /** Every version there was; the last is what is committed. */
  readonly versions: Version[] = [{ record: undefined, recordVersion: 0, slots: new Map() }];
  readonly views: number[] = Array.from({ length: NODES }, () => 0);
  now: number = T0;
  claims = 0;
  conflicts = 0;
  readonly reached = new Set<string>();

  viewOf(node: number): Version {
    const version = this.versions[this.views[node] ?? 0];
    assert(version !== undefined, "a node sees a version that there was");
    return version;
  }

  get committed(): Version {
    const last = this.versions.at(-1);
    assert(last !== undefined, "there is a version");
    return last;
  }

  /** Commits a wish that was decided on a version, unless a key that it guards has changed since. */
  commit(seen: Version, wish: Wish): void {
    const { committed } = this;
    const guardsRecord = wish.record !== undefined || wish.assertsRecord === true;
    const stale =
      (guardsRecord && committed.recordVersion !== seen.recordVersion) ||
      (wish.slots ?? []).some(({ index }) => committed.slots.get(index)?.version !== seen.slots.get(index)?.version);
    if (stale) {
      this.conflicts++;
      return;
    }
    const version = this.versions.length;
    const slots = new Map(committed.slots);
    for (const slot of wish.slots ?? []) slots.set(slot.index, { slot, version });
    const record = wish.record === undefined ? committed.record : wish.record === "gone" ? undefined : wish.record;
    this.versions.push(
      frozen({ record, recordVersion: wish.record === undefined ? committed.recordVersion : version, slots }),
    );
    this.#check(committed, this.committed);
  }

  #check(before: Version, after: Version): void {
    const next = seenOf(after);
    if (next === undefined) {
      assert(activeOf(slotsOf(after)) === 0, "a worker with claims was removed");
      return;
    }
    const previous = seenOf(before);
    const broken = [
      ...findBrokenWorker(next),
      ...(previous === undefined ? [] : findBrokenWorkerSuccession(previous, next)),
    ];
    assert(broken.length === 0, broken.join("; "));
    this.reached.add(`${previous?.record.lifecycle ?? "none"} ${next.record.lifecycle}`);
  }
}

const slotsOf = (version: Version): readonly Slot[] => [...version.slots.values()].map(({ slot }) => slot);

const seenOf = (version: Version): WorkerSeen | undefined =>
  version.record === undefined ? undefined : { record: version.record, slots: slotsOf(version) };

const recordOf = (decision: WorkerDecision<unknown>): WorkerRecord | undefined => {
  assert(decision.ok || decision.record === undefined, "a refusal changes nothing");
  return decision.record === undefined ? undefined : frozen(decision.record);
};

/** A workload that a claim of the worker holds: the facts of a reconciliation. */
function factOf(claimId: string, workerId: string, now: number): ReconcileFact {
  const record = claimed(admitted(), now, { workerId, leaseMs: 1000, start: true });
  const { currentClaim } = record;
  assert(currentClaim !== undefined, "there is a claim");
  return { ...record, currentClaim: { ...currentClaim, claimId } };
}

/** What a step would commit on what its node sees of a worker that exists. */
function wishOn(seen: WorkerSeen, step: Step, world: World): Wish {
  const { record, slots } = seen;
  const call = { incarnation: step.boot };
  const { now } = world;
  switch (step.verb) {
    case "register":
      return { record: recordOf(register(record, { incarnation: step.boot, concurrency: step.concurrency }, { now })) };
    case "heartbeat": {
      const heartbeat = heartbeatOf(record, { incarnation: step.boot, timestamp: Math.max(now, record.lastSeen) });
      return { record: recordOf(decideWorkerHeartbeat(seen, heartbeat, now)) };
    }
    case "drain":
      return { record: recordOf(decideDrain(seen, call)) };
    case "recover":
      return { record: recordOf(decideRecoverWorker(seen, call)) };
    case "offline":
      return { record: recordOf(decideOffline(seen, now)) };
    case "remove": {
      const decision = decideRemove(seen, call);
      return { record: decision.ok && decision.answer ? "gone" : recordOf(decision) };
    }
    case "claim": {
      const open = openSlots(record.concurrency, slots, 9);
      const index = open[step.choice % Math.max(open.length, 1)];
      if (record.lifecycle !== "READY" || index === undefined) return {};
      const claimId = `claim_${world.claims++}`;
      const incarnation = record.incarnation.number;
      const hold = { claimId, workloadId: `workload_of_${claimId}`, workerId: record.workerId, incarnation };
      return { assertsRecord: true, slots: [holdSlot(record.workerId, index, hold)] };
    }
    case "free": {
      const held = slots.filter(({ held: hold }) => hold !== undefined);
      const slot = held[step.choice % Math.max(held.length, 1)];
      if (slot?.held === undefined) return {};
      const free = freeSlot(slot, step.choice === 9 ? "claim_other" : slot.held.claimId);
      return free === undefined ? {} : { slots: [free] };
    }
    case "supersede":
      return { slots: supersededSlots(seen).flatMap((slot) => freeSlot(slot, slot.held?.claimId ?? "none") ?? []) };
    case "reconcile": {
      const workloads = holdsOf(slots)
        .filter((_, place) => place % 3 !== step.choice % 3)
        .map(({ claimId }) => factOf(claimId, record.workerId, now));
      const command = { ...heartbeatOf(record), incarnation: step.boot, knownClaims: [], runningAttempts: [] };
      const decision = decideReconcile({ ...seen, workloads }, command, { now });
      return { record: recordOf(decision), slots: decision.ok ? decision.answer.freed : [] };
    }
  }
}

/** A removed worker's slots are gone with it. */
const withoutSlots = (world: World): Version => ({ ...world.committed, slots: new Map() });

function take(world: World, step: Step): void {
  world.now = Math.max(T0, world.now + step.jumpMs);
  const view = world.views[step.node] ?? 0;
  world.views[step.node] = Math.min(view + step.reads, world.versions.length - 1);
  const version = world.viewOf(step.node);
  const seen = seenOf(version);
  if (seen === undefined) {
    if (step.verb !== "register") return;
    const first = register(undefined, { incarnation: step.boot, concurrency: step.concurrency }, { now: world.now });
    world.commit(version, { record: recordOf(first) });
    return;
  }
  const wish = wishOn(seen, step, world);
  assert(
    sameValue({ ...wish, slots: [] }, { ...wishOn(seen, step, world), slots: [] }),
    `${step.verb} decides differently`,
  );
  world.commit(version, wish);
  if (wish.record === "gone" && world.committed.record === undefined) world.versions.push(withoutSlots(world));
}

describe("random sequences of what happens to a worker", () => {
  it("never give it more claims than its concurrency, count none twice, and make legal moves alone", () => {
    const reached = new Set<string>();
    let conflicts = 0;
    fc.assert(
      fc.property(steps, (sequence) => {
        const world = new World();
        for (const step of sequence) take(world, step);
        conflicts += world.conflicts;
        for (const move of world.reached) reached.add(move);
      }),
      parameters,
    );
    // Otherwise the sequences would have stopped to reach what they are here to try.
    if (parameters.seed !== undefined) return;
    expect([...reached].sort()).toEqual(
      expect.arrayContaining([
        "DRAINING OFFLINE",
        "OFFLINE READY",
        "OFFLINE RECOVERING",
        "READY DRAINING",
        "READY OFFLINE",
        "READY REGISTERED",
        "RECOVERING READY",
        "REGISTERED READY",
        "none REGISTERED",
      ]),
    );
    expect(conflicts).toBeGreaterThan(parameters.numRuns);
  });
});

describe("random candidates", () => {
  const candidate = fc.record({
    name: fc.nat({ max: 20 }),
    concurrency: fc.integer({ min: 1, max: 3 }),
    claims: fc.nat({ max: 3 }),
    zone: fc.constantFrom("a", "b"),
    sick: fc.boolean(),
  });

  it("lead to the same choice in every order, of one that is eligible", () => {
    const need = {
      ...admitted(),
      placement: { requiredLabels: {}, affinity: { zone: "a" }, antiAffinity: {} },
    };
    fc.assert(
      fc.property(
        fc.uniqueArray(candidate, { selector: ({ name }) => name, maxLength: 8 }),
        fc.nat(),
        (drawn, turn) => {
          const candidates = drawn.map(({ name, concurrency, claims, zone, sick }) =>
            withClaims(
              {
                ...ready({ name: `press-${name}`, labels: { zone } }),
                concurrency,
                health: sick ? "DEGRADED" : "HEALTHY",
              },
              ...Array.from({ length: claims }, (_, index) => `c${index}`),
            ),
          );
          const at = turn % Math.max(candidates.length, 1);
          const turned = [...candidates.slice(at), ...candidates.slice(0, at)].toReversed();
          const decision = place(need, candidates, { evaluatedAt: T0 });
          expect(place(need, turned, { evaluatedAt: T0 })).toEqual(decision);
          const free = candidates.filter(({ record, slots }) => {
            return record.health === "HEALTHY" && activeOf(slots) < record.concurrency;
          });
          expect(decision.eligibleWorkers).toEqual(free.map(({ record }) => record.workerId).sort());
          expect(decision.selectedWorker !== undefined).toBe(free.length > 0);
          if (decision.selectedWorker !== undefined)
            expect(decision.eligibleWorkers).toContain(decision.selectedWorker);
        },
      ),
      { ...parameters, numRuns: Math.min(parameters.numRuns, 500) },
    );
  });
});
