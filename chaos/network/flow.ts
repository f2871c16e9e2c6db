import type { Socket } from "node:net";
import { FrameReader, isMessage, type NatsFrame } from "./nats-frames.ts";

/**
 * What becomes of the bytes of one direction: `pass`; `hold`: they are kept, as by a network that loses every packet and
 * a sender that repeats them, and go on when it heals; `drop`: they are lost for good, so that the connection is torn.
 */
export type Passage = "pass" | "hold" | "drop";

/** The state of one direction of a link. */
export interface Direction {
  readonly passage: Passage;
  /** Every piece is late by so much, and up to `jitterMs` more; order is kept. */
  readonly delayMs: number;
  readonly jitterMs: number;
  /** Share of whole NATS messages that are lost, and that come twice. Links that know no NATS have none. */
  readonly loss: number;
  readonly repetition: number;
}

export const clear: Direction = { passage: "pass", delayMs: 0, jitterMs: 0, loss: 0, repetition: 0 };

export interface FlowOptions {
  readonly from: Socket;
  readonly to: Socket;
  readonly direction: () => Direction;
  /** Until when this very connection is held though its link has healed, ms of performance.now(). */
  readonly heldUntil: () => number;
  readonly random: () => number;
  /** Sees every piece as it arrives. */
  readonly onPiece?: (piece: Buffer) => void;
  /** Given for links that carry the NATS client protocol: sees each message as it arrives and as it is handed on. */
  readonly nats?: { readonly arrived: (frame: NatsFrame) => void; readonly passed: (frame: NatsFrame) => void };
}

/**
 * What a worker asks. NATS delivers it once or not at all: if it came twice, an answer would speak of one delivery only, and
 * what is refused as definite could still be done by the other.
 */
const isRequest = ({ subject }: NatsFrame): boolean => subject.startsWith("mandate.");

interface Piece {
  readonly bytes: Buffer;
  readonly frame: NatsFrame | undefined;
  readonly dueAt: number;
}

/** So much is read from a sender whose bytes are held; then its own buffers fill up, as before a dead network. */
const HELD_BYTES_MAX = 4 * 1024 * 1024;

/** One direction of one connection through a link. */
export class Flow {
  readonly #options: FlowOptions;
  readonly #reader: FrameReader | undefined;
  #queue: Piece[] = [];
  #queuedBytes = 0;
  #lastDueAt = 0;
  #ended: "end" | "reset" | undefined;
  #timer: NodeJS.Timeout | undefined;
  #blocked = false;
  /** Bytes were lost: what follows makes no sense to the receiver. */
  torn = false;

  constructor(options: FlowOptions) {
    this.#options = options;
    if (options.nats !== undefined) this.#reader = new FrameReader();
    const { from, to } = options;
    from.on("data", (chunk: Buffer) => this.#take(chunk));
    from.on("end", () => this.#end("end"));
    from.on("error", () => this.#end("reset"));
    from.on("close", () => this.#end("end"));
    to.on("drain", () => {
      this.#blocked = false;
      this.flush();
    });
    to.on("close", () => this.#forget());
  }

  /** Hands on what may go now. To be called when the link's state changes. */
  flush(): void {
    clearTimeout(this.#timer);
    const { to, direction, heldUntil, nats } = this.#options;
    if (to.destroyed) return;
    const now = performance.now();
    if (direction().passage === "hold") return;
    if (heldUntil() > now) {
      this.#timer = setTimeout(() => this.flush(), heldUntil() - now);
      return;
    }
    while (!this.#blocked) {
      const piece = this.#queue[0];
      if (piece === undefined) break;
      if (piece.dueAt > now) {
        this.#timer = setTimeout(() => this.flush(), piece.dueAt - now);
        return;
      }
      this.#queue.shift();
      this.#queuedBytes -= piece.bytes.length;
      if (piece.frame !== undefined) nats?.passed(piece.frame);
      this.#blocked = !to.write(piece.bytes);
    }
    this.#throttle();
    if (this.#queue.length > 0 || direction().passage === "drop") return;
    if (this.#ended === "end") to.end();
    else if (this.#ended === "reset") to.resetAndDestroy();
  }

  #take(chunk: Buffer): void {
    this.#options.onPiece?.(chunk);
    if (this.#reader === undefined) this.#enqueue(chunk, undefined);
    else
      for (const frame of this.#reader.push(chunk)) {
        if (isMessage(frame)) this.#options.nats?.arrived(frame);
        this.#enqueueFrame(frame);
      }
    this.flush();
  }

  #enqueueFrame(frame: NatsFrame): void {
    const { direction, random } = this.#options;
    const message = isMessage(frame);
    if (message && random() < direction().loss) return;
    this.#enqueue(frame.bytes, message ? frame : undefined);
    if (message && !isRequest(frame) && random() < direction().repetition) this.#enqueue(frame.bytes, undefined);
  }

  #enqueue(bytes: Buffer, frame: NatsFrame | undefined): void {
    const { passage, delayMs, jitterMs } = this.#options.direction();
    if (passage === "drop") {
      this.torn = true;
      return;
    }
    const dueAt = Math.max(this.#lastDueAt, performance.now() + delayMs + this.#options.random() * jitterMs);
    this.#lastDueAt = dueAt;
    this.#queue.push({ bytes, frame, dueAt });
    this.#queuedBytes += bytes.length;
    this.#throttle();
  }

  #throttle(): void {
    if (this.#queuedBytes > HELD_BYTES_MAX || this.#blocked) this.#options.from.pause();
    else this.#options.from.resume();
  }

  /** The sender has gone. Its receiver learns of it when the network lets it. */
  #end(how: "end" | "reset"): void {
    this.#ended ??= how;
    this.flush();
  }

  #forget(): void {
    clearTimeout(this.#timer);
    this.#queue = [];
    this.#queuedBytes = 0;
  }
}
