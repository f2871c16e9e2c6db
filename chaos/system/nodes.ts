import { writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { AuthorityProcess } from "../../cluster/authority-process.ts";
import { freePorts } from "../../cluster/free-ports.ts";
import { Front } from "../../cluster/front.ts";
import type { Draw } from "../draw.ts";
import { AnswerTap } from "../network/answer-tap.ts";
import { Link } from "../network/link.ts";
import type { Recorder } from "../recorder.ts";
import { Kept } from "./kept.ts";
import { PORT_BASE, type NatsRing } from "./nats-ring.ts";
import { EPOCH, lengths, type SystemShape } from "./setting.ts";

/** An authority node, kept running, with every link that leads to it and from it. */
export interface ChaosNode {
  readonly name: string;
  readonly process: AuthorityProcess;
  readonly kept: Kept;
  /** To each nats-server, in their order. */
  readonly links: readonly Link[];
  /** From its callers, the front among them. */
  readonly httpLink: Link;
  /** Where callers reach it. */
  readonly url: string;
  /** Holds how far its wall clock is off, ms. */
  readonly clockFile: string;
}

/** Sets the wall clock of a program that was started with {@link clockEnvironment}. */
export const setClock = (clockFile: string, offsetMs: number): void => writeFileSync(clockFile, String(offsetMs));

/** Makes a program read its clock's error from a file. */
export const clockEnvironment = (clockFile: string): { readonly [name: string]: string } => ({
  CHAOS_CLOCK_FILE: clockFile,
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, "..", "faults", "clock-preload.mjs")).href}`,
});

/** The authority nodes and the one address in front of them. */
export class Nodes {
  readonly all: readonly ChaosNode[];
  readonly front: Front;
  /** Counts what the servers answered the nodes. */
  readonly answers: AnswerTap;

  private constructor(all: readonly ChaosNode[], front: Front, answers: AnswerTap) {
    this.all = all;
    this.front = front;
    this.answers = answers;
  }

  /** Makes as many nodes as the system may ever have, and starts those that it begins with. */
  static async start(options: {
    readonly directory: string;
    readonly shape: SystemShape;
    readonly ring: NatsRing;
    readonly draw: Draw;
    readonly recorder: Recorder;
    /** The folder of the keys that grants are verified with. Absent: open mode. */
    readonly keys?: string | undefined;
  }): Promise<Nodes> {
    const { shape } = options;
    const answers = new AnswerTap();
    const count = Math.max(shape.nodes, shape.nodesMax);
    const names = Array.from({ length: count }, (_, index) => `a${index + 1}`);
    const [frontPort, ...ports] = await freePorts(
      Array.from({ length: count + 1 }, (_, index) => PORT_BASE + 300 + index),
    );
    const all = await Promise.all(
      names.map((name, index) => makeNode(name, ports[index] ?? 0, { ...options, answers })),
    );
    const begun = all.slice(0, shape.nodes);
    await Promise.all(begun.map(({ kept }) => kept.up()));
    const front = await Front.start({
      backends: begun.map(({ url }) => url),
      ...(frontPort === undefined ? {} : { port: frontPort }),
    });
    return new Nodes(all, front, answers);
  }

  /** Those that are meant to run. */
  get present(): readonly ChaosNode[] {
    return this.all.filter(({ kept }) => kept.wanted);
  }

  /** Tells the front which nodes there are. */
  refreshFront(): void {
    this.front.setBackends(this.present.map(({ url }) => url));
  }

  /**
   * Waits until every node that is meant to run is ready. One that was started while its clock was off, or a disk full,
   * may refuse itself once more after the healing: it is started again.
   */
  async waitReady(timeoutMs = 60_000): Promise<void> {
    await Promise.all(this.present.map(({ process }) => process.waitReady(timeoutMs, { supervised: true })));
    await this.front.waitHealthy(this.present.length, timeoutMs);
  }

  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    await this.front.stop();
    await Promise.all(this.all.map(({ kept }) => kept.down(signal)));
    await Promise.all(this.all.flatMap(({ links, httpLink }) => [...links, httpLink]).map((link) => link.close()));
  }
}

async function makeNode(
  name: string,
  port: number,
  options: {
    readonly directory: string;
    readonly shape: SystemShape;
    readonly ring: NatsRing;
    readonly draw: Draw;
    readonly recorder: Recorder;
    readonly keys?: string | undefined;
    readonly answers: AnswerTap;
  },
): Promise<ChaosNode> {
  const { ring, shape, recorder, answers } = options;
  const directory = join(options.directory, name);
  const clockFile = join(directory, "clock");
  await mkdir(directory, { recursive: true });
  setClock(clockFile, 0);
  const links = await ring.linksFor(name, answers);
  const draw = options.draw.child(name);
  const httpLink = await Link.start({ name: `http>${name}`, target: port, random: () => draw.share() });
  const process = new AuthorityProcess({
    name,
    directory,
    url: `http://127.0.0.1:${port}`,
    env: {
      ...clockEnvironment(clockFile),
      MANDATE_NATS_SERVERS: links.map((link) => `127.0.0.1:${link.port}`).join(","),
      MANDATE_NATS_MONITOR_URLS: ring.servers.map(({ server }) => server.monitorUrl).join(","),
      MANDATE_HTTP_HOST: "127.0.0.1",
      MANDATE_HTTP_PORT: String(port),
      MANDATE_NODE_ID: name,
      MANDATE_EPOCH: EPOCH,
      MANDATE_SHARDS: String(shape.shards),
      MANDATE_REPLICAS: "3",
      MANDATE_STORAGE: "file",
      MANDATE_SYNC: "always",
      MANDATE_HISTORY: "-1",
      MANDATE_STATE_DIR: join(directory, "state"),
      MANDATE_SHUTDOWN_GRACE_MS: "3000",
      MANDATE_PASS_INTERVAL_MS: String(lengths.passIntervalMs),
      MANDATE_COMMIT_DEADLINE_MS: String(lengths.commitDeadlineMs),
      MANDATE_CLOCK_SKEW_MAX_MS: String(lengths.clockSkewMaxMs),
      ...(options.keys === undefined ? {} : { MANDATE_KEYS: options.keys }),
    },
  });
  const kept = new Kept(process, recorder);
  return { name, process, kept, links, httpLink, url: `http://127.0.0.1:${httpLink.port}`, clockFile };
}
