import type { Answers, CallName } from "../../src/authority/api.ts";
import { seededRandom, type Random } from "../../src/base/random.ts";
import { MandateError } from "../../src/core/errors.ts";
import { EventQueue } from "../../src/store/simulated/event-queue.ts";
import { silentLog, type Log } from "../../src/base/log.ts";
import { calmFaults, roughFaults, type Faults } from "../../src/store/simulated/faults.ts";
import type { LoggedCommit } from "../../src/store/simulated/shard-log.ts";
import { SimulatedLog } from "../../src/store/simulated/simulated-log.ts";
import { Ledger, type Heard, type Wish } from "./ledger.ts";
import { VirtualNode } from "./virtual-node.ts";

export const START = 1_700_000_000_000;
/** How many authorities there are. */
const NODES = 3;
/** How often a wish is tried before its outcome stays unknown. */
const TRIES_MAX = 6;

/** Draws from a seed; the whole run depends on nothing else. */
export class Draw {
  readonly random: Random;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  /** A whole number, both ends included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.random() * (to - from + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.random() * items.length)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }
}

/** The place of one authority: its processes come and go. */
export interface Slot {
  readonly nodeId: string;
  generation: number;
  node: VirtualNode;
  faults: Partial<Faults>;
}

export type Phase = "safety" | "liveness" | "over";

/** One run: a log, its authorities, virtual time, and everybody's wishes. */
export class World {
  readonly seed: number;
  readonly draw: Draw;
  readonly queue = new EventQueue({ startAt: START });
  readonly log: SimulatedLog;
  readonly shards: number;
  readonly ledger = new Ledger();
  readonly slots: readonly Slot[];
  phase: Phase = "safety";
  /** How likely an answer is lost between a node and its caller. */
  answerLost: number;
  /** What the links are like as long as things go wrong, beside what happens to them. */
  readonly weather: Partial<Faults>;
  /** How long a commit is tried, ms. */
  readonly #commitDeadlineMs: number;
  /** When each process became ready, and when it no longer was: by its nonce, virtual ms. */
  readonly turns = new Map<string, { readonly at: number; readonly ready: boolean }[]>();

