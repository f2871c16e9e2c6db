import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";

interface Event {
  readonly at: number;
  /** Among events of one instant the first scheduled runs first. */
  readonly sequence: number;
  action: (() => void) | undefined;
}

export interface EventQueueOptions {
  /** Virtual time at the start, epoch ms. */
  readonly startAt?: number;
  /**
   * `true`: the queue drives itself. What is due now runs in microtasks; when nothing is, time jumps to the next event as
   * soon as the program has come to rest. For tests that want answers at once. `false`, the default: events run only
   * inside {@link EventQueue.advance}, {@link EventQueue.runUntilIdle} and {@link EventQueue.settle}.
   */
  readonly automatic?: boolean;
}

/**
 * Virtual time and what happens in it, in one process: the order is a function of what was scheduled, never of the
 * machine. After each event the program comes to rest (promise callbacks run) before the next, so a run repeats exactly
 * as long as everything in it waits for this queue alone.
 */
export class EventQueue implements Clock {
  readonly #heap: Event[] = [];
  readonly #automatic: boolean;
  #now: number;
  #sequence = 0;
  #cancelled = 0;
  #pumping = false;

  constructor(options: EventQueueOptions = {}) {
    this.#now = options.startAt ?? 0;
    this.#automatic = options.automatic ?? false;
  }

  /** Virtual epoch ms. */
  now(): number {
    return this.#now;
  }

  /** Runs `action` after `delayMs` of virtual time; the answer takes it back, as long as it has not run. */
  after(delayMs: number, action: () => void): () => void {
    assert(delayMs >= 0, "an event can't be due in the past");
    const event: Event = { at: this.#now + delayMs, sequence: this.#sequence++, action };
    this.#push(event);
    this.#wake();
    return () => {
      if (event.action === undefined) return;
      event.action = undefined;
      this.#cancelled += 1;
      if (this.#cancelled > 1000 && this.#cancelled * 2 > this.#heap.length) this.#compact();
    };
  }

  /** Resolves after `delayMs` of virtual time. */
  async sleep(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.after(delayMs, resolve);
    });
  }

  /** Lets `ms` of virtual time pass, with everything that is due in it. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.#run(end, () => false);
    this.#now = Math.max(this.#now, end);
  }

  /** Runs until nothing is scheduled any more, or `limitMs` of virtual time have passed; tells whether it is idle. */
  async runUntilIdle(limitMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    await this.#run(this.#now + limitMs, () => false);
    return this.#next() === undefined;
  }

  /**
   * Runs until the promise is settled and answers as it does.
   *
   * @throws AssertionError when it is not settled within `limitMs` of virtual time, or can't be since nothing is left to run.
   */
  async settle<Value>(promise: Promise<Value>, limitMs = 600_000): Promise<Value> {
    let settled = false;
    const mark = (): void => {
      settled = true;
    };
    promise.then(mark, mark);
    await this.#run(this.#now + limitMs, () => settled);
    assert(settled, `not settled within ${limitMs} ms of virtual time`);
    return promise;
  }

  async #run(end: number, done: () => boolean): Promise<void> {
    assert(!this.#automatic, "an automatic queue drives itself");
    assert(!this.#pumping, "the queue is being run already");
    this.#pumping = true;
    try {
      await atRest();
      for (let event = this.#next(); event !== undefined && event.at <= end && !done(); event = this.#next()) {
        this.#perform();
        await atRest();
      }
    } finally {
      this.#pumping = false;
    }
  }

  #wake(): void {
    if (!this.#automatic || this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(() => this.#pump());
  }

  #pump(): void {
    const event = this.#next();
    if (event === undefined) {
      this.#pumping = false;
      return;
    }
    if (event.at > this.#now) {
      setImmediate(() => {
        // Something may have been scheduled for now, or taken back, while the program came to rest.
        if (this.#next() !== undefined) this.#perform();
        queueMicrotask(() => this.#pump());
      });
      return;
    }
    this.#perform();
    queueMicrotask(() => this.#pump());
  }

  #perform(): void {
    const event = this.#pop();
    const action = event?.action;
    if (event === undefined || action === undefined) return;
    event.action = undefined;
    this.#now = Math.max(this.#now, event.at);
    action();
  }

  /** The next event that was not taken back. */
  #next(): Event | undefined {
    for (let event = this.#heap[0]; event !== undefined; event = this.#heap[0]) {
      if (event.action !== undefined) return event;
      this.#pop();
      this.#cancelled -= 1;
    }
    return undefined;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex];
      if (parent === undefined || !before(event, parent)) break;
      heap[index] = parent;
      index = parentIndex;
    }
    heap[index] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || last === first) return first;
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      if (left === undefined) break;
      const rightFirst = right !== undefined && before(right, left);
      const child = rightFirst ? right : left;
      if (!before(child, last)) break;
      heap[index] = child;
      index = 2 * index + (rightFirst ? 2 : 1);
    }
    heap[index] = last;
    return first;
  }

  #compact(): void {
    const kept = this.#heap.filter((event) => event.action !== undefined);
    this.#heap.length = 0;
    this.#cancelled = 0;
    for (const event of kept) this.#push(event);
  }
}

const before = (left: Event, right: Event): boolean =>
  left.at < right.at || (left.at === right.at && left.sequence < right.sequence);

/** Resolves when all promise callbacks that can run have run. */
const atRest = async (): Promise<void> => {
  await new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
};
