/**
 * Goal: the model of the rules says the same as the contract, and names the rule that a commit breaks.
 * Method: commits by hand, from a story; each test changes one thing and reads what the model says about it.
 */
import { describe, expect, it } from "vitest";
import { Story, STORY_LEASE_MS } from "../../chaos/fixtures/story.ts";
import { deadlinesOf, passedDeadline } from "../../chaos/model/deadlines.ts";
import { explainCommit } from "../../chaos/model/explain.ts";
import { claimIdOf, hashOf, workloadIdOf } from "../../chaos/model/identities.ts";
import { afterEnd, backoffOf } from "../../chaos/model/retry.ts";
import { same } from "../../chaos/model/same.ts";
import { eventTypeOf, mayMove } from "../../chaos/model/states.ts";
import type { Step, World } from "../../chaos/model/step.ts";
import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import { workloadStates, type WorkloadState } from "../../src/core/workload/states.ts";

const alone: World = { stateOf: () => undefined };

const rulesOf = ({ breaches }: Step): readonly string[] => breaches.map(({ rule }) => rule);

/** A story with one workload that is admitted. */
function begun(changes: Readonly<Record<string, unknown>> = {}): { story: Story; record: WorkloadRecord } {
  const story = new Story();
  const id = story.admit("a", changes);
  return { story, record: story.record(id) };
}

describe("the table", () => {
  it("has the moves of the contract and no others", () => {
    const moves = workloadStates.flatMap((from) => workloadStates.filter((to) => mayMove(from, to)));
    expect(moves).toHaveLength(41);
    expect(workloadStates.filter((from) => mayMove(from, "CLAIMED"))).toEqual(["READY"]);
    for (const end of ["SUCCEEDED", "CANCELLED", "REJECTED"] satisfies WorkloadState[])
      expect(workloadStates.filter((to) => mayMove(end, to))).toEqual([]);
    expect(eventTypeOf("DEAD_LETTER")).toBe("workload.dead_lettered");
  });
});

describe("identities", () => {
  it("are those of the contract", () => {
    const scope = { tenantId: "t", applicationId: "a", requestedBy: { kind: "human", id: "h" }, idempotencyKey: "k" };
    expect(workloadIdOf(scope as Parameters<typeof workloadIdOf>[0])).toMatch(/^workload_[0-9a-f]{24}$/);
    expect(claimIdOf("w", 1, "x")).toMatch(/^claim_[0-9a-f]{20}$/);
    expect(hashOf({ b: 1, a: [true, null] })).toBe(hashOf(JSON.parse('{"a":[true,null],"b":1}')));
  });
});

describe("the back-off", () => {
  const withPolicy = (policy: object): WorkloadRecord =>
    ({
      retryPolicy: { maxAttempts: 3, retryOn: ["timeout"], ...policy },
      history: [],
      attemptCount: 1,
    }) as unknown as WorkloadRecord;

  it("doubles up to its maximum, or is fixed", () => {
    const doubling = withPolicy({ initialDelayMs: 100, maxDelayMs: 350, backoff: "exponential" });
    expect([1, 2, 3, 4, 5000].map((retry) => backoffOf(doubling, retry)[0])).toEqual([100, 200, 350, 350, 350]);
    const fixed = withPolicy({ initialDelayMs: 100, maxDelayMs: 350, backoff: "fixed" });
    expect(backoffOf(fixed, 7)).toEqual([100, 100]);
  });

  it("may be drawn within its jitter", () => {
    const drawn = withPolicy({ initialDelayMs: 100, maxDelayMs: 100, backoff: "fixed", jitter: 0.5 });
    expect(backoffOf(drawn, 1)).toEqual([50, 150]);
  });

  it("is only for what the policy retries, within the budget", () => {
    const record = withPolicy({});
    expect(afterEnd(record, { retriedAs: "timeout", otherwise: "no" })).toEqual({ to: "READY", decision: "retry" });
    expect(afterEnd(record, { retriedAs: "bug", otherwise: "no" })).toEqual({ to: "DEAD_LETTER", decision: "no" });
    const used = { ...record, attemptCount: 3 };
    const exhausted = { to: "DEAD_LETTER", decision: "attempt_budget_exhausted" };
    expect(afterEnd(used, { retriedAs: "timeout", otherwise: "no" })).toEqual(exhausted);
  });
});

describe("deadlines", () => {
  it("run in their states alone, and the first in the contract's order counts", () => {
    const timeouts = { queueMs: 50, overallMs: 1000, claimMs: 10, executionMs: 20, heartbeatMs: 5 };
    const { story, record } = begun({ timeouts });
    const { createdAt } = record;
    expect(deadlinesOf(record)).toEqual([
      { deadline: "overall", deadlineAt: createdAt + 1000 },
      { deadline: "queue", deadlineAt: createdAt + 50 },
    ]);
    expect(passedDeadline(record, createdAt + 49)).toBeUndefined();
    expect(passedDeadline(record, createdAt + 50)?.deadline).toBe("queue");
    expect(passedDeadline(record, createdAt + 1000)?.deadline).toBe("overall");
    const running = story.claimed(record, "w1");
    expect(deadlinesOf(running).map(({ deadline }) => deadline)).toEqual(["overall", "execution", "heartbeat"]);
    expect(deadlinesOf({ ...running, contractVersion: 1 })).toEqual([]);
  });
});

