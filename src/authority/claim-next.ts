import type { Timers } from "../base/clock.ts";
import { MandateError } from "../core/errors.ts";
import type { Claim } from "../core/workload/record.ts";
import { claimRequestKey, ownerOfKey, scopeOfKey, shardOf } from "../store/keys.ts";
import type { Rank } from "../store/projection/projected.ts";
import { abilityWithin, type Ability } from "../store/projection/ability.ts";
import { queueOf } from "../store/projection/ready-queues.ts";
import type { Shard } from "../store/store.ts";
import type { ClaimNextRequest } from "../wire/requests.ts";
import type { Answered, CallContext } from "./api.ts";
import { ClaimCommits, type ClaimCommitsOptions, type Taken, type Taking } from "./claim-commits.ts";
import type { Claimants } from "./claimants.ts";
import { markOf } from "./operation-ids.ts";
import type { Pick, QueuePicker } from "./queue-picker.ts";
import { WaitingWorkers, type WaitingWorker } from "./waiting-workers.ts";
import { isRegisteredId } from "./worker-records.ts";

/** How many times lost races are followed by another try at once, before the request waits its turn. */
const ROUNDS_MAX = 100;
/** How long an answer waits for the view to become newer than the request, ms. */
const BARRIER_MS = 2000;

export interface ClaimNextOptions extends ClaimCommitsOptions {
  readonly picker: QueuePicker;
  readonly claimants: Claimants;
  readonly monotonic: () => number;
  readonly timers: Timers;
  /** Pick only from a view that is newer than the request: strict order, at the price of a write for each request. */
  readonly strict: boolean;
  /** Waits until the view of a shard is at least as new as a moment, monotonic ms; `false` when it can't be had in time. */
  readonly viewSince: (shard: Shard, moment: number, timeoutMs: number) => Promise<boolean>;
}

/** Hands out work to whoever asks next (contract 2.4). */
export class ClaimNext {
  readonly #options: ClaimNextOptions;
  readonly #waiting: WaitingWorkers;
  readonly #commits: ClaimCommits;
  #cancelStealing: (() => void) | undefined;
  readonly #stealQueues = new Set<string>();
  #stopped = false;

  constructor(options: ClaimNextOptions) {
    this.#options = options;
    this.#commits = new ClaimCommits(options);
    this.#waiting = new WaitingWorkers((worker) => this.#options.picker.pick({ ...worker, steal: false }));
  }

  /** Queues with workers in a long poll at this node. */
  waitingQueues(): IterableIterator<string> {
    return this.#waiting.queues();
  }

