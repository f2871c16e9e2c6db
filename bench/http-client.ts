import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** An HTTP answer, as far as a load generator needs it. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

const END_OF_HEAD = Buffer.from("\r\n\r\n");

/**
 * One kept connection that carries one request at a time. It takes what this product answers, and costs a tenth of a
 * general client: on a machine that also runs what is measured, that is the difference.
 */
export class HttpConnection {
  readonly #socket: Socket;
  readonly #host: string;
  #received: Buffer = Buffer.alloc(0);
  #waiting: { resolve(answer: Answer): void; reject(cause: Error): void } | undefined;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the connection was closed")));
  }

  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port, host } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, "connect");
    return new HttpConnection(socket, host);
  }

  /** Sends JSON and waits for the answer. */
  post(path: string, body: unknown, subject: string): Promise<Answer> {
    const text = JSON.stringify(body);
    return this.#send(
      `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nContent-Type: application/json\r\nX-Mandate-Subject: ${subject}\r\n` +
        `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
  }

  get(path: string): Promise<Answer> {
    return this.#send(`GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n\r\n`);
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #send(text: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting !== undefined || this.#socket.destroyed) {
        reject(new Error("the connection is not free"));
        return;
      }
      this.#waiting = { resolve, reject };
      this.#socket.write(text);
    });
  }

  #fail(cause: Error): void {
    this.#waiting?.reject(cause);
    this.#waiting = undefined;
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(END_OF_HEAD);
    if (headEnd < 0) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    const bodyStart = headEnd + END_OF_HEAD.length;
    if (length === undefined) {
      this.#fail(new Error("an answer without a length"));
      return;
    }
    const bodyEnd = bodyStart + Number(length);
    if (this.#received.length < bodyEnd) return;
    const answer = { status: Number(head.slice(9, 12)), body: this.#received.toString("utf8", bodyStart, bodyEnd) };
    this.#received = this.#received.subarray(bodyEnd);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(answer);
  }
}