  constructor(seed: number) {
    this.seed = seed;
    this.draw = new Draw(seed);
    this.shards = this.draw.pick([1, 1, 3]);
    this.log = new SimulatedLog({ clock: this.queue, queue: this.queue, seed, history: true, shards: this.shards });
    this.answerLost = this.draw.pick([0, 0.05, 0.2]);
    this.weather = this.draw.pick([calmFaults, mildFaults, roughFaults, lyingFaults, muteFaults]);
    this.#commitDeadlineMs = this.draw.pick([1500, 4000, 10_000]);
    const faults = this.weather;
    this.slots = Array.from({ length: NODES }, (_, index) => {
      const nodeId = `node-${index}`;
      return { nodeId, generation: 0, faults, node: this.#born(nodeId, { generation: 0, faults }) };
    });
  }

  /** Every commit of every shard, shard by shard. */
  committed(): readonly LoggedCommit[] {
    return Array.from({ length: this.shards }, (_, shard) => this.log.history(shard)).flat();
  }

  /** Waits, virtual ms. */
  sleep(delayMs: number): Promise<void> {
    return this.queue.sleep(delayMs);
  }

  /** A new process in the place of a dead one. */
  revive(slot: Slot): void {
    slot.generation += 1;
    slot.node = this.#born(slot.nodeId, slot);
  }

  /**
   * Wants something until it is answered, or refused for good, or has been tried often enough. What was lost is tried
   * again at any node with the same arguments, if that is safe.
   */
  async want<Name extends CallName>(
    name: Name,
    wish: Pick<Wish, "mark" | "arguments" | "workloadId" | "repeatable">,
  ): Promise<{ readonly answer: Answers[Name] } | { readonly code: string } | undefined> {
    const opened = this.ledger.open({ ...wish, name });
    for (let count = 0; count < TRIES_MAX && this.phase !== "over"; count++) {
      const heard = await this.#tryOnce(opened);
      if (heard.kind === "answered") return { answer: heard.answer as Answers[Name] };
      if (heard.kind === "refused" && !heard.retry) return { code: heard.code };
      if (heard.kind === "refused" ? !heard.definite && !wish.repeatable : !wish.repeatable) return undefined;
      // Somebody asks twice at once, not knowing that the first try is still under way.
      if (this.draw.chance(0.7)) await this.sleep(this.draw.between(0, 1500));
    }
    return undefined;
  }

  #tryOnce(wish: Wish): Promise<Heard> {
    const slot = this.draw.pick(this.slots);
    const patienceMs = this.phase === "safety" ? this.draw.pick([300, 3000, 15_000]) : 30_000;
    const tried = {
      nodeId: slot.nodeId,
      startedAt: this.queue.now(),
      endedAt: undefined as number | undefined,
      heard: { kind: "lost" } as Heard,
    };
    wish.tries.push(tried);
    const { name } = wish;
    const lost = this.phase === "safety" && this.draw.chance(this.answerLost);
    return new Promise((resolve) => {
      const settle = (heard: Heard): void => {
        if (tried.endedAt !== undefined) return;
        tried.endedAt = this.queue.now();
        tried.heard = heard;
        forget();
        resolve(heard);
      };
      const forget = this.queue.after(patienceMs, () => settle({ kind: "lost" }));
      slot.node
        .reach((authority) => authority.call(name, wish.arguments))
        .then(
          ({ answer }) => settle(lost ? { kind: "lost" } : { kind: "answered", answer }),
          (cause: unknown) => settle(lost ? { kind: "lost" } : heardOf(cause)),
        );
    });
  }

  #turnsOf(nonce: string): Log {
    const turns: { readonly at: number; readonly ready: boolean }[] = [];
    this.turns.set(nonce, turns);
    return {
      ...silentLog,
      info: (fields) => {
        if ("ready" in fields && typeof fields.ready === "boolean")
          turns.push({ at: this.queue.now(), ready: fields.ready });
      },
    };
  }

  #born(nodeId: string, slot: Pick<Slot, "generation" | "faults">): VirtualNode {
    const { draw } = this;
    // Told from what follows it in an operation id by its last character.
    const nonce = `${nodeId.slice(-1)}g${slot.generation}_`;
    return new VirtualNode({
      log: this.log,
      nodeId,
      nonce,
      sink: this.#turnsOf(nonce),
      options: { commitDeadlineMs: this.#commitDeadlineMs },
      seed: draw.between(1, 2 ** 30),
      faults: slot.faults,
      wallOffsetMs: draw.between(-500, 500),
      rate: 1 + draw.between(-200, 200) / 1_000_000,
    });
  }
}

/** Nothing is dramatic, and nothing can be relied upon. */
const mildFaults: Faults = {
  ...roughFaults,
  delayMs: [0, 15],
  requestLost: 0.01,
  requestLate: 0.01,
  replyLost: 0.02,
  falseRefusal: 0.02,
  followDelayMs: [0, 100],
  followLost: 0.002,
};

/** Servers that were deposed speak up again and again, and what a follower is told comes in any order. */
const lyingFaults: Faults = { ...mildFaults, falseRefusal: 0.25, staleRead: 0.5, followReorder: 0.1 };

/** All that is sent arrives, and its answer often does not. */
const muteFaults: Faults = { ...calmFaults, replyLost: 0.15 };

const heardOf = (cause: unknown): Heard => {
  if (!(cause instanceof MandateError))
    return { kind: "refused", code: `bug: ${String(cause)}`, definite: false, retry: false };
  const { code, definite, retry } = cause;
  return { kind: "refused", code, definite, retry };
};
