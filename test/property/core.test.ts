/**
 * Goal: whatever commands come in whatever order, at whatever times, no commit breaks an invariant of a workload
 * (src/core/workload/invariants.ts), no refusal changes anything it should not, every decision repeats, and the repeat
 * of a committed answer commits nothing.
 * Method: random requests and random sequences of commands, by current, former and forged holders, with time going
 * forward and back; every decision is taken twice on a frozen record. A failure prints fast-check's seed and path:
 * MANDATE_TEST_SEED=<seed> runs the same sequences again, MANDATE_TEST_RUNS=<number> runs more of them.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assert } from "../../src/base/assert.ts";
import { decideAdmit, type AdmitRequest } from "../../src/core/workload/admission.ts";
import { decideApproval, type DecideCommand } from "../../src/core/workload/approval.ts";
import { decideClaim, decideStart } from "../../src/core/workload/claim.ts";
import { deadlineNames, decideExpire, passedDeadline } from "../../src/core/workload/deadlines.ts";
import type { Decision } from "../../src/core/workload/decision.ts";
import { decideConfirmCancel, decideFail } from "../../src/core/workload/failure.ts";
import type { Fence, Instant } from "../../src/core/workload/fence.ts";
import { findBrokenInvariants, findBrokenSuccession } from "../../src/core/workload/invariants.ts";
import { decideExecutionContext, decideHeartbeat } from "../../src/core/workload/lease.ts";
import { decideCancel, decideRetry, decideTimeout } from "../../src/core/workload/operate.ts";
import { decideCheckpoint, decideComplete } from "../../src/core/workload/progress.ts";
import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import { decideRecover } from "../../src/core/workload/recovery.ts";
import { sameValue } from "../../src/core/workload/same-value.ts";
import { settledStates, type WorkloadState } from "../../src/core/workload/states.ts";
import { accepted, frozen, requester, requestOf, rules, T0 } from "../unit/core/fixtures.ts";

const seed = process.env["MANDATE_TEST_SEED"];
const parameters: { readonly numRuns: number; readonly seed?: number } = {
  numRuns: Number(process.env["MANDATE_TEST_RUNS"] ?? 1000),
  ...(seed === undefined ? {} : { seed: Number(seed) }),
};

const optional = <Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });

const seldom = <Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const length = fc.constantFrom(1, 50, 500, 20_000, 20_000, Number.MAX_SAFE_INTEGER);

/** Requests that admission accepts, with every kind of policy. */
const requests: fc.Arbitrary<AdmitRequest> = fc
  .record({
    capabilities: fc.subarray(["cpu", "gpu"]),
    notBefore: seldom(fc.constantFrom(0, T0 - 10, T0 + 30, T0 + 5000)),
    dependencies: seldom(fc.constant([{ workloadId: "a" }, { workloadId: "b", requiredState: "FAILED" as const }])),
    retryPolicy: fc.record({
      maxAttempts: fc.integer({ min: 1, max: 3 }),
      initialDelayMs: fc.constantFrom(0, 0, 1, 40, Number.MAX_SAFE_INTEGER),
      maxDelayMs: fc.constantFrom(0, 60, Number.MAX_SAFE_INTEGER),
      backoff: fc.constantFrom("exponential" as const, "fixed" as const),
      retryOn: fc.subarray(["timeout", "worker_failure", "transient_connection"]),
      jitter: optional(fc.constantFrom(0, 0.5, 1)),
    }),
    timeouts: fc.record({
      queueMs: seldom(length),
      claimMs: seldom(length),
      executionMs: seldom(length),
      heartbeatMs: seldom(length),
      overallMs: seldom(length),
    }),
    approval: optional(
      fc.record({
        approverKinds: fc.constantFrom(["human"], ["human", "service"]),
        requiredApprovals: fc.integer({ min: 1, max: 2 }),
        approvalMs: seldom(length),
      }),
    ),
  })
  .map(({ approval, timeouts, ...changes }) => {
    const { approvalMs, ...policy } = approval ?? { approvalMs: undefined };
    return requestOf({
      ...changes,
      timeouts: { ...timeouts, approvalMs },
      approval: approval === undefined ? undefined : policy,
    });
  });

