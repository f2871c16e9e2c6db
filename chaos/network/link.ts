import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";
import type { Random } from "../../src/base/random.ts";
import { clear, Flow, type Direction } from "./flow.ts";
import type { NatsTap } from "./nats-tap.ts";

export interface LinkOptions {
  /** `<client>><server>`, for the record. */
  readonly name: string;
  /** Port of the server on 127.0.0.1. */
  readonly target: number;
  readonly random: Random;
  /** Given for links from a client to a NATS server: the protocol is understood, so that whole messages can be lost. */
  readonly tap?: NatsTap;
}

/** What a link is told to be; what is left out stays as it was. */
export interface LinkShape {
  readonly toServer?: Partial<Direction>;
  readonly toClient?: Partial<Direction>;
  /** New connections are reset at once. */
  readonly refuse?: boolean;
}

/** When the connections of a link come back, ms after it has healed. */
export interface Healing {
  /** Each at some moment within so much. */
  readonly spreadMs?: number;
  /** Those between nats-servers over which they agree on who leads: that much later. */
  readonly raftLateMs?: number;
}

/** How a nats-server introduces the connection that is kept for the traffic among the servers themselves. */
const RAFT_MARK = '"route_account":"$SYS"';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly flows: readonly Flow[];
  heldUntil: number;
  raft: boolean;
}

/**
 * A piece of network between one client and one server: a TCP proxy on 127.0.0.1 each of whose directions can be held,
 * lost, delayed and thinned out by itself. When a link heals, each of its connections can come back at its own time, as
 * with a real network, where each sender repeats at its own pace: it is in those seconds that a server which has lost its
 * leadership still answers.
 */
export class Link {
  readonly name: string;
  readonly port: number;
  readonly #options: LinkOptions;
  readonly #listener: Server;
  readonly #pairs = new Set<Pair>();
  #toServer: Direction = clear;
  #toClient: Direction = clear;
  #refuse = false;
  #closing: Promise<void> | undefined;

  private constructor(options: LinkOptions, listener: Server) {
    this.#options = options;
    this.name = options.name;
    this.#listener = listener;
    this.port = (listener.address() as AddressInfo).port;
  }

  /** Listens on a free port. */
  static async start(options: LinkOptions): Promise<Link> {
    const listener = createServer({ noDelay: true, allowHalfOpen: true });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    const link = new Link(options, listener);
    listener.on("connection", (client) => link.#join(client));
    return link;
  }

  /** Changes what happens to everything that arrives, or is still held, from now on. */
  shape(shape: LinkShape): void {
    this.#toServer = { ...this.#toServer, ...shape.toServer };
    this.#toClient = { ...this.#toClient, ...shape.toClient };
    this.#refuse = shape.refuse ?? this.#refuse;
    for (const { flows } of this.#pairs) for (const flow of flows) flow.flush();
  }

  /** Everything passes again, connection by connection. Torn ones are reset. */
  heal({ spreadMs = 0, raftLateMs = 0 }: Healing = {}): void {
    const now = performance.now();
    for (const pair of this.#pairs) {
      pair.heldUntil = now + spreadMs * this.#options.random() + (pair.raft ? raftLateMs : 0);
      if (pair.flows.some(({ torn }) => torn)) this.#reset(pair);
    }
    this.shape({ toServer: clear, toClient: clear, refuse: false });
  }

  /** Resets every connection. */
  cut(): void {
    for (const pair of this.#pairs) this.#reset(pair);
  }

  /** Resets every connection and listens no more. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const closed = once(this.#listener, "close");
    this.#listener.close();
    this.cut();
    await closed;
  }

  #reset({ client, server }: Pair): void {
    client.resetAndDestroy();
    server.resetAndDestroy();
  }

  #join(client: Socket): void {
    if (this.#refuse) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ port: this.#options.target, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
    const tapped = this.#options.tap?.connection();
    const onPiece = (piece: Buffer): void => {
      if (piece.includes(RAFT_MARK)) pair.raft = true;
    };
    const shared = {
      heldUntil: () => pair.heldUntil,
      random: this.#options.random,
      ...(tapped === undefined ? { onPiece } : {}),
    };
    const flows = [
      new Flow({
        from: client,
        to: server,
        direction: () => this.#toServer,
        ...shared,
        ...(tapped === undefined ? {} : { nats: tapped.toServer }),
      }),
      new Flow({
        from: server,
        to: client,
        direction: () => this.#toClient,
        ...shared,
        ...(tapped === undefined ? {} : { nats: tapped.toClient }),
      }),
    ];
    const pair: Pair = { client, server, flows, heldUntil: 0, raft: false };
    this.#pairs.add(pair);
    for (const socket of [client, server])
      socket.on("close", () => {
        if (!client.destroyed || !server.destroyed) return;
        this.#pairs.delete(pair);
        tapped?.closed();
      });
  }
}
