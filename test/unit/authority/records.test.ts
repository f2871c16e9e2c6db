/**
 * Goal: records that this version does not know are left alone and keep nothing else from being done, fields that it does
 * not know survive, all of an application's records live in one shard, and thousands of leases may end in one second.
 * Method: authorities over the simulated store in this process, with a hand in the store itself.
 */
import { describe, expect, it } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Authority } from "../../../src/authority/authority.ts";
import { shardOf, workloadPattern } from "../../../src/store/keys.ts";
import { noFaults } from "../../../src/store/simulated/faults.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import type { SimulatedStore } from "../../../src/store/simulated/simulated-store.ts";
import type { Commit, Shard, Store } from "../../../src/store/store.ts";
import { TestClock } from "../../../src/testing.ts";
import { packValue, unpackValue } from "../../../src/wire/codec.ts";
import { fenceOf, refusal, refusedWith, type Changes } from "./stage.ts";

const START = 1_000_000;
const scope = { tenantId: "acme", applicationId: "invoices" };
const requester = { kind: "service", id: "billing" };

/** Authorities over one simulated log, which the test may write too. */
class World {
  readonly clock = new TestClock(START);
  readonly log: SimulatedLog;
  readonly clients: SimulatedStore[] = [];
  readonly nodes: Authority[] = [];
  #keys = 0;

  constructor(shards = 1) {
    this.log = new SimulatedLog({ clock: this.clock, shards, history: true, seed: 3 });
  }

  async open(wrap: (store: Store) => Store = (store) => store): Promise<Authority> {
    const client = this.log.client();
    const nodeId = `n${this.nodes.length + 1}`;
    const node = new Authority({ store: wrap(client), nodeId, nonce: nodeId, clock: this.clock, log: silentLog });
    this.clock.onSet(() => node.clockMoved());
    this.clients.push(client);
    this.nodes.push(node);
    node.open();
    expect(await node.caughtUp(5000)).toBe(true);
    return node;
  }

  request(changes: Changes = {}): Changes {
    const { tenantId, applicationId } = { ...scope, ...changes };
    return {
      ...scope,
      environment: "production",
      definitionId: "render",
      definitionRevision: "7",
      trigger: "nightly",
      input: 1,
      requestedBy: requester,
      authorization: { grantId: "g", issuer: "i", subject: requester, tenantId, applicationId },
      idempotencyKey: `key-${(this.#keys += 1)}`,
      ...changes,
    };
  }

  /** Writes a workload as another version would. */
  rewrite(workloadId: string, change: (record: Record<string, unknown>) => void): void {
    const shard = this.log.shard(0);
    const entry = shard.read([workloadPattern(workloadId)]).get(workloadPattern(workloadId));
    assert(entry !== undefined, "it was admitted before");
    const record = unpackValue(entry.value) as Record<string, unknown>;
    change(record);
    const put = { key: entry.key, value: packValue(record), base: entry };
    expect(shard.apply({ operationId: `other:${entry.revision}`, puts: [put] }).kind).toBe("stored");
  }

  stored(workloadId: string): Record<string, unknown> {
    const pattern = workloadPattern(workloadId);
    const entry = this.log.shard(0).read([pattern]).get(pattern);
    assert(entry !== undefined, "it is stored");
    return unpackValue(entry.value) as Record<string, unknown>;
  }
}

const strangers: readonly (readonly [string, (record: Record<string, unknown>) => void])[] = [
  ["of a newer format", (record) => (record["v"] = 99)],
  ["in a state that is not known", (record) => (record["state"] = "SLEEPING")],
  ["of a newer contract", (record) => (record["contractVersion"] = 3)],
];