const verbs = {
  claim: 8,
  start: 5,
  heartbeat: 3,
  executionContext: 1,
  checkpoint: 3,
  complete: 2,
  fail: 4,
  confirmCancel: 2,
  cancel: 1,
  timeout: 1,
  retry: 3,
  decide: 4,
  recover: 4,
  expire: 4,
  admit: 1,
} as const;
type Verb = keyof typeof verbs;

/** What may lead on from a state; most steps draw from here, or most would come too late to do anything. */
const aims: Partial<Record<WorkloadState, readonly Verb[]>> = {
  AWAITING_APPROVAL: ["decide", "decide", "decide", "decide", "expire"],
  READY: ["claim", "claim", "claim", "claim", "claim", "claim", "expire", "timeout", "fail"],
  CLAIMED: ["start", "start", "start", "fail", "recover", "expire", "cancel", "timeout"],
  RUNNING: [
    "checkpoint",
    "checkpoint",
    "heartbeat",
    "complete",
    "fail",
    "fail",
    "recover",
    "expire",
    "cancel",
    "timeout",
  ],
  CHECKPOINTED: ["checkpoint", "heartbeat", "complete", "fail", "fail", "recover", "expire", "cancel", "timeout"],
  CANCELLATION_REQUESTED: ["confirmCancel", "recover", "heartbeat", "complete"],
  SUCCEEDED: ["complete", "complete", "fail", "heartbeat"],
  DEAD_LETTER: ["retry", "retry", "retry", "fail"],
};

/** One command in the rough; what its parts mean depends on the verb. */
interface Step {
  readonly verb: Verb;
  /** Given: draw the verb from {@link aims} instead. */
  readonly aim: number | undefined;
  /** How far time goes before the command, ms. */
  readonly jumpMs: number;
  /** Which holder speaks: 0 the current one, 1 a former one, 2 a forged one. */
  readonly holder: number;
  readonly worker: string;
  readonly content: string;
  readonly lengthMs: number;
  readonly flag: boolean;
  readonly servingSince: number | undefined;
}

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    verb: fc.oneof(
      ...Object.entries(verbs).map(([verb, weight]) => ({ weight, arbitrary: fc.constant(verb as Verb) })),
    ),
    aim: optional(fc.nat()),
    jumpMs: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom(0, 0, 1, 40) },
      { weight: 3, arbitrary: fc.constantFrom(100, 600, 7000) },
      { weight: 1, arbitrary: fc.constantFrom(-1, -50, -3_600_000, 3_600_000, 30 * 86_400_000) },
    ),
    holder: fc.oneof(
      { weight: 8, arbitrary: fc.constant(0) },
      { weight: 2, arbitrary: fc.integer({ min: 1, max: 2 }) },
    ),
    worker: fc.constantFrom("w1", "w2"),
    content: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom("one", "two", "three") },
      { weight: 1, arbitrary: fc.constant("sk-secret") },
    ),
    lengthMs: fc.constantFrom(1, 100, 1000, 1000, 100_000, 100_000, Number.MAX_SAFE_INTEGER),
    flag: fc.boolean(),
    servingSince: optional(fc.constantFrom(0, T0 + 100, T0 + 50_000)),
  }),
  { maxLength: 60, size: "max" },
);

/** What a sequence knows besides the record. */
interface World {
  readonly request: AdmitRequest;
  record: WorkloadRecord;
  now: number;
  readonly fences: Fence[];
}

const forged: Fence = { workloadId: "workload_x", claimId: "claim_x", workerId: "w1", fencingToken: 99 };

function fenceFor(world: World, step: Step): Fence {
  if (step.holder === 2) return forged;
  return world.fences.at(step.holder === 0 ? -1 : 0) ?? forged;
}

/** The verb of a step on this version of the record. */
function aimed(world: World, step: Step): Step {
  const choice = step.aim === undefined ? [] : (aims[world.record.state] ?? []);
  const verb = choice[(step.aim ?? 0) % Math.max(choice.length, 1)];
  return verb === undefined ? step : { ...step, verb };
}

const failKinds: Record<string, string> = { one: "timeout", two: "bug", three: "transient_connection" };

const deciderOf = (step: Step): DecideCommand["decider"] =>
  step.content === "three" ? requester : { kind: step.flag ? "human" : "service", id: step.content };

