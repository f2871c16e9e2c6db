import type { NatsFrame } from "./nats-frames.ts";
import type { NatsTap, TappedConnection } from "./nats-tap.ts";

/** Answers that are remembered, at most, before they are forgotten all at once. */
const REMEMBERED_MAX = 20_000;

const kindOf = (frame: NatsFrame): "stored" | "refused" | undefined => {
  const start = frame.bytes.toString("latin1", frame.payloadFrom, Math.min(frame.payloadTo, frame.payloadFrom + 12));
  if (start.startsWith('{"error":')) return "refused";
  return start.startsWith('{"stream":') ? "stored" : undefined;
};

/**
 * Counts writes of the nodes that were answered twice: around the healing of a partition two servers both hold themselves
 * to be the leader, and one refuses what the other stores. A run of partitions that never saw it has proved less.
 */
export class AnswerTap implements NatsTap {
  readonly #first = new Map<string, "stored" | "refused">();
  twice = 0;
  /** Refused by one and stored by the other, in whatever order. */
  contradicted = 0;

  connection(): TappedConnection {
    const ignored = { arrived: () => undefined, passed: () => undefined };
    return {
      toServer: ignored,
      toClient: { arrived: (frame) => this.#answer(frame), passed: () => undefined },
      closed: () => undefined,
    };
  }

  #answer(frame: NatsFrame): void {
    const kind = kindOf(frame);
    if (kind === undefined) return;
    const first = this.#first.get(frame.subject);
    if (first === undefined) {
      if (this.#first.size >= REMEMBERED_MAX) this.#first.clear();
      this.#first.set(frame.subject, kind);
      return;
    }
    this.twice += 1;
    if (first !== kind) this.contradicted += 1;
  }
}
