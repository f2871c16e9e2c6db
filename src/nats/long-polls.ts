/** A long poll under way. */
export interface LongPoll {
  /** Aborts when nobody waits for it any more. */
  readonly signal: AbortSignal;
  /** Whoever waits is answered now. */
  end(): void;
  /** It has been answered. */
  leave(): void;
}

/**
 * The long polls under way at this node. NATS does not say when a caller has gone, so a worker that stops says so itself
 * (`work.end-next`): its poll is then answered at once, with what it has just taken or with nothing. Who knows a poll's
 * requestId may end it.
 */
export class LongPolls {
  readonly #polls = new Map<string, Set<AbortController>>();
  #ended = false;

  /** `key`: of {@link longPollKey}; repeats of one request share it. */
  enter(key: string): LongPoll {
    const controller = new AbortController();
    if (this.#ended) controller.abort();
    const polls = this.#polls.get(key) ?? new Set();
    this.#polls.set(key, polls.add(controller));
    return {
      signal: controller.signal,
      end: () => controller.abort(),
      leave: () => {
        polls.delete(controller);
        if (polls.size === 0 && this.#polls.get(key) === polls) this.#polls.delete(key);
      },
    };
  }

  /** Whoever waits under that key is answered now. */
  end(key: string): void {
    for (const controller of this.#polls.get(key) ?? []) controller.abort();
  }

  /** The door closes: nobody waits from now on. */
  endAll(): void {
    this.#ended = true;
    for (const key of [...this.#polls.keys()]) this.end(key);
  }
}

/**
 * Which poll a request is, or which a notice of its end means; `prefix` is the encoded `<tenant>/<application>` of the
 * subject. `undefined` when no worker and requestId are named: such a poll can't be ended by itself.
 */
export function longPollKey(prefix: string, value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("workerId" in value) || !("requestId" in value))
    return undefined;
  const { workerId, requestId } = value;
  if (typeof workerId !== "string" || typeof requestId !== "string") return undefined;
  return JSON.stringify([prefix, workerId, requestId]);
}