/** Makes the command of a step: something that can be put to any version of the record at any time. */
function commandOf(world: World, step: Step): (record: WorkloadRecord, instant: Instant) => Decision<unknown> {
  const fence = fenceFor(world, step);
  const met = new Map<string, WorkloadState>(
    step.content === "one"
      ? []
      : [
          ["a", "SUCCEEDED"],
          ["b", "FAILED"],
        ],
  );
  const operate = { actor: "olga", reason: step.content };
  const effect = step.flag ? undefined : step.holder === 1 ? "none" : "unknown";
  switch (step.verb) {
    case "claim": {
      const command = { workerId: step.worker, capabilities: ["cpu", "gpu"], leaseMs: step.lengthMs, start: step.flag };
      return (record, instant) => decideClaim(record, command, { ...instant, dependencies: met });
    }
    case "start":
      return (record, instant) => decideStart(record, fence, instant);
    case "heartbeat":
      return (record, instant) => decideHeartbeat(record, { fence, extendMs: step.lengthMs }, instant);
    case "executionContext":
      return (record, instant) =>
        decideExecutionContext(record, { fence, secretReferences: step.flag ? [] : [step.content] }, instant);
    case "checkpoint":
      return (record, instant) => decideCheckpoint(record, { fence, state: step.content }, { ...instant, rules });
    case "complete": {
      const resultId = step.flag ? "chosen" : undefined;
      const command = { fence, resultId, output: step.content, artifacts: [], schemaVersion: 1 };
      return (record, instant) => decideComplete(record, command, { ...instant, rules, reservedFor: undefined });
    }
    case "fail": {
      const command = { fence, kind: failKinds[step.content] ?? "timeout", error: step.content, effect };
      return (record, instant) => decideFail(record, command, { ...instant, rules });
    }
    case "confirmCancel":
      return (record, instant) => decideConfirmCancel(record, fence, instant);
    case "cancel":
      return (record, { now }) => decideCancel(record, operate, { now, rules });
    case "timeout":
      return (record, { now }) => decideTimeout(record, operate, { now, rules });
    case "retry":
      return (record, { now }) => decideRetry(record, operate, { now, rules });
    case "decide": {
      const outcome = step.holder === 0 ? "approved" : "rejected";
      const inputHash = step.lengthMs === 1 ? "stale" : world.record.inputHash;
      const command = { decider: deciderOf(step), outcome, reason: step.content, grantId: "g", inputHash } as const;
      return (record, { now }) => decideApproval(record, command, { now, rules });
    }
    case "recover":
      return (record, instant) => decideRecover(record, instant);
    case "expire": {
      const any = deadlineNames[(step.aim ?? 0) % deadlineNames.length] ?? "overall";
      const name = step.flag ? any : (passedDeadline(world.record, world.now)?.deadline ?? any);
      return (record, { now }) => decideExpire(record, name, now);
    }
    case "admit": {
      const request = step.flag ? world.request : { ...world.request, definitionRevision: step.content };
      return (record, { now }) => decideAdmit(record, request, { now, rules });
    }
  }
}

const fenced: readonly Verb[] = ["start", "heartbeat", "checkpoint", "complete", "fail", "confirmCancel"];
/** Verbs whose very repeat answers what was committed, and commits nothing more. */
const repeated: readonly Verb[] = ["complete", "fail", "decide", "recover"];
/** Verbs that may succeed without a change. */
const silent: readonly Verb[] = [
  "complete",
  "fail",
  "decide",
  "recover",
  "expire",
  "cancel",
  "admit",
  "executionContext",
];
const changingRefusals = ["WORKLOAD_TIMED_OUT", "WORKLOAD_ATTEMPTS_EXHAUSTED", "WORKLOAD_UNAUTHORIZED"];

function checkRefusal(decision: Decision<unknown>): void {
  if (decision.ok) return;
  assert(!JSON.stringify(decision.error).includes("sk-secret"), "a refusal repeats a secret");
  const mayChange = changingRefusals.includes(decision.error.code);
  assert(mayChange === (decision.change !== undefined), `${decision.error.code} and its change`);
}

