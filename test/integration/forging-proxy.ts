import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

/** Given the text of a message on its way to the client: a text to send before it, as if another server had answered. */
export type Forge = (payload: string) => string | undefined;

const LINE_END = "\r\n";

/**
 * A TCP proxy before one server that understands enough of the protocol to put an answer of its own before a real one,
 * to the same subscription and subject: what a client sees while two servers both believe that they lead a stream.
 */
export class ForgingProxy {
  readonly port: number;
  readonly #listener: Server;
  readonly #sockets = new Set<Socket>();
  #forge: Forge = () => undefined;
  #loses: (message: string) => boolean = () => false;
  #repeats: (message: string) => boolean = () => false;

  private constructor(listener: Server, port: number) {
    this.#listener = listener;
    this.port = port;
  }

  static async start(target: number): Promise<ForgingProxy> {
    const listener = createServer({ noDelay: true });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    const proxy = new ForgingProxy(listener, (listener.address() as AddressInfo).port);
    listener.on("connection", (client) => proxy.#join(client, target));
    return proxy;
  }

  /** From the next message on. */
  setForge(forge: Forge): void {
    this.#forge = forge;
  }

  /** From the next message on, those for which this answers `true` never arrive, while the connection stays up. */
  setLoss(loses: (message: string) => boolean): void {
    this.#loses = loses;
  }

  /** From the next message on, those for which this answers `true` arrive twice. */
  setRepeats(repeats: (message: string) => boolean): void {
    this.#repeats = repeats;
  }

  async close(): Promise<void> {
    const closed = once(this.#listener, "close");
    this.#listener.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #join(client: Socket, target: number): void {
    const server = connect({ port: target, host: "127.0.0.1", noDelay: true });
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      const end = (): void => {
        client.destroy();
        server.destroy();
      };
      socket.on("error", end);
      socket.on("close", end);
    }
    client.pipe(server);
    let rest = Buffer.alloc(0);
    server.on("data", (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      for (let frame = nextFrame(rest); frame !== undefined; frame = nextFrame(rest)) {
        rest = rest.subarray(frame.bytes.length);
        const message = frame.bytes.toString("latin1");
        if (this.#loses(message)) continue;
        if (this.#repeats(message)) client.write(frame.bytes);
        const forged = frame.payload === undefined ? undefined : this.#forge(frame.payload);
        if (forged !== undefined) {
          const head = frame.head.replace(/\d+$/, String(Buffer.byteLength(forged)));
          client.write(`${head}${LINE_END}${forged}${LINE_END}`);
        }
        client.write(frame.bytes);
      }
    });
  }
}

interface Frame {
  readonly bytes: Buffer;
  readonly head: string;
  /** Of a message without headers. */
  readonly payload: string | undefined;
}

function nextFrame(buffer: Buffer): Frame | undefined {
  const lineEnd = buffer.indexOf(LINE_END);
  if (lineEnd < 0) return undefined;
  const head = buffer.toString("latin1", 0, lineEnd);
  const start = lineEnd + LINE_END.length;
  if (!/^H?MSG /.test(head)) return { bytes: buffer.subarray(0, start), head, payload: undefined };
  const length = Number(/(\d+)$/.exec(head)?.[1]);
  const end = start + length + LINE_END.length;
  if (buffer.length < end) return undefined;
  const payload = head.startsWith("MSG ") ? buffer.toString("utf8", start, start + length) : undefined;
  return { bytes: buffer.subarray(0, end), head, payload };
}
