import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ClusterError } from "../cluster/cluster-error.ts";
import { freePorts } from "../cluster/free-ports.ts";
import { GuardedProcess } from "../cluster/guarded-process.ts";
import { poll } from "../cluster/poll.ts";
import { compiledProgram, profileFlags } from "./compiled.ts";
import type { StoreAddress } from "./store-access.ts";

const READY_TIMEOUT_MS = 60_000;

async function answersOk(url: string): Promise<true | undefined> {
  try {
    const response = await fetch(url);
    await response.arrayBuffer();
    return response.ok ? true : undefined;
  } catch {
    return undefined;
  }
}

/** One authority node as `mandate serve` runs it, compiled, in a process of its own. */
export class Node {
  readonly url: string;
  readonly pid: number;
  readonly #process: GuardedProcess;
  readonly #directory: string;

  private constructor(running: GuardedProcess, url: string, directory: string) {
    this.#process = running;
    this.#directory = directory;
    this.url = url;
    this.pid = running.pid;
  }

  /** Starts a node and waits until it is ready. */
  static async start(address: StoreAddress, name: string, profileTo: string | undefined): Promise<Node> {
    const directory = await mkdtemp(join(tmpdir(), "mandate-bench-node-"));
    const [port = 0] = await freePorts([undefined]);
    const running = await GuardedProcess.start({
      name,
      directory,
      program: process.execPath,
      arguments: [...profileFlags(profileTo), compiledProgram("src/main"), "serve"],
      env: {
        MANDATE_NATS_SERVERS: address.servers.join(","),
        MANDATE_EPOCH: address.epoch,
        MANDATE_REPLICAS: String(address.replicas),
        MANDATE_STORAGE: address.storage,
        MANDATE_NODE_ID: name,
        MANDATE_HTTP_PORT: String(port),
        MANDATE_LOG_LEVEL: "warn",
      },
    });
    const node = new Node(running, `http://127.0.0.1:${port}`, directory);
    const ready = await poll(
      () => {
        if (!running.running) throw running.exitError();
        return answersOk(`${node.url}/readyz`);
      },
      { timeoutMs: READY_TIMEOUT_MS },
    );
    if (ready === true) return node;
    await node.stop();
    throw new ClusterError("PROCESS_NOT_READY", `${name} did not become ready; see ${running.logPath}`);
  }

  /** Its commits so far: by `action outcome`. */
  async commits(): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const found = text.matchAll(/^mandate_commits_total\{action="([^"]*)",outcome="([^"]*)"\} (\d+)/gm);
    return new Map([...found].map(([, action, outcome, count]) => [`${action} ${outcome}`, Number(count)]));
  }

  async stop(): Promise<void> {
    await this.#process.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Starts several nodes on one store. */
export const startNodes = (
  address: StoreAddress,
  count: number,
  profileTo: string | undefined,
): Promise<readonly Node[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => Node.start(address, `node-${index + 1}`, profileTo)));

/** Ends them all. */
export async function stopNodes(nodes: readonly Node[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
}