describe("records of another version", () => {
  it.each(strangers)("are never written when they are %s", async (_name, change) => {
    const world = new World();
    const node = await world.open();
    const { workload } = await node.admit(world.request({ priority: 9, timeouts: { queueMs: 10 } }));
    const { workloadId } = workload;
    const held = await node.admit(world.request());
    const claim = await node.claim({ workloadId: held.workload.workloadId, workerId: "w", leaseMs: 5 });
    for (const id of [workloadId, claim.workloadId]) world.rewrite(id, change);
    const other = await world.open();
    world.clock.set(START + 100);
    const before = [workloadId, claim.workloadId].map((id) => JSON.stringify(world.stored(id)));
    for (const authority of [node, other]) {
      expect(await authority.recoverExpired()).toEqual([]);
      expect(await authority.enforceDeadlines()).toEqual([]);
      const calls = [
        authority.cancel({ workloadId, actor: "olga" }),
        authority.claim({ workloadId, workerId: "w", leaseMs: 5 }),
        authority.retry({ workloadId, actor: "olga" }),
        authority.heartbeat({ ...fenceOf(claim), extendMs: 5 }),
      ];
      for (const call of calls) await refusal(call);
      expect(await authority.claimNext({ ...scope, workerId: "w", leaseMs: 5 })).toEqual([]);
    }
    expect(await refusedWith(other.cancel({ workloadId: claim.workloadId, actor: "olga" }))).toMatch(
      /^WORKLOAD_(MIGRATION_CONFLICT|TRANSITION_DENIED)$/,
    );
    expect([workloadId, claim.workloadId].map((id) => JSON.stringify(world.stored(id)))).toEqual(before);
  });

  it("are refused with the error that says so", async () => {
    const world = new World();
    const node = await world.open();
    const { workload } = await node.admit(world.request());
    world.rewrite(workload.workloadId, (record) => (record["v"] = 99));
    const call = node.cancel({ workloadId: workload.workloadId, actor: "olga" });
    expect(await refusedWith(call)).toBe("WORKLOAD_MIGRATION_CONFLICT");
  });

  it("keep nothing behind them from being handed out", async () => {
    const world = new World();
    const node = await world.open();
    const { workload } = await node.admit(world.request({ priority: 9 }));
    world.rewrite(workload.workloadId, (record) => (record["v"] = 99));
    const { workload: good } = await node.admit(world.request());
    const claims = await node.claimNext({ ...scope, workerId: "w", leaseMs: 5, requestId: "r" });
    expect(claims.map(({ workloadId }) => workloadId)).toEqual([good.workloadId]);
  });

  it("keep the fields that this version does not know, through every write", async () => {
    const world = new World();
    const node = await world.open();
    const { workload } = await node.admit(world.request());
    const { workloadId } = workload;
    const future = { nested: ["kept", { as: "it is" }] };
    world.rewrite(workloadId, (record) => (record["future"] = future));
    const other = await world.open();
    const claim = await other.claim({ workloadId, workerId: "w", leaseMs: 500, start: true });
    await node.heartbeat({ ...fenceOf(claim), extendMs: 100 });
    await other.checkpoint({ ...fenceOf(claim), state: 1 });
    await node.complete({ ...fenceOf(claim), output: 2 });
    expect(world.stored(workloadId)["future"]).toEqual(future);
  });

  it("keep no node from starting when they can't be read at all", async () => {
    const world = new World();
    const node = await world.open();
    const { workload } = await node.admit(world.request());
    const { workload: broken } = await node.admit(world.request());
    world.rewrite(workload.workloadId, (record) => {
      for (const name of Object.keys(record)) if (name !== "workloadId" && name !== "v") delete record[name];
    });
    world.rewrite(broken.workloadId, (record) => delete record["workloadId"]);
    const other = await world.open();
    await other.admit(world.request());
    expect(await other.claimNext({ ...scope, workerId: "w", leaseMs: 5 })).toHaveLength(1);
    expect(await refusedWith(other.get(broken.workloadId))).toBe("WORKLOAD_MIGRATION_CONFLICT");
  });
});

describe("three shards", () => {
  it("serve any number of applications, each from one shard, at every node", async () => {
    const world = new World(3);
    const [one, two] = [await world.open(), await world.open()];
    const used = new Set<number>();
    for (let index = 0; index < 12; index++) {
      const own = { tenantId: `tenant-${index}`, applicationId: "app" };
      used.add(shardOf(own, 3));
      const first = await one.admit(world.request(own));
      const { workloadId } = first.workload;
      const dependent = await two.admit(world.request({ ...own, dependencies: [{ workloadId }] }));
      const [claim] = await two.claimNext({ ...own, workerId: "w", leaseMs: 500, start: true });
      expect(claim?.workloadId).toBe(workloadId);
      if (claim !== undefined) await one.complete({ ...fenceOf(claim), output: 1, resultId: "same" });
      const [next] = await one.claimNext({ ...own, workerId: "w", leaseMs: 500 });
      expect(next?.workloadId).toBe(dependent.workload.workloadId);
      expect((await two.list({ tenantId: own.tenantId })).workloads).toHaveLength(2);
    }
    expect(used.size).toBe(3);
    expect((await one.list({ limit: 1000 })).workloads).toHaveLength(24);
    await two.resync();
    expect(await two.caughtUp(5000)).toBe(true);
    expect((await two.list({ limit: 1000 })).workloads).toHaveLength(24);
    world.clock.set(START + 1000);
    expect(await two.recoverExpired()).toHaveLength(12);
  });
});

