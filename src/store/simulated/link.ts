import type { Random } from "../../base/random.ts";
import type { EventQueue } from "./event-queue.ts";
import { chance, drawMs } from "./faults.ts";
import type { Faults } from "./faults.ts";

/** The state of the log's servers, as a request meets it. */
export interface ServerState {
  /** No server takes anything; senders are told at once. */
  down(): boolean;
  /** Grows when the servers are started again: what was on its way by then is lost. */
  incarnation(): number;
  /** Runs now, or when the servers go on after a pause. */
  admit(serve: () => void): void;
}

/** What came of one request. */
export type Delivery<Reply> =
  | { readonly kind: "reply"; readonly reply: Reply }
  /** Nobody took it, nor will. */
  | { readonly kind: "unreached" }
  /** No answer within the time allowed: it may have been served, or may still be. */
  | { readonly kind: "lost" };

/** One client's way to the log and back, with its faults. */
export class Link {
  readonly #queue: EventQueue;
  readonly #server: ServerState;
  readonly #random: Random;
  readonly #faults: () => Faults;
  /** `true`: whatever is sent is swallowed, and answers too. */
  cut = false;

  constructor(options: {
    readonly queue: EventQueue;
    readonly server: ServerState;
    readonly random: Random;
    readonly faults: () => Faults;
  }) {
    this.#queue = options.queue;
    this.#server = options.server;
    this.#random = options.random;
    this.#faults = options.faults;
  }

  /** Sends a request that the server answers with `serve`, and waits for its first answer for at most `timeoutMs`. */
  request<Reply>(serve: () => Reply, timeoutMs: number): Promise<Delivery<Reply>> {
    return new Promise((resolve) => {
      const forget = this.#queue.after(timeoutMs, () => resolve({ kind: "lost" }));
      const settle = (delivery: Delivery<Reply>): void => {
        forget();
        resolve(delivery);
      };
      this.#send(serve, settle);
    });
  }

  #send<Reply>(serve: () => Reply, settle: (delivery: Delivery<Reply>) => void): void {
    const { delayMs, lateMs, requestLost, requestLate } = this.#faults();
    const random = this.#random;
    if (this.cut || chance(random, requestLost)) return;
    const incarnation = this.#server.incarnation();
    const wayMs = chance(random, requestLate) ? drawMs(random, lateMs) : drawMs(random, delayMs);
    this.#queue.after(wayMs, () => {
      if (this.#server.down()) {
        this.#answer(() => settle({ kind: "unreached" }));
        return;
      }
      this.#server.admit(() => {
        if (this.#server.incarnation() !== incarnation) return;
        const reply = serve();
        if (chance(random, this.#faults().replyLost)) return;
        const arrive = (): void => {
          if (this.#server.incarnation() === incarnation) settle({ kind: "reply", reply });
        };
        this.#answer(arrive);
        if (chance(random, this.#faults().replyDuplicated)) this.#answer(arrive);
      });
    });
  }

  #answer(arrive: () => void): void {
    this.#queue.after(drawMs(this.#random, this.#faults().delayMs), () => {
      if (!this.cut) arrive();
    });
  }
}
