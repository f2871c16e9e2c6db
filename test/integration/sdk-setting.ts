import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNatsCluster, type NatsCluster } from "../../cluster/nats-cluster.ts";
import { poll } from "../../cluster/poll.ts";
import { silentLog } from "../../src/base/log.ts";
import { readConfig } from "../../src/config.ts";
import type { Workload } from "../../src/core/workload/record.ts";
import { Node } from "../../src/node/node.ts";
import type { AdmitRequest } from "../../src/sdk/answers.ts";
import { connect, type Client } from "../../src/sdk/client.ts";
import { runWorker, type RunningWorker } from "../../src/sdk/worker.ts";
import type { WorkerOptions } from "../../src/sdk/worker-options.ts";

export const scope = { tenantId: "tenant", applicationId: "application" } as const;

/** Waits for a signal; answers why it was given. */
export const untilAborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));

type NewWorker = Pick<WorkerOptions, "handler"> & Partial<WorkerOptions>;

/** One real nats-server, nodes in this process wired as `mandate serve` wires them, and workers of the library. */
export class SdkSetting {
  readonly nats: NatsCluster;
  readonly nodes: Node[] = [];
  readonly client: Client;
  readonly #directory: string;
  readonly #workers: RunningWorker[] = [];

  private constructor(nats: NatsCluster, directory: string, nodes: readonly Node[]) {
    this.nats = nats;
    this.#directory = directory;
    this.nodes = [...nodes];
    this.client = connect({ servers: nodes.map(({ url }) => url), subject: { kind: "service", id: "tester" } });
  }

  static async start(nodes = 1): Promise<SdkSetting> {
    const directory = await mkdtemp(join(tmpdir(), "mandate-sdk-"));
    const nats = await startNatsCluster({ servers: 1, directory });
    const started = await Promise.all(Array.from({ length: nodes }, (_, index) => startNode(nats, `node-${index}`)));
    return new SdkSetting(nats, directory, started);
  }

  /** Another node of the same store, at a port of its own or at a given one. */
  async addNode(name: string, port?: number): Promise<Node> {
    const node = await startNode(this.nats, name, port);
    this.nodes.push(node);
    return node;
  }

  async dropNode(node: Node): Promise<void> {
    this.nodes.splice(this.nodes.indexOf(node), 1);
    await node.stop();
  }

  async worker(options: NewWorker): Promise<RunningWorker> {
    const worker = await runWorker({
      servers: this.nats.urls,
      ...scope,
      name: "worker",
      leaseMs: 1_500,
      waitMs: 500,
      handleSignals: false,
      ...options,
    });
    this.#workers.push(worker);
    return worker;
  }

  async admit(request: Partial<AdmitRequest> = {}): Promise<Workload> {
    const { workload } = await this.client.admit({
      ...scope,
      environment: "test",
      definitionId: "definition",
      definitionRevision: "1",
      trigger: "test",
      input: { question: 6 },
      idempotencyKey: randomUUID(),
      retryPolicy: { initialDelayMs: 0 },
      ...request,
    });
    return workload;
  }

  /** The workload once it is in one of the states; as it is after `timeoutMs` otherwise. */
  async whenIn(workloadId: string, states: readonly Workload["state"][], timeoutMs = 15_000): Promise<Workload> {
    const found = await poll(
      async () => {
        const workload = await this.client.get(workloadId);
        return states.includes(workload.state) ? workload : undefined;
      },
      { timeoutMs },
    );
    return found ?? this.client.get(workloadId);
  }

  async close(): Promise<void> {
    await this.endWorkers();
    await Promise.all(this.nodes.map((node) => node.stop()));
    await this.nats.killAll();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async endWorkers(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop()));
  }
}

async function startNode(nats: NatsCluster, name: string, port = 0): Promise<Node> {
  const config = readConfig({
    MANDATE_NATS_SERVERS: nats.urls.join(","),
    MANDATE_HTTP_PORT: String(port),
    MANDATE_NODE_ID: name,
    MANDATE_REPLICAS: "1",
    MANDATE_STORAGE: "memory",
    MANDATE_SHUTDOWN_GRACE_MS: "1000",
  });
  const node = await Node.listen({ config, log: silentLog, version: "0.0.0" });
  await node.run();
  const ready = await poll(async () => ((await fetch(`${node.url}/readyz`)).ok ? true : undefined), {
    timeoutMs: 15_000,
  });
  if (ready === undefined) throw new RangeError("the node did not become ready");
  return node;
}

/** Something that a test waits for. */
export class Signal<Value = void> {
  readonly seen: Promise<Value>;
  #give: (value: Value) => void = () => undefined;

  constructor() {
    this.seen = new Promise((resolve) => {
      this.#give = resolve;
    });
  }

  give(value: Value): void {
    this.#give(value);
  }
}
