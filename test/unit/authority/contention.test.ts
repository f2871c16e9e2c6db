/**
 * Goal: what one workload suffers, no other feels; and a decision that others keep overtaking ends in a refusal that says
 * that nothing happened.
 * Method: an authority over a store whose commits of one workload come to what the test says.
 */
import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { Authority } from "../../../src/authority/authority.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import { StoreUnavailable, type CommitOutcome, type Store } from "../../../src/store/store.ts";
import { TestClock } from "../../../src/testing.ts";
import { fenceOf, refusal, refusedWith, type Changes } from "./stage.ts";

const START = 1_000_000;
const scope = { tenantId: "acme", applicationId: "invoices" };
const requester = { kind: "service", id: "billing" };

type Meddle = (key: string) => Promise<CommitOutcome | undefined> | undefined;

const meddledStore = (store: Store, meddle: Meddle): Store => ({
  shards: store.shards.map((shard) => ({
    index: shard.index,
    read: (keys, options) => shard.read(keys, options),
    follow: (options) => shard.follow(options),
    commit: async (commit, options) => (await meddle(commit.puts[0]?.key ?? "")) ?? shard.commit(commit, options),
  })),
  reachable: () => store.reachable(),
  close: () => store.close(),
});

class World {
  readonly clock = new TestClock(START);
  readonly log = new SimulatedLog({ clock: this.clock, seed: 3, history: true });
  readonly pauses: number[] = [];
  meddle: Meddle = () => undefined;
  #keys = 0;

  async open(nodeId: string, store: Store = this.log.client()): Promise<Authority> {
    const node = new Authority({
      store,
      nodeId,
      nonce: nodeId,
      clock: this.clock,
      log: silentLog,
      pause: async (ms) => {
        this.pauses.push(ms);
      },
    });
    node.open();
    expect(await node.caughtUp(5000)).toBe(true);
    return node;
  }

  meddled(): Promise<Authority> {
    return this.open(
      "meddled",
      meddledStore(this.log.client(), (key) => this.meddle(key)),
    );
  }

  request(changes: Changes = {}): Changes {
    return {
      ...scope,
      environment: "production",
      definitionId: "render",
      definitionRevision: "7",
      trigger: "nightly",
      input: 1,
      requestedBy: requester,
      authorization: { grantId: "g", issuer: "i", subject: requester, ...scope },
      idempotencyKey: `key-${(this.#keys += 1)}`,
      ...changes,
    };
  }
}

const badOutcomes: readonly CommitOutcome[] = [
  { kind: "unknown", cause: "no answer" },
  { kind: "unreached", cause: "no server" },
  { kind: "unacceptable", cause: "too large" },
];

describe("a pass", () => {
  it.each(badOutcomes)("goes on with the others when one workload's commit is $kind", async (outcome) => {
    const world = new World();
    const node = await world.meddled();
    const timeouts = { executionMs: 50 };
    const ids: string[] = [];
    for (let index = 0; index < 5; index++) await node.admit(world.request({ timeouts }));
    for (const claim of await node.claimNext({ ...scope, workerId: "w", leaseMs: 100, max: 5, start: true }))
      ids.push(claim.workloadId);
    const [bad = "", ...good] = ids;
    world.meddle = (key) => (key.endsWith(bad) ? Promise.resolve(outcome) : undefined);
    world.clock.set(START + 50);
    expect([...(await node.enforceDeadlines())].sort()).toEqual([...good].sort());
    world.clock.set(START + 100);
    expect(await node.recoverExpired()).toEqual([]);
    world.meddle = () => undefined;
    expect(await node.enforceDeadlines()).toEqual([bad]);
  });

  it("goes on with the others when the store gives no answer about one", async () => {
    const world = new World();
    const node = await world.meddled();
    const [one, two] = [await node.admit(world.request()), await node.admit(world.request())];
    for (const { workload } of [one, two])
      await node.claim({ workloadId: workload.workloadId, workerId: "w", leaseMs: 100 });
    world.meddle = (key) =>
      key.endsWith(one.workload.workloadId) ? Promise.reject(new StoreUnavailable("no answer")) : undefined;
    world.clock.set(START + 100);
    expect(await node.recoverExpired()).toEqual([two.workload.workloadId]);
  });
});

describe("a claimNext that meets a workload whose commits fail", () => {
  it("hands out what is behind it", async () => {
    const world = new World();
    const node = await world.meddled();
    const { workload: bad } = await node.admit(world.request({ priority: 9 }));
    const { workload: good } = await node.admit(world.request());
    world.meddle = (key) =>
      key.endsWith(bad.workloadId) ? Promise.resolve({ kind: "refused", newer: key }) : undefined;
    const claims = await node.claimNext({ ...scope, workerId: "w", leaseMs: 100, max: 2 });
    expect(claims.map(({ workloadId }) => workloadId)).toEqual([good.workloadId]);
  });
});

describe("a decision that others keep overtaking", () => {
  it("is taken anew a bounded number of times, with pauses, and then refused as not having happened", async () => {
    const world = new World();
    const [node, rival] = [await world.meddled(), await world.open("rival")];
    const { workload } = await node.admit(world.request());
    const { workloadId } = workload;
    const claim = await node.claim({ workloadId, workerId: "w", leaseMs: 1000, start: true });
    let rounds = 0;
    world.meddle = async (key) => {
      if (!key.endsWith(workloadId)) return undefined;
      rounds += 1;
      await rival.heartbeat({ ...fenceOf(claim), extendMs: 1000 });
      return undefined;
    };
    const error = await refusal(node.checkpoint({ ...fenceOf(claim), state: 1 }));
    expect(error).toMatchObject({ code: "WORKLOAD_CONFLICT", definite: true, retry: true });
    expect(rounds).toBeGreaterThan(10);
    expect(rounds).toBeLessThan(100);
    expect(world.pauses.length).toBeGreaterThan(5);
    for (const pause of world.pauses) expect(pause).toBeLessThanOrEqual(100);
    expect((await rival.get(workloadId)).checkpoints).toEqual([]);
  });

  it("is not taken once the state no longer allows it", async () => {
    const world = new World();
    const [node, rival] = [await world.meddled(), await world.open("rival")];
    const { workload } = await node.admit(world.request());
    const { workloadId } = workload;
    world.meddle = async (key) => {
      if (!key.endsWith(workloadId)) return undefined;
      world.meddle = () => undefined;
      await rival.cancel({ workloadId, actor: "olga" });
      return undefined;
    };
    expect(await refusedWith(node.claim({ workloadId, workerId: "w", leaseMs: 5 }))).toBe("WORKLOAD_NOT_READY");
  });
});
