import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { poll } from "../cluster/poll.ts";
import type { StoreAddress } from "./store-access.ts";

const program = fileURLToPath(new URL("node-process.ts", import.meta.url));
const READY_TIMEOUT_MS = 60_000;

/** One authority node in a process of its own. */
export class Node {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** Starts a node and waits until it is ready. */
  static async start(address: StoreAddress, name: string, profileTo?: string): Promise<Node> {
    const child = fork(program, {
      env: {
        ...process.env,
        MANDATE_NATS_SERVERS: address.servers.join(","),
        MANDATE_EPOCH: address.epoch,
        MANDATE_REPLICAS: String(address.replicas),
        MANDATE_STORAGE: address.storage,
        MANDATE_NODE_ID: name,
        MANDATE_HTTP_PORT: "0",
        MANDATE_LOG_LEVEL: "silent",
      },
      execArgv: [
        ...process.execArgv,
        ...(profileTo === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileTo}`]),
      ],
    });
    const [{ url }] = (await once(child, "message")) as [{ url: string }];
    const node = new Node(child, url);
    const ready = await poll(async () => ((await fetch(`${url}/readyz`)).ok ? true : undefined), {
      timeoutMs: READY_TIMEOUT_MS,
    });
    if (ready !== true) throw new Error(`${name} did not become ready`);
    return node;
  }

  /** CPU that it has used, ms. */
  async cpuMs(): Promise<number> {
    const answered = once(this.#child, "message");
    this.#child.send("usage");
    const [{ cpuMs }] = (await answered) as [{ cpuMs: number }];
    return cpuMs;
  }

  /** Its commits so far: by `action outcome`. */
  async commits(): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const found = text.matchAll(/^mandate_commits_total\{action="([^"]*)",outcome="([^"]*)"\} (\d+)/gm);
    return new Map([...found].map(([, action, outcome, count]) => [`${action} ${outcome}`, Number(count)]));
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }
}

/** Starts several nodes on one store. */
export const startNodes = (
  address: StoreAddress,
  count: number,
  options: { readonly profileTo?: string | undefined } = {},
): Promise<readonly Node[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => Node.start(address, `node-${index + 1}`, options.profileTo)));

/** Ends them all. */
export async function stopNodes(nodes: readonly Node[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
}
