import type { IncomingMessage } from "node:http";
import { Agent, get } from "node:http";

/** How often each backend is asked whether it is ready, and how long it has to answer. */
const PROBE_INTERVAL_MS = 250;
const PROBE_TIMEOUT_MS = 1_000;
/** So many probes in a row without any answer, and the requests that wait there are given up as lost. */
const SILENT_PROBES_MAX = 5;

/** A node behind the front: its address, the connections to it, and whether it takes requests now. */
export class FrontBackend {
  readonly url: string;
  readonly hostname: string;
  readonly port: string;
  /** Kept-alive connections for the requests that are handed on. */
  readonly agent = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 256, scheduling: "lifo" });
  readonly #probeAgent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #changed: (backend: FrontBackend) => void;
  #healthy = false;
  #timer: NodeJS.Timeout | undefined;
  #silentProbes = 0;
  #closed = false;

  /** Asks for readiness from now on until {@link close}; `changed` is called when the answer becomes another one. */
  constructor(url: string, changed: (backend: FrontBackend) => void) {
    const { origin, hostname, port } = new URL(url);
    this.url = origin;
    this.hostname = hostname;
    this.port = port;
    this.#changed = changed;
    this.#probe();
  }

  /** `true` while the last thing known is that it answers `GET /readyz` with 200. */
  get healthy(): boolean {
    return this.#healthy;
  }

  /** A connection could not be made: nothing more is sent there until it says again that it is ready. */
  markUnreachable(): void {
    this.#set(false);
  }

  /** Asks no more and closes every connection. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#probeAgent.destroy();
    this.agent.destroy();
  }

  #set(healthy: boolean): void {
    if (this.#closed || healthy === this.#healthy) return;
    this.#healthy = healthy;
    this.#changed(this);
  }

  #probe(): void {
    let done = false;
    const settle = (healthy: boolean, silent = false): void => {
      if (done) return;
      done = true;
      this.#noteSilence(silent);
      this.#set(healthy);
      if (!this.#closed) this.#timer = setTimeout(() => this.#probe(), PROBE_INTERVAL_MS);
    };
    const deadline = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const options = {
      hostname: this.hostname,
      port: this.port,
      path: "/readyz",
      agent: this.#probeAgent,
      signal: deadline,
    };
    const request = get(options, (response: IncomingMessage) => {
      response.on("error", () => settle(false, deadline.aborted));
      response.on("end", () => settle(response.statusCode === 200));
      response.resume();
    });
    request.on("error", () => settle(false, deadline.aborted));
  }

  /** A paused or stuck node accepts connections and says nothing: whoever waits for it would wait for ever. */
  #noteSilence(silent: boolean): void {
    this.#silentProbes = silent ? this.#silentProbes + 1 : 0;
    // Destroying an agent resets its connections; it can be used again afterwards.
    if (this.#silentProbes === SILENT_PROBES_MAX) this.agent.destroy();
  }
}
