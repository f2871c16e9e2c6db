/**
 * Goal: a pool of a whole tenant counts in every one of its applications, though one commit can't reach both.
 * Method: two authorities over a store of several shards, and a tenant whose pools live in another shard than its
 * application; the view of one node stands still while the other changes the pool.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import { shardOf } from "../../../src/store/keys.ts";
import { createTestCluster, type Authority, type TestCluster } from "../../../src/testing.ts";
import type { WorkerView } from "../../../src/core/worker/worker-view.ts";

const SHARDS = 4;
const tenantId = "acme";
const applicationId = "billing";
const requester = { kind: "service", id: "billing" } as const;

describe("a pool of a whole tenant", () => {
  let cluster: TestCluster;
  let a: Authority;
  let b: Authority;

  beforeEach(async () => {
    cluster = await createTestCluster({ nodes: 2, now: 10_000, shards: SHARDS });
    const [one, two] = cluster.nodes;
    assert(one !== undefined && two !== undefined, "there are two nodes");
    [a, b] = [one, two];
  });

  afterEach(async () => {
    await cluster.release(b);
    await cluster.close();
  });

  const scope = { tenantId, applicationId };

  const registered = async (name: string): Promise<WorkerView> => {
    const request = { ...scope, name, runtime: "process", version: "1", concurrency: 1 };
    return (await a.registerWorker(request)).worker;
  };

  it("lives elsewhere than its application", () => {
    const ofPools = shardOf({ tenantId, applicationId: "" }, SHARDS);
    expect(shardOf({ tenantId, applicationId }, SHARDS)).not.toBe(ofPools);
  });

  it("is known to whoever claims in it, however old his view of its shard is", async () => {
    const { workerId, version, capabilityVersion } = await registered("press-1");
    const said = { ...scope, workerId, version, capabilityVersion, health: "HEALTHY", timestamp: 10_000 };
    await a.heartbeatWorker(said);
    await cluster.release(b);
    await cluster.hold(b);
    const { poolId } = await a.createPool({ tenantId, name: "presses", workerIds: [workerId] });
    const { workload } = await a.admit({
      tenantId,
      applicationId,
      environment: "production",
      definitionId: "render",
      definitionRevision: "7",
      trigger: "nightly",
      input: {},
      requestedBy: requester,
      authorization: { grantId: "grant_1", issuer: "issuer", subject: requester, tenantId, applicationId },
      idempotencyKey: "key",
      placement: { poolId },
    });
    const claim = await b.claim({ workloadId: workload.workloadId, workerId, leaseMs: 5000 });
    expect(claim.workerId).toBe(workerId);
  });

  it("loses a worker that is removed by a node which has not seen its last change", async () => {
    const gone = await registered("press-1");
    const stays = await registered("press-2");
    const { poolId } = await a.createPool({ tenantId, name: "presses", workerIds: [gone.workerId] });
    await cluster.release(b);
    await cluster.hold(b);
    await a.changePool({ tenantId, poolId, add: [stays.workerId] });
    await b.removeWorker({ tenantId, applicationId, workerId: gone.workerId });
    expect((await a.getPool({ tenantId, poolId })).workerIds).toEqual([stays.workerId]);
  });
});