  /** Something became claimable in a queue. */
  dispatch(queue: string): void {
    this.#waiting.dispatch(queue);
    if (this.#waiting.has(queue)) this.#stealLater(queue);
  }

  /** A worker, a slot or a pool has changed: whoever waits may take what he could not take before. */
  registryChanged(key: string): void {
    const scope = scopeOfKey(key);
    if (scope === undefined) {
      for (const waiting of [...this.#waiting.queues()]) this.dispatch(waiting);
      return;
    }
    const queue = queueOf(scope);
    const owner = ownerOfKey(key);
    if (!this.#waiting.has(queue)) return;
    // A pool's place may be anybody's.
    if (isRegisteredId(owner)) {
      this.#waiting.dismissSuperseded(queue, owner);
      const isLeft = this.#waiting.dispatchTo(queue, owner);
      if (isLeft && this.#options.projection.index.ready.size(queue) > 0) this.#stealLater(queue);
    } else this.dispatch(queue);
  }

  /** Ends: long polls are answered with nothing, and nothing is handed out any more. */
  stop(): void {
    this.#stopped = true;
    this.#cancelStealing?.();
    this.#waiting.dismiss();
  }

  async run(request: ClaimNextRequest, context: CallContext): Promise<Answered<readonly Claim[]>> {
    const taking = await this.#takingOf(request, context);
    const untilMs = taking.since + request.waitMs;
    if (this.#options.strict) await this.#options.viewSince(taking.shard, taking.since, BARRIER_MS);
    this.#options.projection.index.promoteDue();
    for (let round = 1; ; round++) {
      if (this.#hasGone(context)) return { answer: [] };
      // What belongs to nodes that are at work in the queue is taken only when they let it lie.
      const picked = this.#options.picker.pick({
        ...this.#wishOf(taking),
        steal: !this.#options.picker.isShared(taking.queue, request.workerId),
      });
      const taken = picked.length > 0 ? await this.#try(taking, picked) : await this.#commits.remembered(taking);
      if (taken.length > 0) return answerOf(taken);
      if (
        picked.length > 0 &&
        round < ROUNDS_MAX &&
        this.#options.picker.hasMore(taking.queue, abilityOfTaking(taking))
      )
        continue;
      const leftMs = untilMs - this.#options.monotonic();
      if (leftMs <= 0) return this.#last(taking);
      const offered = await this.#wait(taking, leftMs);
      if (offered === undefined) return this.#last(taking);
      if (this.#hasGone(context)) {
        this.#options.picker.done(offered);
        return { answer: [] };
      }
      const won = await this.#try(taking, offered);
      if (won.length > 0) return answerOf(won);
    }
  }

  async #takingOf(request: ClaimNextRequest, context: CallContext): Promise<Taking> {
    const { projection, records, claimants, monotonic } = this.#options;
    const since = monotonic();
    const mark = markOf(context.caller ?? request.workerId, "claimNext", request.requestId);
    return {
      request,
      claimant: await claimants.of(request),
      context,
      since,
      queue: queueOf(request),
      shard: records.shard(shardOf(request, projection.position().length)),
      memory: mark === undefined ? undefined : { mark, key: claimRequestKey(request, mark) },
    };
  }

  #wishOf(taking: Taking): Omit<Pick, "steal"> {
    const { queue, request, claimant } = taking;
    const { workerId, max } = request;
    return {
      queue,
      workerId,
      ability: abilityOfTaking(taking),
      // A worker that waits may be free to take more, or less, by then.
      get max() {
        return Math.min(max, claimant.free());
      },
    };
  }

  /** Whether nobody is there any more to be given anything. */
  #hasGone(context: CallContext): boolean {
    return this.#stopped || context.signal?.aborted === true;
  }

  /** The last look before an empty answer: it must be at least as new as the request (contract 5.4). */
  async #last(taking: Taking): Promise<Answered<readonly Claim[]>> {
    if (this.#hasGone(taking.context)) return { answer: [] };
    const isNew = await this.#options.viewSince(taking.shard, taking.since, BARRIER_MS);
    // A view that stays behind may not have the process that took this one's name.
    if (!isNew) await taking.claimant.refresh();
    if (this.#hasGone(taking.context)) return { answer: [] };
    const superseded = taking.claimant.superseded();
    if (superseded !== undefined) throw MandateError.of(superseded);
    this.#options.projection.index.promoteDue();
    const picked = isNew ? this.#options.picker.pick({ ...this.#wishOf(taking), steal: true }) : [];
    // An earlier try of the same request may have taken something while this one waited.
    return answerOf(picked.length > 0 ? await this.#try(taking, picked) : await this.#commits.remembered(taking));
  }

  #wait(taking: Taking, leftMs: number): Promise<readonly Rank[] | undefined> {
    return new Promise((resolve) => {
      const { signal } = taking.context;
      // Whoever has gone, or was sent away, since the last look would not be told again.
      if (this.#hasGone(taking.context)) {
        resolve(undefined);
        return;
      }
      const settle = (offered: readonly Rank[] | undefined): void => {
        forget();
        signal?.removeEventListener("abort", giveUp);
        this.#waiting.remove(worker);
        resolve(offered);
      };
      const giveUp = (): void => settle(undefined);
      const worker: WaitingWorker = Object.assign(this.#wishOf(taking), {
        offer: settle,
        dismiss: giveUp,
        isSuperseded: () => taking.claimant.superseded() !== undefined,
      });
      const forget = this.#options.timers.after(leftMs, giveUp);
      signal?.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(worker);
      // What became claimable since the last look, which was followed by a read, found nobody waiting here.
      if (this.#options.projection.index.ready.size(taking.queue) > 0) this.dispatch(taking.queue);
    });
  }

  async #try(taking: Taking, candidates: readonly Rank[]): Promise<readonly Taken[]> {
    const { picker, monotonic } = this.#options;
    const from = monotonic();
    try {
      return await this.#commits.take(taking, candidates);
    } finally {
      picker.done(candidates);
      picker.noteDuration(monotonic() - from);
      if (this.#options.projection.index.ready.size(taking.queue) > 0) this.dispatch(taking.queue);
    }
  }

  /** What is another node's share is offered here once that node has had its time. */
  #stealLater(queue: string): void {
    this.#stealQueues.add(queue);
    this.#cancelStealing ??= this.#options.timers.after(this.#options.picker.stealAfterMs(), () =>
      this.#dispatchStealing(),
    );
  }

  /** Other nodes have had their time with their share: whoever waits here may take it. */
  #dispatchStealing(): void {
    this.#cancelStealing = undefined;
    const queues = [...this.#stealQueues];
    this.#stealQueues.clear();
    for (const queue of queues)
      this.#waiting.dispatchWith(queue, (worker) => this.#options.picker.pick({ ...worker, steal: true }));
  }
}

const answerOf = (taken: readonly Taken[]): Answered<readonly Claim[]> => {
  const last = taken.at(-1);
  return {
    answer: taken.map(({ claim }) => claim),
    ...(last === undefined ? {} : { position: { shard: last.position.shard, revision: last.position.revision } }),
  };
};

/** What the worker can do, as far as its grant lets it. */
const abilityOfTaking = ({ claimant, context }: Taking): Ability =>
  context.mayTake === undefined ? claimant.ability : abilityWithin(claimant.ability, context.mayTake);
