import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { Registry } from "prom-client";
import { Authority } from "../authority/authority.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { defaultRules } from "../core/workload/rules.ts";
import { GrantVerifier } from "../grants/grant-verifier.ts";
import { KeyRing } from "../grants/key-ring.ts";
import type { HttpGrants } from "../http/access.ts";
import { startHttpServer, type HttpServer } from "../http/server.ts";
import { startWorkerService, type WorkerService } from "../nats/worker-service.ts";
import type { JetstreamStore } from "../store/jetstream/jetstream-store.ts";
import { GatedAuthority } from "./gated-authority.ts";
import { GrowingPause } from "./growing-pause.ts";
import { NodeMetrics } from "./node-metrics.ts";
import { httpCertificateOf } from "./http-certificate.ts";
import { natsConnectionOf } from "./nats-login.ts";
import { openNodeStore } from "./open-store.ts";

/** What runs, as far as the start has come: what is there is let go, whenever the node is told to end. */
interface Opened {
  store?: JetstreamStore;
  authority?: Authority;
  connection?: NatsConnection;
  service?: WorkerService;
}

/** What is there as soon as a node listens. */
interface Doors {
  readonly http: HttpServer;
  readonly gate: GatedAuthority;
  readonly registry: Registry;
  readonly keys: KeyRing | undefined;
  /** Absent: open mode. */
  readonly grants: HttpGrants | undefined;
}

function grantsOf(keys: KeyRing): HttpGrants {
  const verifier = new GrantVerifier(keys);
  return { verify: (token) => verifier.verify(token), jwks: () => keys.jwks() };
}

export interface NodeOptions {
  readonly config: Config;
  readonly log: Log;
  readonly version: string;
}

/** Between a node's word that it goes away and its last listening, ms: time for a load balancer to hear it. */
const HANDOVER_MS = 300;
/** Between two tries to connect, ms. */
const CONNECT_AGAIN_MS = 250;

/** A connection for workers' requests, however long it takes. An abort rejects with the signal's reason. */
async function connectForWorkers(config: Config, log: Log, signal: AbortSignal): Promise<NatsConnection> {
  const toldPause = new GrowingPause();
  for (;;) {
    signal.throwIfAborted();
    try {
      return await connect({
        ...natsConnectionOf(config),
        name: `mandate ${config.nodeId} (workers)`,
        servers: [...config.natsServers],
        noAsyncTraces: true,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 100,
        pingInterval: 5_000,
      });
    } catch (thrown) {
      if (toldPause.over())
        log.warn({ cause: String(thrown) }, "workers' requests can't be listened for yet; trying again");
      await delay(CONNECT_AGAIN_MS, undefined, { signal });
    }
  }
}

/**
 * One authority node as a process runs it: the store, the authority with its passes, HTTP and the worker service over
 * NATS. HTTP answers from the start, and says that the node is not ready until it is.
 */
export class Node {
  readonly #options: NodeOptions;
  readonly #http: HttpServer;
  readonly #metrics: NodeMetrics;
  readonly #registry: Registry;
  readonly #gate: GatedAuthority;
  readonly #keys: KeyRing | undefined;
  readonly #grants: HttpGrants | undefined;
  readonly #stopping = new AbortController();
  readonly #opened: Opened = {};

  private constructor(options: NodeOptions, doors: Doors) {
    this.#options = options;
    this.#keys = doors.keys;
    this.#grants = doors.grants;
    this.#http = doors.http;
    this.#gate = doors.gate;
    this.#registry = doors.registry;
    this.#metrics = new NodeMetrics(doors.registry);
  }

  /**
   * Listens. The node is of use after {@link run}.
   *
   * @throws KeyRingError when the keys of grants are not good.
   * @throws the system's error when the port can't be had.
   */
  static async listen(options: NodeOptions): Promise<Node> {
    const { config, log } = options;
    const registry = new Registry();
    const gate = new GatedAuthority(config.nodeId, config.shards);
    const keys = config.keys === undefined ? undefined : await KeyRing.open({ path: config.keys, log });
    const grants = keys === undefined ? undefined : grantsOf(keys);
    const http = await startHttpServer({
      authority: gate,
      log,
      metrics: registry,
      port: config.httpPort,
      host: config.httpHost,
      tls: httpCertificateOf(config),
      ...(grants === undefined ? {} : { grants }),
      config: {
        inFlightMax: config.requestsMax,
        waitersMax: config.waitersMax,
        eventStreamsMax: config.eventStreamsMax,
      },
    });
    return new Node(options, { http, gate, registry, keys, grants });
  }

