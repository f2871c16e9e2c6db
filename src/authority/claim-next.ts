import type { Timers } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { MandateError, refuse } from "../core/errors.ts";
import { decideClaim } from "../core/workload/claim.ts";
import type { Change } from "../core/workload/decision.ts";
import type { Instant } from "../core/workload/fence.ts";
import type { Claim } from "../core/workload/record.ts";
import { claimRequestKey, isRegistryKey, ownerOfKey, scopeOfKey, shardOf } from "../store/keys.ts";
import type { Projected, Rank } from "../store/projection/projected.ts";
import type { Projection } from "../store/projection/projection.ts";
import { queueOf } from "../store/projection/ready-queues.ts";
import type { Assertion, Shard } from "../store/store.ts";
import { decodeClaimRequest, encodeClaimRequest } from "../wire/codec.ts";
import type { ClaimNextRequest } from "../wire/requests.ts";
import type { Answered, CallContext, Position } from "./api.ts";
import { evidenceOf, type Claimant, type Claimants } from "./claimants.ts";
import type { Executor } from "./executor.ts";
import { type OperationIds, markOf } from "./operation-ids.ts";
import { provenanceOf } from "./provenance.ts";
import type { Pick, QueuePicker } from "./queue-picker.ts";
import { dependencyStatesOf, type Records, type Seen } from "./records.ts";
import type { SlotGrab, Slots } from "./slots.ts";
import { WaitingWorkers, type WaitingWorker } from "./waiting-workers.ts";

/** What a claimNext request took is remembered this long, ms: a repeat within it gets the same. */
const CLAIM_REQUEST_TTL_MS = 600_000;
/** How many times lost races are followed by another try at once, before the request waits its turn. */
const ROUNDS_MAX = 100;
/** How long an answer waits for the view to become newer than the request, ms. */
const BARRIER_MS = 2000;

/** How many writes and assertions one commit may have: the store takes a thousand. */
const COMMIT_SIZE_MAX = 900;

export interface ClaimNextOptions {
  readonly nodeId: string;
  readonly executor: Executor;
  readonly records: Records;
  readonly projection: Projection;
  readonly picker: QueuePicker;
  readonly claimants: Claimants;
  readonly slots: Slots;
  readonly operationIds: OperationIds;
  readonly instant: () => Instant;
  readonly commitDeadlineMs: number;
  readonly monotonic: () => number;
  readonly timers: Timers;
  readonly log: Log;
  /** Pick only from a view that is newer than the request: strict order, at the price of a write for each request. */
  readonly strict: boolean;
  /** Waits until the view of a shard is at least as new as a moment, monotonic ms; `false` when it can't be had in time. */
  readonly viewSince: (shard: Shard, moment: number, timeoutMs: number) => Promise<boolean>;
}

interface Taking {
  readonly request: ClaimNextRequest;
  readonly claimant: Claimant;
  readonly context: CallContext;
  readonly queue: string;
  readonly shard: Shard;
  /** When the request came, monotonic ms. */
  readonly since: number;
  /** Given with a requestId: where the request's claims are remembered. */
  readonly memory: { readonly mark: string; readonly key: string } | undefined;
}

interface Taken {
  readonly claim: Claim;
  readonly position: Position;
}

/** One workload that is about to be claimed. */
interface Intent {
  readonly seen: Seen;
  readonly change: Change;
  readonly claim: Claim;
  readonly grab: SlotGrab | undefined;
}

/** Hands out work to whoever asks next (contract 2.4). */
export class ClaimNext {
  readonly #options: ClaimNextOptions;
  readonly #waiting: WaitingWorkers;
  #cancelStealing: (() => void) | undefined;
  readonly #stealQueues = new Set<string>();
  #stopped = false;

  constructor(options: ClaimNextOptions) {
    this.#options = options;
    this.#waiting = new WaitingWorkers((worker) => this.#options.picker.pick({ ...worker, steal: false }));
  }

  /** Queues with workers in a long poll at this node. */
  waitingQueues(): IterableIterator<string> {
    return this.#waiting.queues();
  }

  /** Something became claimable in a queue. */
  dispatch(queue: string): void {
    this.#waiting.dispatch(queue);
    if (!this.#waiting.has(queue)) return;
    this.#stealQueues.add(queue);
    this.#cancelStealing ??= this.#options.timers.after(this.#options.picker.stealAfterMs(), () =>
      this.#dispatchStealing(),
    );
  }