describe("a commit", () => {
  it("of an admission is explained, and its identity is checked", () => {
    const { record } = begun();
    expect(explainCommit(undefined, record, alone)).toMatchObject({ command: "admit", breaches: [] });
    expect(rulesOf(explainCommit(undefined, { ...record, workloadId: "workload_0" }, alone))).toEqual(["succession"]);
  });

  it("of a claim takes the next token, within budget, time and dependencies", () => {
    const { story, record } = begun();
    expect(explainCommit(record, story.claimed(record, "w1"), alone)).toMatchObject({ command: "claim", breaches: [] });
    const early = { ...record, nextAttemptAt: story.now + 1 };
    expect(rulesOf(explainCommit(early, story.claimed(early, "w1"), alone))).toEqual(["timing"]);
    const spent = { ...record, attemptCount: 2 };
    expect(rulesOf(explainCommit(spent, story.claimed(spent, "w1"), alone))).toContain("budget");
    const bound = { ...record, dependencies: [{ workloadId: "workload_b", requiredState: "SUCCEEDED" as const }] };
    expect(rulesOf(explainCommit(bound, story.claimed(bound, "w1"), alone))).toEqual(["succession"]);
    const done: World = { stateOf: () => "SUCCEEDED" };
    expect(rulesOf(explainCommit(bound, story.claimed(bound, "w1"), done))).toEqual([]);
  });

  it("of a claim that skips a token, or comes back to one, is named", () => {
    const { story, record } = begun();
    const skipping = story.claimed({ ...record, fencingToken: 4 }, "w1");
    expect(rulesOf(explainCommit(record, skipping, alone))).toContain("tokens");
  });

  it("of gated work needs its approval", () => {
    const { story, record } = begun({ approval: {} });
    expect(rulesOf(explainCommit(record, story.claimed(record, "w1"), alone))).toContain("approval");
  });

  it("of a worker after its lease says by how much it was late", () => {
    const { story, record } = begun();
    const claim = story.claim(record.workloadId, "w1");
    const before = story.record(record.workloadId);
    story.now = claim.expiresAt + 250;
    story.complete(claim);
    const step = explainCommit(before, story.record(record.workloadId), alone);
    expect(step).toMatchObject({ command: "complete", lateByMs: 250, breaches: [] });
  });

  it("of a worker after a deadline should have been an expiry", () => {
    const { story, record } = begun({ timeouts: { executionMs: 100 } });
    const claim = story.claim(record.workloadId, "w1");
    const before = story.record(record.workloadId);
    story.wait(100).heartbeat(claim);
    expect(rulesOf(explainCommit(before, story.record(record.workloadId), alone))).toEqual(["succession"]);
  });

  it("of a recovery before the end of the lease is early", () => {
    const { story, record } = begun();
    const claim = story.claim(record.workloadId, "w1");
    const before = story.record(record.workloadId);
    story.now = claim.expiresAt;
    story.recover(record.workloadId);
    const right = explainCommit(before, story.record(record.workloadId), alone);
    expect(right).toMatchObject({ command: "recover", dueAt: claim.expiresAt, breaches: [] });
    const longer = { ...before, currentClaim: { ...claim, expiresAt: claim.expiresAt + STORY_LEASE_MS } };
    expect(rulesOf(explainCommit(longer, story.record(record.workloadId), alone))).toContain("timing");
  });

  it("that forgets its back-off is a breach", () => {
    const policy = { maxAttempts: 2, initialDelayMs: 500, maxDelayMs: 500, backoff: "fixed" };
    const { story, record } = begun({ retryPolicy: policy });
    const claim = story.claim(record.workloadId, "w1");
    const before = story.record(record.workloadId);
    const failed = story.moved(
      story.ended(before, { status: "FAILED", endedAt: story.now, error: "it broke" }),
      {
        to: "FAILED",
        actor: "w1",
        evidence: { failureKind: "timeout", attemptId: before.attempts[0]?.attemptId ?? "" },
      },
      { to: "READY", actor: "authority.retry", evidence: { decision: "retry" } },
    );
    const after = { ...failed, lastFailure: "timeout: it broke", retryCount: 1, nextAttemptAt: story.now + 500 };
    expect(explainCommit(before, after, alone)).toMatchObject({ command: "fail", breaches: [] });
    expect(rulesOf(explainCommit(before, { ...after, nextAttemptAt: story.now }, alone))).toEqual(["succession"]);
    expect(claim.fencingToken).toBe(1);
  });

  it("that no command makes is a breach", () => {
    const { record } = begun();
    expect(explainCommit(record, { ...record, priority: 5 }, alone)).toMatchObject({ command: "none" });
    expect(rulesOf(explainCommit(record, { ...record, priority: 5 }, alone))).toEqual(["succession"]);
  });
});

describe("values", () => {
  it("are the same whatever the order of members, and absent is as good as undefined", () => {
    expect(same({ a: 1, b: [{ c: undefined }] }, { b: [{}], a: 1 })).toBe(true);
    expect(same([1, 2], [2, 1])).toBe(false);
    expect(same({ a: null }, {})).toBe(false);
  });
});

describe("work whose requester's grant has ended", () => {
  const disowned = (story: Story, record: WorkloadRecord, grantId = record.authorization.grantId): WorkloadRecord =>
    story.moved(record, {
      to: "DEAD_LETTER",
      actor: "authority.claim",
      evidence: { decision: "authorization_lost", reason: "revoked", grantId },
    });

  it("is given up by the claim that finds it, and says which grant it was", () => {
    const { story, record } = begun();
    const step = explainCommit(record, disowned(story, record), alone);
    expect(step.command).toBe("disown");
    expect(step.breaches).toEqual([]);
    expect(rulesOf(explainCommit(record, disowned(story, record, "another"), alone))).toEqual(["succession"]);
  });

  it("is not given up when it keeps what was admitted", () => {
    const { story, record } = begun();
    const keeping: WorkloadRecord = { ...record, reauthorize: "never" };
    expect(rulesOf(explainCommit(keeping, disowned(story, keeping), alone))).toEqual(["succession"]);
  });
});
