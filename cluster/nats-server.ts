import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "./cluster-error.ts";
import type { ProcessExit } from "./guarded-process.ts";
import { GuardedProcess } from "./guarded-process.ts";
import type { NatsServerSettings } from "./nats-config.ts";
import { renderNatsConfig } from "./nats-config.ts";
import { findNatsServer } from "./nats-server-binary.ts";
import { poll } from "./poll.ts";

/** A server's settings, and the folder that is its own: configuration, log, record and data are kept in it. */
export type NatsServerOptions = Omit<NatsServerSettings, "storeDirectory"> & { readonly directory: string };

const READY_TIMEOUT_MS = 30_000;
const MONITOR_TIMEOUT_MS = 1_000;

/** Reads a property of something that came as JSON. */
const property = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * One real nats-server process on 127.0.0.1. It can be started again after it ended, in the same folder with the same
 * data and ports. It ends with the process that started it, however that ends.
 */
export class NatsServer {
  readonly name: string;
  readonly directory: string;
  /** Where clients connect: `nats://127.0.0.1:<port>`. */
  readonly url: string;
  readonly monitorUrl: string;
  readonly logPath: string;
  readonly #options: NatsServerOptions;
  #process: GuardedProcess | undefined;

  constructor(options: NatsServerOptions) {
    this.#options = options;
    this.name = options.name;
    this.directory = options.directory;
    this.url = `nats://127.0.0.1:${options.clientPort}`;
    this.monitorUrl = `http://127.0.0.1:${options.monitorPort}`;
    this.logPath = join(options.directory, "nats-server.log");
  }

  get running(): boolean {
    return this.#process?.running ?? false;
  }

  get paused(): boolean {
    return this.#process?.paused ?? false;
  }

  /** The id of the running process; `undefined` when there is none. */
  get pid(): number | undefined {
    return this.running ? this.#process?.pid : undefined;
  }

  /** Fulfilled when the process that was last started has ended. */
  get exited(): Promise<ProcessExit> | undefined {
    return this.#process?.exited;
  }

  /**
   * Starts the process; it is not ready yet ({@link waitReady}). Answers the id of a process that an earlier, vanished
   * owner had left in the folder and that was ended first.
   *
   * @throws ClusterError `NATS_SERVER_UNAVAILABLE`, `DIRECTORY_IN_USE` (also when it already runs), `PROCESS_EXITED`.
   */
  async start(): Promise<number | undefined> {
    const program = await findNatsServer();
    const { directory } = this.#options;
    const configuration = join(directory, "nats-server.conf");
    const { name: _, directory: __, ...settings } = this.#options;
    await mkdir(directory, { recursive: true });
    await writeFile(
      configuration,
      renderNatsConfig({ ...settings, name: this.name, storeDirectory: join(directory, "data") }),
    );
    this.#process = await GuardedProcess.start({
      name: "nats-server",
      program,
      arguments: ["-c", configuration],
      directory,
    });
    return this.#process.reaped;
  }

  /**
   * Waits until the server says it is healthy and has a route to each of `peers` (names). Health alone does not do: a
   * server can be healthy for a second before its routes are up, and refuses every write in that time. With one
   * connection a peer (`pool_size: -1`) a server of three has two routes.
   *
   * @throws ClusterError `PROCESS_EXITED` when it ends meanwhile, `PROCESS_NOT_READY` after `timeoutMs` (30 s).
   */
  async waitReady(options: { readonly peers?: readonly string[]; readonly timeoutMs?: number } = {}): Promise<void> {
    const timeoutMs = options.timeoutMs ?? READY_TIMEOUT_MS;
    const child = this.#process;
    const ready = await poll(
      async () => {
        if (child?.exit !== undefined) throw child.exitError();
        return (await this.#healthy()) && (await this.#routesUp(options.peers ?? [])) ? true : undefined;
      },
      { timeoutMs },
    );
    if (ready === undefined)
      throw new ClusterError(
        "PROCESS_NOT_READY",
        `nats-server ${this.name} was not ready within ${timeoutMs} ms; see ${this.logPath}`,
        {
          details: { name: this.name, logPath: this.logPath },
        },
      );
  }

  async #healthy(): Promise<boolean> {
    return property(await this.monitor("/healthz"), "status") === "ok";
  }

  async #routesUp(peers: readonly string[]): Promise<boolean> {
    if (peers.length === 0) return true;
    const routes = list(property(await this.monitor("/routez"), "routes"));
    const names = new Set(routes.map((route) => property(route, "remote_name")));
    return peers.every((peer) => names.has(peer));
  }

  /** Asks the monitoring endpoint, such as `/varz`; `undefined` when it does not answer 200 with JSON in time. */
  async monitor(path: string, timeoutMs = MONITOR_TIMEOUT_MS): Promise<unknown> {
    try {
      const response = await fetch(`${this.monitorUrl}${path}`, { signal: AbortSignal.timeout(timeoutMs) });
      const body: unknown = await response.json();
      return response.ok ? body : undefined;
    } catch {
      return undefined;
    }
  }

  /**
   * Whom this server holds to be the leader of each stream that it has a copy of, by stream name; `undefined` when it
   * does not answer. A single server leads all of its streams.
   */
  async streamLeaders(): Promise<ReadonlyMap<string, string | undefined> | undefined> {
    const answer = await this.monitor("/jsz?accounts=true&streams=true");
    if (answer === undefined) return undefined;
    const streams = list(property(answer, "account_details")).flatMap((account) =>
      list(property(account, "stream_detail")),
    );
    return new Map(
      streams.map((stream): [string, string | undefined] => {
        const leader = property(property(stream, "cluster"), "leader");
        const own = this.#options.cluster === undefined ? this.name : undefined;
        return [String(property(stream, "name")), typeof leader === "string" && leader !== "" ? leader : own];
      }),
    );
  }

  /** Ends the process with a signal, SIGKILL by default; answers when it has ended. Nothing to do when none runs. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#process?.kill(signal);
  }

  /** Ends it in good order (leadership is handed over first), or with SIGKILL after `graceMs` (10 s). */
  async stop(graceMs?: number): Promise<void> {
    await this.#process?.stop(graceMs);
  }

  /** SIGSTOP: the server keeps its connections and does nothing. Answers when it stands still. */
  async pause(): Promise<void> {
    await this.#process?.pause();
  }

  /** SIGCONT. */
  resume(): void {
    this.#process?.resume();
  }
}