  /** A worker, a slot or a pool has changed: whoever waits may take what he could not take before. */
  registryChanged(key: string): void {
    const scope = scopeOfKey(key);
    const queue = scope === undefined ? undefined : queueOf(scope);
    if (queue === undefined) for (const waiting of [...this.#waiting.queues()]) this.dispatch(waiting);
    else if (this.#waiting.has(queue)) this.#waiting.dispatchTo(queue, ownerOfKey(key));
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
      const taken = picked.length > 0 ? await this.#try(taking, picked) : await this.#remembered(taking);
      if (taken.length > 0) return answerOf(taken);
      if (
        picked.length > 0 &&
        round < ROUNDS_MAX &&
        this.#options.picker.hasMore(taking.queue, taking.claimant.ability)
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
    const { requestId } = request;
    const mark =
      requestId === undefined ? undefined : markOf(context.caller ?? request.workerId, "claimNext", requestId);
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

  #wishOf({ queue, request: { workerId, max }, claimant }: Taking): Omit<Pick, "steal"> {
    return {
      queue,
      workerId,
      ability: claimant.ability,
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
    if (this.#hasGone(taking.context)) return { answer: [] };
    this.#options.projection.index.promoteDue();
    const picked = isNew ? this.#options.picker.pick({ ...this.#wishOf(taking), steal: true }) : [];
    // An earlier try of the same request may have taken something while this one waited.
    return answerOf(picked.length > 0 ? await this.#try(taking, picked) : await this.#remembered(taking));
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
      const worker: WaitingWorker = Object.assign(this.#wishOf(taking), { offer: settle, dismiss: giveUp });
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
      return taking.memory === undefined
        ? await this.#claimEach(taking, candidates)
        : await this.#claimTogether(taking, candidates);
    } finally {
      picker.done(candidates);
      picker.noteDuration(monotonic() - from);
      if (this.#options.projection.index.ready.size(taking.queue) > 0) this.dispatch(taking.queue);
    }
  }

  /** What the rules say to each candidate. What is not to be claimed is filed where it belongs, or ended where the rules end it. */
  async #intend(taking: Taking, candidates: readonly Rank[]): Promise<readonly Intent[]> {
    const { records, projection } = this.#options;
    const { claimant } = taking;
    const intents: Intent[] = [];
    for (const { workloadId } of candidates) {
      const seen = await records.current(workloadId, taking.request).catch(() => undefined);
      if (seen === undefined || !seen.workload.writable) continue;
      const { record } = seen.workload;
      const grab = claimant.grab(record);
      if (grab === "none") break;
      const command = { ...taking.request, capabilities: claimant.capabilities(), evidence: evidenceOf(grab) };
      const decision = decideClaim(record, command, {
        ...this.#options.instant(),
        dependencies: dependencyStatesOf(seen),
      });
      if (decision.ok && decision.change !== undefined) {
        intents.push({ seen, change: decision.change, claim: decision.answer, grab });
        continue;
      }
      grab?.end();
      if (decision.change === undefined) projection.index.refile(workloadId);
      else await this.#endInstead(seen.workload, { change: decision.change, context: taking.context });
    }
    return intents;
  }

  /** The rules end the workload instead of handing it out: a deadline has passed, or its attempts are used. Not this request's business when it fails. */
  async #endInstead(
    workload: Projected,
    how: { readonly change: Change; readonly context: CallContext },
  ): Promise<void> {
    const { executor, records } = this.#options;
    try {
      const { record: before } = workload;
      const ended = await executor.commit({ ...this.#placeOf(workload), ...how, before, mark: undefined, asserts: [] });
      if (ended === undefined) await records.fresh(workload.record.workloadId, { scope: undefined });
    } catch (cause) {
      this.#options.log.debug(
        { workloadId: workload.record.workloadId, cause: String(cause) },
        "could not end a workload",
      );
    }
  }

  #placeOf(workload: Projected): { readonly key: string; readonly shard: Shard; readonly base: Projected } {
    return { key: workload.key, shard: this.#options.records.shard(workload.shard), base: workload };
  }

  /** Without a requestId: each claim is a commit of its own. */
  async #claimEach(taking: Taking, candidates: readonly Rank[]): Promise<readonly Taken[]> {
    const intents = await this.#intend(taking, candidates);
    const settled = await Promise.allSettled(intents.map((intent) => this.#claimOne(taking, intent)));
    const taken = settled.flatMap((result) =>
      result.status === "fulfilled" && result.value !== undefined ? [result.value] : [],
    );
    const failed = settled.find((result) => result.status === "rejected");
    if (taken.length === 0 && failed !== undefined) throw failed.reason;
    return taken;
  }

  async #claimOne(taking: Taking, { seen, change, claim, grab }: Intent): Promise<Taken | undefined> {
    try {
      const committed = await this.#options.executor.commit({
        ...this.#placeOf(seen.workload),
        change,
        mark: undefined,
        context: taking.context,
        asserts: [...taking.claimant.asserts(), ...assertsOf(seen, change)],
        slots: grab?.putsFor(claim) ?? [],
      });
      if (committed !== undefined) return { claim, position: committed };
      await this.#options.records.fresh(claim.workloadId, { scope: taking.request });
      return undefined;
    } finally {
      grab?.end();
    }
  }

  /** With a requestId: all claims and the memory of the request in one commit, so that a repeat can never take a second helping. */
  async #claimTogether(taking: Taking, candidates: readonly Rank[]): Promise<readonly Taken[]> {
    const all = await this.#intend(taking, candidates);
    try {
      const intents = fittingOf(all);
      const [first] = intents;
      // What was picked is gone, perhaps to an earlier try of this very request.
      if (taking.memory === undefined || first === undefined) return await this.#remembered(taking);
      const taken = await this.#commitTogether(taking, [first, ...intents.slice(1)]);
      if (taken.length > 0) return taken;
      await Promise.all(
        intents.map(({ claim }) => this.#options.records.fresh(claim.workloadId, { scope: taking.request })),
      );
      return await this.#remembered(taking);
    } finally {
      for (const { grab } of all) grab?.end();
    }
  }

  async #commitTogether(taking: Taking, intents: readonly [Intent, ...Intent[]]): Promise<readonly Taken[]> {
    const { executor, operationIds, nodeId, commitDeadlineMs, slots } = this.#options;
    const { memory, shard, context, claimant } = taking;
    if (memory === undefined) return [];
    const [first] = intents;
    const operationId = operationIds.next(memory.mark, first.change.reference);
    const remembered = encodeClaimRequest(
      intents.map(({ claim: { workloadId, fencingToken } }) => ({ workloadId, fencingToken })),
    );
    const claimed = intents.flatMap(({ seen, change }) => executor.putsOf(change, seen.workload.key, seen.workload));
    const slotPuts = intents.flatMap(({ grab, claim }) => grab?.putsFor(claim) ?? []);
    const asserts = [...claimant.asserts(), ...intents.flatMap(({ seen, change }) => assertsOf(seen, change))];
    for (const { seen, change } of intents) executor.expect(change, seen.workload.key, operationId);
    const memo = { key: memory.key, value: remembered, base: "absent", ttlMs: CLAIM_REQUEST_TTL_MS } as const;
    const outcome = await shard.commit(
      {
        operationId,
        puts: [...claimed, ...slotPuts, memo],
        asserts: distinct(asserts),
        provenance: provenanceOf(first.change, { operationId, context, nodeId }),
      },
      { deadlineMs: commitDeadlineMs },
    );
    if (outcome.kind === "committed")
      slots.adopt(shard.index, slotPuts, { revisions: outcome.revisions.slice(claimed.length), operationId });
    const taken: Taken[] = [];
    for (const [index, { seen, change, claim }] of intents.entries()) {
      const revision = outcome.kind === "committed" ? outcome.revisions[index] : undefined;
      const committed = executor.settle(outcome, {
        ...this.#placeOf(seen.workload),
        change,
        mark: memory.mark,
        context,
        asserts: [],
        operationId,
        ...(revision === undefined ? {} : { revision }),
      });
      if (committed !== undefined) taken.push({ claim, position: committed });
    }
    if (outcome.kind === "refused")
      await slots.refresh(shard, [...slotPuts, ...asserts].map(({ key }) => key).filter(isRegistryKey));
    return taken;
  }

  /** The claims that an earlier try of the same request took, as far as they still stand. */
  async #remembered(taking: Taking): Promise<readonly Taken[]> {
    const { memory, shard, request } = taking;
    if (memory === undefined) return [];
    const entry = (await shard.read([memory.key], { fresh: true })).get(memory.key);
    if (entry === undefined) return [];
    const taken: Taken[] = [];
    for (const { workloadId, fencingToken } of decodeClaimRequest(entry.value)) {
      const { workload } = await this.#options.records.fresh(workloadId, { scope: request });
      const claim = workload.record.currentClaim;
      if (claim?.fencingToken === fencingToken) taken.push({ claim, position: workload });
    }
    if (taken.length === 0)
      throw MandateError.of(
        refuse("WORKLOAD_CLAIM_INVALID", "what this request had claimed is no longer held", {
          requestId: request.requestId,
        }),
      );
    return taken;
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

/** The assertions that a change needs about the dependencies it was decided on. */
export const assertsOf = (seen: Seen, change: Change): { readonly key: string; readonly revision: number }[] =>
  change.assertedDependencies.flatMap((workloadId) => {
    const dependency = seen.dependencies.get(workloadId);
    return dependency === undefined ? [] : [{ key: dependency.key, revision: dependency.revision }];
  });

/** Each key once: two workloads may wait for one dependency. */
const distinct = (asserts: readonly Assertion[]): readonly Assertion[] => [
  ...new Map(asserts.map((assertion) => [assertion.key, assertion])).values(),
];

/** As many of the intents, from the first on, as one commit can hold. A single one always fits. */
function fittingOf(intents: readonly Intent[]): readonly Intent[] {
  let size = 1;
  const end = intents.findIndex(({ change }) => (size += 3 + change.assertedDependencies.length) > COMMIT_SIZE_MAX);
  return end < 0 ? intents : intents.slice(0, Math.max(end, 1));
}

const answerOf = (taken: readonly Taken[]): Answered<readonly Claim[]> => {
  const last = taken.at(-1);
  return {
    answer: taken.map(({ claim }) => claim),
    ...(last === undefined ? {} : { position: { shard: last.position.shard, revision: last.position.revision } }),
  };
};
