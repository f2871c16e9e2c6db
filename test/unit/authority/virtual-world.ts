import type { Claim } from "../../../src/core/workload/record.ts";
import type { WorkerView } from "../../../src/core/worker/worker-view.ts";
import { EventQueue } from "../../../src/store/simulated/event-queue.ts";
import { calmFaults } from "../../../src/store/simulated/faults.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import { VirtualNode, type VirtualNodeOptions } from "../../simulation/virtual-node.ts";
import type { Changes } from "./stage.ts";

const START = 1_700_000_000_000;
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

const requester = { kind: "service", id: "billing" };
export const scope = { tenantId: "acme", applicationId: "invoices" };

/** Nodes with all their background work over one simulated store, in virtual time. */
export class World {
  readonly queue = new EventQueue({ startAt: START });
  /** What the servers' clock is off by, ms; may be changed at any time. */
  serverOffsetMs = 0;
  readonly log = new SimulatedLog({
    clock: { now: () => this.queue.now() + this.serverOffsetMs },
    queue: this.queue,
    seed: 5,
  });
  #keys = 0;

  node(nodeId: string, options: Partial<VirtualNodeOptions> = {}): VirtualNode {
    return new VirtualNode({ log: this.log, nodeId, faults: calmFaults, ...options });
  }

  /** Nodes that serve. */
  async nodes(...nodeIds: string[]): Promise<VirtualNode[]> {
    const nodes = nodeIds.map((nodeId) => this.node(nodeId));
    for (const node of nodes) await node.becomeReady();
    return nodes;
  }

  settle<Value>(promise: Promise<Value>): Promise<Value> {
    return this.queue.settle(promise);
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

  async running(node: VirtualNode, leaseMs: number, changes: Changes = {}): Promise<Claim> {
    const { workload } = await this.settle(node.authority.admit(this.request(changes)));
    const { workloadId } = workload;
    return this.settle(node.authority.claim({ workloadId, workerId: "w1", leaseMs, start: true }));
  }

  /** A worker of the registry that may be given work. */
  async worker(node: VirtualNode, changes: Changes = {}): Promise<WorkerView> {
    const described = { ...scope, name: "press-1", runtime: "process", version: "1.0", concurrency: 1, ...changes };
    const { worker } = await this.settle(node.authority.registerWorker(described));
    const { workerId, version, capabilityVersion } = worker;
    const timestamp = this.queue.now();
    const beat = { ...scope, workerId, version, capabilityVersion, health: "HEALTHY", timestamp };
    return (await this.settle(node.authority.heartbeatWorker(beat))).worker;
  }

  async stateOf(node: VirtualNode, workloadId: string): Promise<string> {
    return (await this.settle(node.authority.get(workloadId))).state;
  }

  /** How long until a promise settles, ms; it must within a minute. */
  async timed<Value>(promise: Promise<Value>): Promise<{ readonly value: Value; readonly tookMs: number }> {
    const from = this.queue.now();
    const value = await this.queue.settle(promise, 10 * MINUTE);
    return { value, tookMs: this.queue.now() - from };
  }
}

export const reasonsOf = (node: VirtualNode): string => node.readiness().reasons.join("; ");
