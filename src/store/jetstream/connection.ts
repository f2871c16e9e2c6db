import { jetstreamManager } from "@nats-io/jetstream";
import type { JetStreamManager } from "@nats-io/jetstream";
import { createInbox, PermissionViolationError } from "@nats-io/nats-core";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import { monotonicMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { StoreUnavailable } from "../store.ts";
import { Requests } from "./requests.ts";

export interface ConnectOptions {
  /** `host:port` of every server. */
  readonly servers: readonly string[];
  /** Who connects; shown by the server's monitoring. */
  readonly clientId: string;
  /** Credentials, TLS and the like. What the store depends on can't be changed by it. */
  readonly connection?: NodeConnectionOptions | undefined;
  readonly log: Log;
}

/** How long one call to JetStream's management may take. */
const MANAGEMENT_TIMEOUT_MS = 3000;
const DIAL_TIMEOUT_MS = 2000;
const PING_MS = 5000;
const RECONNECT_WAIT_MS = 100;
/** Silence makes the client look for another server at most this often. */
const ABANDON_EVERY_MS = 5000;

/** What NATS refused, as a sentence, when that is why something failed. */
export function forbiddenBy(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  if (!(thrown instanceof PermissionViolationError)) return forbiddenBy(thrown.cause);
  return `NATS does not let this user ${thrown.operation === "publish" ? "publish to" : "subscribe to"} ${thrown.subject}`;
}

/**
 * One client's connection. It never gives up: while no server can be reached, {@link StoreConnection.connected} is
 * `false`, and nothing may be sent, since the client would take it and lose it.
 */
export class StoreConnection {
  readonly nats: NatsConnection;
  readonly management: JetStreamManager;
  readonly requests: Requests;
  readonly #log: Log;
  readonly #inboxPrefix: string | undefined;
  #forbidden: string | undefined;
  #connected = true;
  #closed = false;
  readonly #waiting = new Set<() => void>();
  #abandonedAt = Number.NEGATIVE_INFINITY;

  private constructor(nats: NatsConnection, management: JetStreamManager, options: ConnectOptions) {
    this.nats = nats;
    this.management = management;
    this.#log = options.log;
    this.#inboxPrefix = options.connection?.inboxPrefix;
    this.requests = new Requests(nats, { inbox: this.newInbox(), onSilence: () => this.#abandonServer() });
    void this.#watch();
  }

  /**
   * Connects to any of the servers.
   *
   * @throws StoreUnavailable when none can be reached.
   */
  static async open(options: ConnectOptions): Promise<StoreConnection> {
    const nats = await connect({
      name: `mandate ${options.clientId}`,
      ...options.connection,
      servers: [...options.servers],
      noAsyncTraces: true,
      maxReconnectAttempts: -1,
      reconnectTimeWait: RECONNECT_WAIT_MS,
      pingInterval: PING_MS,
      timeout: DIAL_TIMEOUT_MS,
    }).catch((thrown: unknown) => {
      throw new StoreUnavailable("no server can be reached", { cause: thrown });
    });
    const management = await jetstreamManager(nats, {
      checkAPI: false,
      timeout: MANAGEMENT_TIMEOUT_MS,
    });
    return new StoreConnection(nats, management, options);
  }

  /** A subject of this connection's own to be answered at, where its user may listen. */
  newInbox(): string {
    return createInbox(this.#inboxPrefix);
  }

  /** What NATS last refused to this connection's user, as a sentence; `undefined` while it refused nothing. */
  get forbidden(): string | undefined {
    return this.#forbidden;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** `true` once {@link close} was called: nothing will ever be sent again. */
  get closed(): boolean {
    return this.#closed;
  }

  /** The most bytes that the server takes in one message, headers included. */
  get messageBytesMax(): number {
    return this.nats.info?.max_payload ?? Number.MAX_SAFE_INTEGER;
  }

  /** Waits until it is connected, at most so long; answers whether it is. */
  async whenConnected(timeoutMs: number): Promise<boolean> {
    if (this.#connected || this.#closed) return this.#connected;
    await new Promise<void>((resolve) => {
      const resume = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(resume);
        resolve();
      };
      const timer = setTimeout(resume, Math.max(0, timeoutMs));
      this.#waiting.add(resume);
    });
    return this.#connected;
  }

  /** Ends it. What is under way fails as unresolved. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#connected = false;
    this.requests.close();
    this.#wake();
    await this.nats.close();
  }

  async #watch(): Promise<void> {
    for await (const status of this.nats.status()) {
      if (status.type === "disconnect") {
        this.#connected = false;
        this.requests.failAll("disconnected");
        if (!this.#closed) this.#log.warn({ server: status.server }, "store connection lost");
      } else if (status.type === "reconnect") {
        this.#connected = !this.#closed;
        this.#log.info({ server: status.server }, "store connection back");
        this.#wake();
      } else if (status.type === "error") {
        if (status.error instanceof PermissionViolationError) this.#noteForbidden(status.error);
        else this.#log.warn({ error: status.error.message }, "store connection reported an error");
      }
    }
    this.#connected = false;
    this.#wake();
  }

  #noteForbidden(error: PermissionViolationError): void {
    const { operation, subject } = error;
    this.#forbidden = forbiddenBy(error);
    this.#log.error({ operation, subject }, "NATS does not give this user a right that the store needs");
  }

  #wake(): void {
    for (const resume of [...this.#waiting]) resume();
  }

  /** A server that leaves everything unanswered may be paused or cut off; its pings would tell much later. */
  #abandonServer(): void {
    const now = monotonicMs();
    if (!this.#connected || now - this.#abandonedAt < ABANDON_EVERY_MS) return;
    this.#abandonedAt = now;
    this.#log.warn({ server: this.nats.getServer() }, "server answers nothing; trying another");
    this.nats.reconnect().catch(() => undefined);
  }
}
