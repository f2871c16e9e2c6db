import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

/**
 * What the proxy does with bytes:
 * - `pass`: hands them on.
 * - `drop-to-client`, `drop-to-server`, `drop-both`: swallows those of that direction, and the connection's end with
 *   them; the connections stay up. Once bytes were swallowed a stream is torn, so {@link FaultProxy.cut} it before passing again.
 * - `hold`: reads nothing, so that buffers fill up as before a paused process; later modes get what was held.
 * - `refuse`: new connections are reset; those that exist go on as with `pass`.
 */
export type ProxyMode = "pass" | "drop-to-client" | "drop-to-server" | "drop-both" | "hold" | "refuse";

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/** A TCP proxy on 127.0.0.1 in front of one server, with faults at the touch of {@link FaultProxy.setMode}. */
export class FaultProxy {
  /** Where it listens. */
  readonly port: number;
  readonly #listener: Server;
  readonly #pairs = new Set<Pair>();
  #mode: ProxyMode = "pass";

  private constructor(listener: Server, port: number) {
    this.#listener = listener;
    this.port = port;
  }

  /** Listens on a free port, or on `port`, and connects each client to `target` on 127.0.0.1. */
  static async start(options: { readonly target: number; readonly port?: number }): Promise<FaultProxy> {
    const listener = createServer({ noDelay: true, allowHalfOpen: true });
    listener.listen(options.port ?? 0, "127.0.0.1");
    await once(listener, "listening");
    const proxy = new FaultProxy(listener, (listener.address() as AddressInfo).port);
    listener.on("connection", (client) => proxy.#join(client, options.target));
    return proxy;
  }

  get mode(): ProxyMode {
    return this.#mode;
  }

  /** How many connections are up. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** Changes what happens from the next byte on. */
  setMode(mode: ProxyMode): void {
    this.#mode = mode;
    for (const { client, server } of this.#pairs)
      for (const socket of [client, server]) {
        if (mode === "hold") socket.pause();
        else socket.resume();
      }
  }

  /** Resets every connection that is up; new ones are taken as the mode says. */
  cut(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  /** Cuts everything and listens no more. */
  async close(): Promise<void> {
    const closed = once(this.#listener, "close");
    this.#listener.close();
    this.cut();
    await closed;
  }

  #join(client: Socket, target: number): void {
    if (this.#mode === "refuse") {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ port: target, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
    const pair = { client, server };
    this.#pairs.add(pair);
    this.#carry(client, server, "drop-to-server");
    this.#carry(server, client, "drop-to-client");
    for (const socket of [client, server])
      socket.on("close", () => {
        if (client.destroyed && server.destroyed) this.#pairs.delete(pair);
      });
  }

  /** One direction. While it is dropped, the end of the connection is not told either: the line is simply silent. */
  #carry(from: Socket, to: Socket, droppedBy: ProxyMode): void {
    const dropped = (): boolean => this.#mode === droppedBy || this.#mode === "drop-both";
    from.on("data", (bytes) => {
      if (dropped() || to.write(bytes)) return;
      from.pause();
      to.once("drain", () => {
        if (this.#mode !== "hold") from.resume();
      });
    });
    from.on("end", () => {
      if (!dropped()) to.end();
    });
    from.on("error", () => {
      if (!dropped()) to.resetAndDestroy();
    });
    from.on("close", () => {
      if (!dropped()) to.destroySoon();
    });
    if (this.#mode === "hold") from.pause();
  }
}