  /** Where HTTP answers. */
  get url(): string {
    return this.#http.url;
  }

  /**
   * Opens the store, waiting for it as long as it takes, and begins to serve.
   *
   * @throws NodeRefusal when the store must not be used as it is. An abort by {@link stop} rejects as well.
   */
  async run(): Promise<void> {
    const { config, log, version } = this.#options;
    const { signal } = this.#stopping;
    const store = await openNodeStore({ config, log, onWaiting: (reason) => this.#gate.setReason(reason), signal });
    this.#opened.store = store;
    await this.#untilTold(store);
    const authority = this.#makeAuthority(store);
    this.#opened.authority = authority;
    authority.open();
    this.#metrics.observe(authority);
    this.#gate.open(authority);
    const connection = await connectForWorkers(config, log, signal);
    this.#opened.connection = connection;
    await this.#untilTold(connection);
    const secured = this.#grants === undefined ? {} : { grants: this.#grants };
    const service = { connection, authority, log, metrics: this.#registry, version, ...secured };
    this.#opened.service = await startWorkerService(service);
    log.info({ nodeId: config.nodeId, url: this.url, epoch: config.epoch, shards: config.shards }, "the node runs");
  }

  /** Builds the view anew from the store alone (contract 5.4). The node is not ready meanwhile. */
  async resync(): Promise<void> {
    const { authority } = this.#opened;
    if (authority === undefined || this.#stopping.signal.aborted) return;
    this.#options.log.warn({}, "the view is built anew, as it was asked for");
    await authority.resync();
  }

  /** Looks at the keys of grants now, and not only in a second. */
  renewKeys(): void {
    void this.#keys?.reload();
  }

  /** Reads the certificate of HTTP again, so that it can be replaced without a restart. A bad one is not taken. */
  renewCertificate(): void {
    const { config, log } = this.#options;
    try {
      const certificate = httpCertificateOf(config);
      if (certificate === undefined) return;
      this.#http.renewCertificate(certificate);
      log.info({ file: config.httpTlsCert }, "HTTP has read its certificate again");
    } catch (thrown) {
      log.error({ err: thrown }, "HTTP's certificate can't be read; the one before stays");
    }
  }

  /** Takes nothing new, finishes what is under way, and lets everything go. */
  async stop(): Promise<void> {
    const { config, log } = this.#options;
    log.info({ graceMs: config.shutdownGraceMs }, "the node is stopping");
    this.#stopping.abort();
    this.#keys?.close();
    const opened = this.#opened;
    this.#gate.drain();
    // Workers' requests go to another node at once: those under way here are answered, none is refused.
    const handover = opened.authority === undefined ? 0 : HANDOVER_MS;
    await Promise.all([
      opened.service?.stop(config.shutdownGraceMs),
      new Promise((resolve) => setTimeout(resolve, handover)),
    ]);
    await this.#http.stop(config.shutdownGraceMs);
    opened.authority?.drain();
    await opened.authority?.close();
    await opened.connection?.close();
    await opened.store?.close();
    log.info({}, "the node has stopped");
  }

  /** What was opened while the node was told to end is closed again: {@link stop} did not know of it. */
  async #untilTold(opened: { close(): Promise<void> }): Promise<void> {
    if (!this.#stopping.signal.aborted) return;
    await opened.close();
    this.#stopping.signal.throwIfAborted();
  }

  #makeAuthority(store: JetstreamStore): Authority {
    const { config, log } = this.#options;
    return new Authority({
      store,
      nodeId: config.nodeId,
      log,
      nonce: randomBytes(6).toString("base64url"),
      rules: {
        payloadBytesMax: config.payloadBytesMax,
        checkpointsMax: config.checkpointsMax,
        secretKeys: [...defaultRules.secretKeys, ...config.secretKeys],
        secretPrefixes: [...defaultRules.secretPrefixes, ...config.secretPrefixes],
      },
      passIntervalMs: config.passIntervalMs,
      ...(config.agingMs === undefined ? {} : { agingMs: config.agingMs }),
      clockSkewMaxMs: config.clockSkewMaxMs,
      commitDeadlineMs: config.commitDeadlineMs,
      onCall: (call, code, tookMs) => this.#metrics.called(call, code, tookMs),
      onCommit: (action, outcome) => this.#metrics.committed(action, outcome),
    });
  }
}