/** A store that tells how many commits were under way at once. */
class CountingStore implements Store {
  readonly shards: readonly Shard[];
  readonly #store: Store;
  #now = 0;
  most = 0;

  constructor(store: Store) {
    this.#store = store;
    this.shards = store.shards.map((shard) => ({
      index: shard.index,
      read: (keys, options) => shard.read(keys, options),
      follow: (options) => shard.follow(options),
      commit: async (commit: Commit, options) => {
        this.#now += 1;
        this.most = Math.max(this.most, this.#now);
        try {
          return await shard.commit(commit, options);
        } finally {
          this.#now -= 1;
        }
      },
    }));
  }

  reachable(): boolean {
    return this.#store.reachable();
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

describe("five thousand leases that end in one second", () => {
  it("are recovered once each by two nodes, with a bounded number of commits at once, and no dearer each than a few", async () => {
    const world = new World();
    const counting: CountingStore[] = [];
    const open = (): Promise<Authority> =>
      world.open((store) => {
        const counted = new CountingStore(store);
        counting.push(counted);
        return counted;
      });
    const [one, two] = [await open(), await open()];
    const perLease: number[] = [];
    for (const [round, size] of [500, 5000].entries()) {
      for (let count = 0; count < size; count += 500)
        await one.admitMany(Array.from({ length: 500 }, () => world.request({ priority: size })));
      for (let count = 0; count < size; count += 100)
        await one.claimNext({ ...scope, workerId: `w${count}`, leaseMs: 1000, max: 100 });
      world.clock.set(START + 1000 * (round + 1));
      for (const store of counting) store.most = 0;
      const startedAt = performance.now();
      const told = (await Promise.all([one.recoverExpired(), two.recoverExpired()])).flat();
      perLease.push((performance.now() - startedAt) / size);
      expect(told).toHaveLength(size);
      expect(new Set(told).size).toBe(size);
      for (const store of counting) expect(store.most).toBeLessThanOrEqual(33);
    }
    const [few = 0, many = 0] = perLease;
    expect(many).toBeLessThan(5 * few + 1);
  }, 300_000);
});

describe("a creation whose answer was lost", () => {
  it("is made once, and found by every other writer of the same key", async () => {
    const world = new World();
    const [one, two] = [await world.open(), await world.open()];
    const request = world.request();
    world.clients[0]?.setFaults({ replyLost: 1 });
    const winner = one.admit(request);
    const loser = await two.admit(request);
    const different = await refusal(two.admit({ ...request, priority: 3 }));
    expect(different.code).toBe("IDEMPOTENCY_KEY_REUSED");
    world.clients[0]?.setFaults(noFaults);
    const won = await winner;
    expect([won.created, loser.created].filter(Boolean)).toHaveLength(1);
    expect(won.workload).toEqual(loser.workload);
  });

  it("is an unknown outcome when nothing can be found out in time, and its repeat tells the truth", async () => {
    const world = new World();
    const one = await world.open();
    const request = world.request();
    world.clients[0]?.setFaults({ replyLost: 1 });
    const error = await refusal(one.admit(request));
    expect(error).toMatchObject({ code: "WORKLOAD_OUTCOME_UNKNOWN", definite: false, retry: true });
    world.clients[0]?.setFaults(noFaults);
    expect(await one.admit(request)).toMatchObject({ created: false });
    const { history } = await one.get((await one.admit(request)).workload.workloadId);
    expect(history).toHaveLength(1);
  });

  it("did surely not happen when no server took it", async () => {
    const world = new World();
    const one = await world.open();
    world.log.beginOutage();
    const error = await refusal(one.admit(world.request()));
    expect(error).toMatchObject({ code: "WORKLOAD_STORAGE_FAILURE", definite: true });
    world.log.endOutage();
    expect(await one.list(scope)).toEqual({ workloads: [] });
  });
});