function checkCommit(world: World, step: Step, taken: { readonly ok: boolean; readonly after: WorkloadRecord }): void {
  const { after } = taken;
  const before = world.record;
  const broken = [...findBrokenInvariants(after), ...findBrokenSuccession(before, after)];
  assert(broken.length === 0, `${step.verb} breaks ${broken.join("; ")}`);
  const text = JSON.stringify(after);
  assert(!text.includes("sk-secret"), `${step.verb} stores a secret`);
  assert(sameValue(JSON.parse(text), after), `${step.verb} stores what JSON can't carry`);
  if (!taken.ok || !fenced.includes(step.verb)) return;
  const { claimId, workerId, fencingToken } = fenceFor(world, step);
  const held = before.currentClaim;
  const holds = held?.claimId === claimId && held.workerId === workerId && held.fencingToken === fencingToken;
  assert(holds, `${step.verb} was let through without the fence`);
}

/** Takes one step: decides twice, commits once, and repeats what may be repeated. */
function take(world: World, step: Step): void {
  world.now += step.jumpMs;
  const instant: Instant = {
    now: world.now,
    ...(step.servingSince === undefined ? {} : { servingSince: step.servingSince }),
  };
  const command = commandOf(world, step);
  const decision = command(world.record, instant);
  assert(sameValue(decision, command(world.record, instant)), `${step.verb} decides differently the second time`);
  checkRefusal(decision);
  const { change } = decision;
  if (change === undefined) {
    assert(!decision.ok || silent.includes(step.verb), `${step.verb} succeeds without a change`);
    return;
  }
  const after = frozen(change.record);
  checkCommit(world, step, { ok: decision.ok, after });
  if (decision.ok && repeated.includes(step.verb)) {
    const again = command(after, instant);
    assert(again.ok, "the repeat of a committed call is refused");
    assert(again.change === undefined, `the repeat of ${step.verb} commits again`);
    assert(step.verb !== "complete" || sameValue(again.answer, decision.answer), "a repeat answers another result");
  }
  if (after.currentClaim !== undefined && after.fencingToken > world.record.fencingToken) {
    const { workloadId, claimId, workerId, fencingToken } = after.currentClaim;
    world.fences.push({ workloadId, claimId, workerId, fencingToken });
  }
  world.record = after;
}

/** Whatever happened: once it is cancelled and its lease is over, a workload has ended. */
function checkEnds(world: World): void {
  const cancelled = decideCancel(world.record, { actor: "olga" }, { now: world.now, rules });
  const record = cancelled.change?.record ?? world.record;
  const last = decideRecover(record, { now: Number.MAX_SAFE_INTEGER }).change?.record ?? record;
  expect(settledStates).toContain(last.state);
}

describe("random sequences of commands", () => {
  it("never break an invariant", () => {
    const reached = new Set<string>();
    fc.assert(
      fc.property(requests, steps, fc.boolean(), (request, sequence, imported) => {
        const admitted = accepted(decideAdmit(undefined, request, { now: T0, rules }));
        expect([findBrokenInvariants(admitted), findBrokenSuccession(undefined, admitted)]).toEqual([[], []]);
        const record = imported ? frozen({ ...admitted, contractVersion: 1 as const }) : admitted;
        const world: World = { request, record, now: T0, fences: [] };
        for (const step of sequence) take(world, aimed(world, step));
        if (imported) expect(world.record.history.every(({ evidence }) => !("deadline" in evidence))).toBe(true);
        for (const { from, to } of world.record.history) reached.add(`${from} ${to}`);
        checkEnds(world);
      }),
      parameters,
    );
    // Otherwise the sequences would have stopped to reach what they are here to try.
    if (parameters.seed === undefined) expect(reached.size).toBeGreaterThanOrEqual(30);
  });
});

describe("random requests", () => {
  it("replay to the original, and name what differs", () => {
    fc.assert(
      fc.property(requests, requests, (first, second) => {
        const record = accepted(decideAdmit(undefined, first, { now: T0, rules }));
        expect(decideAdmit(record, first, { now: T0 + 5, rules })).toEqual({
          ok: true,
          answer: { record, created: false },
        });
        const other = accepted(decideAdmit(undefined, second, { now: T0, rules }));
        const forth = decideAdmit(record, second, { now: T0, rules });
        const back = decideAdmit(other, first, { now: T0, rules });
        expect(forth.change ?? back.change).toBeUndefined();
        expect(forth.ok).toBe(back.ok);
        if (!forth.ok && !back.ok) expect(forth.error.details).toEqual(back.error.details);
      }),
      parameters,
    );
  });
});
