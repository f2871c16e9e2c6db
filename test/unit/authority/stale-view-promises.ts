import { expect, it } from "vitest";
import type { Claim, Workload } from "../../../src/core/workload/record.ts";
import type { Authority } from "../../../src/testing.ts";
import { approver, eventsOf, fenceOf, LEASE_MS, outcomeOf, Scene, type Changes, type Stage } from "./stage.ts";

/** A workload in the middle of its life, twice: one that the stale node is asked about, one that is asked at a current node. */
interface Subject {
  readonly workloadId: string;
  readonly claim: Claim | undefined;
  readonly workload: Workload;
}

interface Situation {
  readonly name: string;
  readonly prepare: (scene: Scene, key: string) => Promise<Subject>;
  /** What is committed at another node while the stale one looks away. The clock may move. */
  readonly commit: (scene: Scene, subject: Subject) => Promise<unknown>;
  /** Moves the clock once, before anything is committed. */
  readonly clockBy?: number;
}

const claimOf = ({ claim, workload }: Subject): Claim => {
  if (claim === undefined) expect.fail(`${workload.workloadId} is not claimed`);
  return claim;
};

const held =
  (changes: Changes = {}, start = true) =>
  async (scene: Scene, key: string): Promise<Subject> => {
    const claim = await scene.claimed({ ...changes, idempotencyKey: key }, { start });
    return { workloadId: claim.workloadId, claim, workload: await scene.a.get(claim.workloadId) };
  };

const unclaimed =
  (changes: Changes = {}) =>
  async (scene: Scene, key: string): Promise<Subject> => {
    const workload = await scene.admitted({ ...changes, idempotencyKey: key });
    return { workloadId: workload.workloadId, claim: undefined, workload };
  };

const dead = async (scene: Scene, key: string): Promise<Subject> => {
  const subject = await held({ retryPolicy: { maxAttempts: 1 } })(scene, key);
  await scene.a.fail({ ...fenceOf(claimOf(subject)), kind: "bug", error: "x" });
  return subject;
};

const situations: readonly Situation[] = [
  {
    name: "a completion",
    prepare: held(),
    commit: (scene, subject) => scene.a.complete(scene.completeArguments(claimOf(subject))),
  },
  {
    name: "a failure that is retried",
    prepare: held(),
    commit: (scene, subject) =>
      scene.a.fail({ ...fenceOf(claimOf(subject)), kind: "transient_connection", error: "x" }),
  },
  {
    name: "a failure for good",
    prepare: held(),
    commit: (scene, subject) => scene.a.fail({ ...fenceOf(claimOf(subject)), kind: "bug", error: "x" }),
  },
  { name: "a recovery", prepare: held(), clockBy: LEASE_MS, commit: (scene) => scene.a.recoverExpired() },
  {
    name: "a recovery and another claim",
    prepare: held(),
    clockBy: LEASE_MS,
    commit: async (scene, { workloadId }) => {
      await scene.a.recoverExpired();
      await scene.a.claim(scene.claimArguments(workloadId, { workerId: "w2", start: true }));
    },
  },
  {
    name: "a cancellation of held work",
    prepare: held(),
    commit: (scene, { workloadId }) => scene.a.cancel({ workloadId, actor: "olga" }),
  },
  {
    name: "a cancellation of waiting work",
    prepare: unclaimed(),
    commit: (scene, { workloadId }) => scene.a.cancel({ workloadId, actor: "olga" }),
  },
  {
    name: "a time-out by an operator",
    prepare: held(),
    commit: (scene, { workloadId }) => scene.a.timeout({ workloadId, actor: "olga" }),
  },
  {
    name: "an expiry",
    prepare: held({ timeouts: { executionMs: 50 } }),
    clockBy: 50,
    commit: (scene) => scene.a.enforceDeadlines(),
  },
  {
    name: "a claim",
    prepare: unclaimed(),
    commit: (scene, { workloadId }) => scene.a.claim(scene.claimArguments(workloadId)),
  },
  { name: "a start", prepare: held({}, false), commit: (scene, subject) => scene.a.start(fenceOf(claimOf(subject))) },
  {
    name: "a checkpoint",
    prepare: held(),
    commit: (scene, subject) => scene.a.checkpoint({ ...fenceOf(claimOf(subject)), state: { page: 1 } }),
  },
  {
    name: "a renewal",
    prepare: held(),
    clockBy: LEASE_MS - 1,
    commit: (scene, subject) => scene.a.heartbeat({ ...fenceOf(claimOf(subject)), extendMs: 50 }),
  },
  {
    name: "an approval",
    prepare: unclaimed({ approval: {} }),
    commit: (scene, { workload }) => scene.a.decide(scene.decideArguments(workload)),
  },
  {
    name: "a rejection",
    prepare: unclaimed({ approval: {} }),
    commit: (scene, { workload }) =>
      scene.a.decide(scene.decideArguments(workload, { outcome: "rejected", reason: "no" })),
  },
  {
    name: "a re-arm",
    prepare: dead,
    commit: (scene, { workloadId }) => scene.a.retry({ workloadId, actor: "olga" }),
  },
];

