import { assert } from "../../../src/base/assert.ts";
import type { Claim } from "../../../src/core/workload/record.ts";
import type { WorkerView } from "../../../src/core/worker/worker-view.ts";
import type { Authority } from "../../../src/testing.ts";
import { LEASE_MS, Scene, type Changes, type Stage } from "./stage.ts";

/** A worker of the registry within a scene. */
export class Crew {
  readonly scene: Scene;

  constructor(stage: Stage) {
    this.scene = new Scene(stage);
  }

  scope(): { readonly tenantId: string; readonly applicationId: string } {
    const { tenantId, applicationId } = this.scene;
    return { tenantId, applicationId };
  }

  async register(changes: Changes = {}, node: Authority = this.scene.a): Promise<WorkerView> {
    const request = { ...this.scope(), name: "press-1", runtime: "process", version: "1.0", concurrency: 1 };
    return (await node.registerWorker({ ...request, ...changes })).worker;
  }

  beat(worker: WorkerView, changes: Changes = {}, node: Authority = this.scene.a): Promise<WorkerView> {
    const { workerId, version, capabilityVersion } = worker;
    const timestamp = this.scene.cluster.clock.now();
    const heartbeat = { ...this.scope(), workerId, version, capabilityVersion, health: "HEALTHY", timestamp };
    return node.heartbeatWorker({ ...heartbeat, ...changes }).then((answer) => answer.worker);
  }

  /** Registered and heard: it may be given work, by any node. */
  async ready(changes: Changes = {}): Promise<WorkerView> {
    const worker = await this.beat(await this.register(changes));
    await this.scene.together();
    return worker;
  }

  next(worker: WorkerView, changes: Changes = {}, node: Authority = this.scene.a): Promise<readonly Claim[]> {
    return node.claimNext({ ...this.scope(), workerId: worker.workerId, leaseMs: LEASE_MS, ...changes });
  }

  claim(worker: WorkerView, workloadId: string, node: Authority = this.scene.a): Promise<Claim> {
    return node.claim({ workloadId, workerId: worker.workerId, leaseMs: LEASE_MS, start: true });
  }

  shown({ workerId }: WorkerView, node: Authority = this.scene.a): Promise<WorkerView> {
    return node.getWorker({ ...this.scope(), workerId });
  }

  async admit(count: number, changes: Changes = {}): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index++) ids.push((await this.scene.admitted(changes)).workloadId);
    await this.scene.together();
    return ids;
  }
}

/** The one claim that was asked for. */
export const first = (claims: readonly Claim[]): Claim => {
  const [claim] = claims;
  assert(claim !== undefined, "something was handed out");
  return claim;
};