/** A fence for calls about work that nobody holds. */
const nobody = (workloadId: string): Changes => ({ workloadId, claimId: "claim_x", workerId: "w1", fencingToken: 1 });

const calls: Readonly<Record<string, (scene: Scene, node: Authority, subject: Subject) => Promise<unknown>>> = {
  claim: (scene, node, { workloadId }) => node.claim(scene.claimArguments(workloadId, { workerId: "w3" })),
  start: (_scene, node, subject) => node.start(fenceFor(subject)),
  heartbeat: (_scene, node, subject) => node.heartbeat({ ...fenceFor(subject), extendMs: LEASE_MS }),
  executionContext: (_scene, node, subject) => node.executionContext({ ...fenceFor(subject), secretReferences: [] }),
  checkpoint: (_scene, node, subject) => node.checkpoint({ ...fenceFor(subject), state: { page: 2 } }),
  complete: (_scene, node, subject) => node.complete({ ...fenceFor(subject), output: { pages: 4 } }),
  fail: (_scene, node, subject) => node.fail({ ...fenceFor(subject), kind: "transient_connection", error: "y" }),
  confirmCancel: (_scene, node, subject) => node.confirmCancel(fenceFor(subject)),
  cancel: (_scene, node, { workloadId }) => node.cancel({ workloadId, actor: "otto" }),
  timeout: (_scene, node, { workloadId }) => node.timeout({ workloadId, actor: "otto" }),
  retry: (_scene, node, { workloadId }) => node.retry({ workloadId, actor: "otto" }),
  approve: (scene, node, { workload }) =>
    node.decide(scene.decideArguments(workload, { decider: { kind: "human", id: "bob" } })),
  reject: (scene, node, { workload }) =>
    node.decide(scene.decideArguments(workload, { decider: approver, outcome: "rejected", reason: "not this" })),
  explain: (_scene, node, { workloadId }) => node.explain(workloadId),
};

const fenceFor = ({ claim, workloadId }: Subject): Changes =>
  claim === undefined ? nobody(workloadId) : { ...fenceOf(claim) };

/** Takes what differs between twins out of an answer. */
function comparable(value: unknown, subject: Subject): unknown {
  const text = JSON.stringify(value).replaceAll(subject.workloadId, "WORKLOAD");
  return JSON.parse(text.replaceAll(/claim_[0-9a-f]{20}/g, "CLAIM")) as unknown;
}

/** Contract 5.4 and 1.14: whatever a node's view has missed, it answers as a node does that has missed nothing. */
export function describeStaleViews(stage: Stage): void {
  it.each(situations)(
    "answers every call as a current node does, when its view has missed $name",
    async (situation) => {
      const scene = new Scene(stage);
      const names = Object.keys(calls);
      const pairs = await Promise.all(
        names.map(async (name) => ({
          name,
          stale: await situation.prepare(scene, `${name}-stale`),
          current: await situation.prepare(scene, `${name}-current`),
        })),
      );
      await scene.together();
      await scene.cluster.hold(scene.b);
      scene.cluster.clock.set(scene.start + (situation.clockBy ?? 0));
      for (const { stale, current } of pairs) {
        await situation.commit(scene, stale);
        await situation.commit(scene, current);
      }
      for (const { name, stale, current } of pairs) {
        const call = calls[name];
        if (call === undefined) continue;
        const [told, expected] = [
          await outcomeOf(call(scene, scene.b, stale)),
          await outcomeOf(call(scene, scene.a, current)),
        ];
        expect([name, comparable(told, stale)]).toEqual([name, comparable(expected, current)]);
        const [left, right] = [await scene.c.get(stale.workloadId), await scene.c.get(current.workloadId)];
        expect([name, eventsOf(left)]).toEqual([name, eventsOf(right)]);
      }
    },
  );
}
