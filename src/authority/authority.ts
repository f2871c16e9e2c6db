import { monotonicMs, systemTimers, type Timers } from "../base/clock.ts";
import { MandateError, refuse } from "../core/errors.ts";
import type { Workload } from "../core/workload/record.ts";
import { settledStates } from "../core/workload/states.ts";
import type { PageFilter } from "../store/projection/page.ts";
import { queueOf } from "../store/projection/ready-queues.ts";
import type { Access, WorkloadTraits } from "./access.ts";
import type { Answered, Answers, CallContext, CallName, ChangeEvent, Page, Position, Readiness } from "./api.ts";
import { Background } from "./background.ts";
import { Calls } from "./calls.ts";
import { changeEventOf, changesSince } from "./changes.ts";
import { boundaryError } from "./failures.ts";
import { assembleParts, type AuthorityOptions, type Parts } from "./parts.ts";
import type { Passes } from "./passes.ts";
import { NODE_SILENT_MS } from "./pulse.ts";
import { ownerOf } from "./spread.ts";

/** A due workload of another node's share is taken when it is this late, ms. */
const SHARE_LATE_MS = 3000;
/** Timers for early work are derived anew at least this often, ms (contract 5.5). */
const WAKE_MAX_MS = 10_000;
/** How often a few workloads of the view are compared with the store, ms. */
const SAMPLING_MS = 15_000;

/** How long a pass that is called by hand waits for a view that is newer than the call, ms; a view that is held is taken as it is. */
const BARRIER_MS = 2000;

/** Calls that only read, from the store itself: served whatever this node's view or clock, while the store answers. No call that may commit an expiry is among them. */
const readingCalls: readonly CallName[] = ["get"];

type Call<Name extends CallName> = (request: unknown) => Promise<Answers[Name]>;

/**
 * One authority node: reads, decides, commits (contract 6.1). Many of them write one store; none leads. Every answer is
 * built on a committed version, and every refusal on one at least as new as the request. Arguments are checked here, so
 * they may come from anywhere. Each call rejects with a MandateError when it is refused.
 */
export class Authority {
  readonly nodeId: string;
  readonly shards: number;
  readonly #options: AuthorityOptions;
  readonly #background: Background;
  readonly #timers: Timers;
  readonly #monotonic: () => number;
  /** They stay when the view is built anew. */
  readonly #watchers = new Set<(event: ChangeEvent) => void>();
  #parts: Parts;
  #calls: Calls;
  #assemblies = 0;
  #cancelWake: () => void = () => undefined;
  #wakeAt = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(options: AuthorityOptions) {
    this.#options = options;
    this.nodeId = options.nodeId;
    this.shards = options.store.shards.length;
    const { log, timers = systemTimers, monotonic = monotonicMs } = options;
    this.#timers = timers;
    this.#monotonic = monotonic;
    this.#background = new Background({ log, timers, monotonic });
    this.#parts = this.#assemble();
    this.#calls = new Calls(this.#parts);
  }

  /** Begins to follow the store, and with it to serve. Returns at once: {@link readiness} tells when. */
  open(): void {
    this.#parts.projection.start();
    if (this.#isManual) return;
    const everyMs = this.#options.passIntervalMs ?? 1000;
    this.#background.start({ name: "heartbeat", everyMs: 1000, run: () => this.#parts.pulse.beat() });
    const pass = (name: "recoverExpired" | "enforceDeadlines"): void =>
      this.#background.start({
        name,
        everyMs,
        run: () => this.#whileServing((passes) => passes[name](this.#ownShare())),
      });
    this.#background.start({
      name: "sampling",
      everyMs: SAMPLING_MS,
      run: () => this.#whileServing(() => this.#parts.sampling.check()),
    });
    pass("recoverExpired");
    pass("enforceDeadlines");
    this.#background.start({
      name: "detectFailures",
      everyMs,
      run: () => this.#whileServing(() => this.#parts.workers.detectFailures(this.#ownWorkers())),
    });
    this.#wake();
  }

  /** Waits until the view holds all that was committed before the call; `false` when it can't be had in time. */
  caughtUp(timeoutMs: number): Promise<boolean> {
    return this.#parts.pulse.barriers(timeoutMs);
  }

  /** Says from now on that the node is not ready, so that a load balancer goes elsewhere. */
  drain(): void {
    this.#parts.serving.stop();
  }

  /** Ends everything that this node does by itself. Calls under way are answered as far as the store lets them. */
  async close(): Promise<void> {
    this.#stopped = true;
    this.#parts.serving.stop();
    this.#cancelWake();
    this.#parts.claimNext.stop();
    await this.#background.stop();
    await this.#parts.projection.stop();
  }

  /** Forgets the view and builds it anew from the store alone (contract 5.4). Calls under way end on the old one. */
  async resync(): Promise<void> {
    const old = this.#parts;
    this.#parts = this.#assemble();
    this.#calls = new Calls(this.#parts);
    this.#parts.projection.start();
    old.claimNext.stop();
    await old.projection.stop();
  }

  /**
   * Makes a call by its name, and tells the store's revision that the answer reflects.
   *
   * @throws MandateError the refusal, or what kept the call from being answered.
   */
  async call<Name extends CallName>(
    name: Name,
    value: unknown,
    context: CallContext = {},
  ): Promise<Answered<Answers[Name]>> {
    const { log, onCall } = this.#options;
    const startedAt = this.#monotonic();
    const { projection } = this.#parts;
    const beginnings = projection.beginnings();
    try {
      this.#checkServing(name);
      const answered = (await this.#calls.dispatch(name, value, context)) as Answered<Answers[Name]>;
      onCall?.(name, undefined, this.#monotonic() - startedAt);
      return answered;
    } catch (cause) {
      const refusal = boundaryError(cause);
      // A view that was forgotten meanwhile knows nobody: what is refused may rest on that.
      const isTold = projection.beginnings() === beginnings || !refusal.definite;
      const error = isTold ? refusal : MandateError.of(refuse("AUTHORITY_NOT_READY", "this node's view begins anew"));
      if (error.code === "INTERNAL_ERROR")
        log.error(
          { call: name, cause: cause instanceof Error ? cause.stack : String(cause) },
          "a call failed on a bug",
        );
      else log.debug({ call: name, code: error.code }, "refusal");
      onCall?.(name, error.code, this.#monotonic() - startedAt);
      throw error;
    }
  }

  readonly admit: Call<"admit"> = (request) => this.#answer("admit", request);
  readonly admitMany: Call<"admitMany"> = (requests) => this.#answer("admitMany", requests);
  readonly claim: Call<"claim"> = (request) => this.#answer("claim", request);
  readonly claimNext: Call<"claimNext"> = (request) => this.#answer("claimNext", request);
  readonly start: Call<"start"> = (request) => this.#answer("start", request);
  readonly heartbeat: Call<"heartbeat"> = (request) => this.#answer("heartbeat", request);
  readonly heartbeatMany: Call<"heartbeatMany"> = (requests) => this.#answer("heartbeatMany", requests);
  readonly executionContext: Call<"executionContext"> = (request) => this.#answer("executionContext", request);
  readonly checkpoint: Call<"checkpoint"> = (request) => this.#answer("checkpoint", request);
  readonly complete: Call<"complete"> = (request) => this.#answer("complete", request);
  readonly fail: Call<"fail"> = (request) => this.#answer("fail", request);
  readonly confirmCancel: Call<"confirmCancel"> = (request) => this.#answer("confirmCancel", request);
  readonly cancel: Call<"cancel"> = (request) => this.#answer("cancel", request);
  readonly timeout: Call<"timeout"> = (request) => this.#answer("timeout", request);
  readonly retry: Call<"retry"> = (request) => this.#answer("retry", request);
  readonly decide: Call<"decide"> = (request) => this.#answer("decide", request);
  readonly registerWorker: Call<"registerWorker"> = (request) => this.#answer("registerWorker", request);
  readonly heartbeatWorker: Call<"heartbeatWorker"> = (request) => this.#answer("heartbeatWorker", request);
  readonly drainWorker: Call<"drainWorker"> = (request) => this.#answer("drainWorker", request);
  readonly recoverWorker: Call<"recoverWorker"> = (request) => this.#answer("recoverWorker", request);
  readonly removeWorker: Call<"removeWorker"> = (request) => this.#answer("removeWorker", request);
  readonly reconcileWorker: Call<"reconcileWorker"> = (request) => this.#answer("reconcileWorker", request);
  readonly getWorker: Call<"getWorker"> = (request) => this.#answer("getWorker", request);
  readonly listWorkers: Call<"listWorkers"> = (request) => this.#answer("listWorkers", request);
  readonly createPool: Call<"createPool"> = (request) => this.#answer("createPool", request);
  readonly changePool: Call<"changePool"> = (request) => this.#answer("changePool", request);
  readonly deletePool: Call<"deletePool"> = (request) => this.#answer("deletePool", request);
  readonly getPool: Call<"getPool"> = (request) => this.#answer("getPool", request);
  readonly listPools: Call<"listPools"> = (request) => this.#answer("listPools", request);
  readonly place: Call<"place"> = (request) => this.#answer("place", request);
  readonly placeAndClaim: Call<"placeAndClaim"> = (request) => this.#answer("placeAndClaim", request);
  readonly validateClaim: Call<"validateClaim"> = (request) => this.#answer("validateClaim", request);
  readonly list: Call<"list"> = (filter) => this.#answer("list", filter);
  readonly get = (workloadId: string): Promise<Workload> => this.#answer("get", { workloadId });
  readonly explain = (workloadId: string): Promise<Answers["explain"]> => this.#answer("explain", { workloadId });

  /** Runs the recovery pass now, over everything that was due before the call; ids of what this node recovered (contract 1.11). */
  async recoverExpired(): Promise<readonly string[]> {
    await this.#parts.pulse.barriers(BARRIER_MS);
    return this.#parts.passes.recoverExpired();
  }

  /** Runs the deadline pass now, over everything that was due before the call; ids of what this node timed out (contract 1.6). */
  async enforceDeadlines(): Promise<readonly string[]> {
    await this.#parts.pulse.barriers(BARRIER_MS);
    return this.#parts.passes.enforceDeadlines();
  }

  /** Runs the pass over workers now; ids of those that this node took OFFLINE (contract 2.2). */
  async detectFailures(): Promise<readonly string[]> {
    await this.#parts.pulse.barriers(BARRIER_MS);
    return this.#parts.workers.detectFailures(() => true);
  }

  /** A page of workloads by a filter that need not be expressible in a request. */
  page(
    filter: PageFilter,
    range: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Answered<Page>> {
    return this.#calls.page(filter, range);
  }

  readiness(): Readiness {
    return this.#isManual ? { ready: true, reasons: [] } : this.#parts.serving.readiness();
  }

  /**
   * What a bearer may do, by this node's view of revocations (contract 4.2).
   *
   * @throws MandateError AUTHORITY_NOT_READY while the view may be too old to tell.
   */
  access(): Access {
    const { ready, reasons } = this.readiness();
    if (ready) return this.#parts.access;
    throw MandateError.of(
      refuse("AUTHORITY_NOT_READY", `this node can't tell what is revoked: ${reasons.join("; ")}`, { reasons }),
    );
  }

  /** What constraints may ask of a workload that the view knows; none of it ever changes. */
  traitsOf(workloadId: string): WorkloadTraits | undefined {
    return this.#parts.projection.index.get(workloadId)?.record;
  }

  /** The revision of each shard up to which this node's view is complete. */
  position(): readonly number[] {
    return this.#parts.projection.position();
  }

  /** Waits until this node's view has seen a place in the store's order (contract 6.2, Mandate-Min-Revision). */
  async waitForPosition(position: Position, timeoutMs: number): Promise<boolean> {
    if (position.shard < 0 || position.shard >= this.shards) return false;
    return this.#parts.projection.waitFor(position.shard, position.revision, timeoutMs);
  }

  /** Listens to committed changes in the order of their shard. Answers how to stop. */
  watch(listener: (event: ChangeEvent) => void): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }

  /** The newest change of each workload after the given revisions, one per shard. */
  changesSince(
    positions: readonly number[],
    matches: (event: ChangeEvent) => boolean = () => true,
  ): readonly ChangeEvent[] {
    return changesSince(this.#parts.projection, positions, matches);
  }

  /** Workloads by state in this node's view. */
  counts(): ReadonlyMap<string, number> {
    return this.#parts.projection.index.counts();
  }

  /** How often the view was found to differ from the store. */
  divergences(): number {
    return this.#parts.sampling.divergences;
  }

  /** Reads one workload from the store and takes it into the view (contract 5.4, resync of one key). */
  async refresh(workloadId: string): Promise<void> {
    await this.#parts.records.fresh(workloadId, { scope: undefined });
  }

  /** How often the view of a shard had to begin anew. */
  viewResets(): number {
    return this.#parts.projection.resets();
  }

  /** Waits until a workload has settled, or the time is up; answers it as it is then. */
  async waitForSettled(workloadId: string, waitMs: number, context: CallContext = {}): Promise<Answered<Workload>> {
    const { settled, end } = this.#parts.settling.begin(workloadId, { waitMs, signal: context.signal });
    try {
      const first = await this.call("get", { workloadId }, context);
      if (settledStates.includes(first.answer.state) || waitMs <= 0) return first;
      await settled;
      return await this.call("get", { workloadId }, context);
    } finally {
      end();
    }
  }

  /** The clock was set: what has become claimable by it is offered to whoever waits. */
  clockMoved(): void {
    this.#parts.projection.index.promoteDue();
  }

  /** The view stops following the store until {@link releaseView}. For tests. */
  holdView(): void {
    this.#parts.projection.hold();
  }

  releaseView(): void {
    this.#parts.projection.release();
  }

  get #isManual(): boolean {
    return this.#options.clock !== undefined;
  }

  async #answer<Name extends CallName>(name: Name, request: unknown): Promise<Answers[Name]> {
    return (await this.call(name, request)).answer;
  }

  #checkServing(name: CallName): void {
    if (this.#isManual) return;
    const { ready, reasons } = this.#parts.serving.readiness();
    const reads = readingCalls.includes(name) && this.#parts.serving.storeAnswers();
    if (!ready && !reads)
      throw MandateError.of(
        refuse("AUTHORITY_NOT_READY", `this node can't serve now: ${reasons.join("; ")}`, { reasons }),
      );
  }

  #assemble(): Parts {
    const parts: Parts = assembleParts(this.#options, {
      assembly: this.#assemblies++,
      onReady: (queue) => parts.claimNext.dispatch(queue),
      onLater: (at) => this.#wakeBy(at),
    });
    parts.projection.listen(({ workload }) => {
      const { outline, node, action } = workload;
      if (node !== undefined && action === "claim") parts.picker.noteClaim(queueOf(outline), node, outline.workerId);
      if (this.#watchers.size === 0) return;
      const event = changeEventOf(workload, outline);
      for (const watcher of this.#watchers) watcher(event);
    });
    return parts;
  }

  async #whileServing(run: (passes: Passes) => Promise<unknown>): Promise<void> {
    if (this.#parts.serving.since() !== undefined) await run(this.#parts.passes);
  }

  /** Nodes that are alive, this one with them. */
  #livingNodes(): readonly string[] {
    const now = this.#parts.now();
    const alive = [...this.#parts.projection.nodes().values()]
      .filter(({ at }) => now - at <= NODE_SILENT_MS)
      .map(({ nodeId }) => nodeId);
    return alive.includes(this.nodeId) ? alive : [...alive, this.nodeId];
  }

  /** Each due workload is one node's first; the others come when it is late, so that they rarely collide. */
  #ownShare(): (workload: { readonly record: { readonly workloadId: string } }, overdueMs: number) => boolean {
    const nodes = this.#livingNodes();
    return ({ record }, overdueMs) => overdueMs > SHARE_LATE_MS || ownerOf(record.workloadId, nodes) === this.nodeId;
  }

  /** The same for workers. */
  #ownWorkers(): (workerId: string, overdueMs: number) => boolean {
    const nodes = this.#livingNodes();
    return (workerId, overdueMs) => overdueMs > SHARE_LATE_MS || ownerOf(workerId, nodes) === this.nodeId;
  }

  /** Wakes up when the next early workload's time comes, and at least every ten seconds. */
  #wake(): void {
    this.#parts.projection.index.promoteDue();
    const next = this.#parts.projection.index.ready.nextDueAt();
    this.#wakeAt = Number.POSITIVE_INFINITY;
    this.#wakeBy(Math.min(next ?? Number.POSITIVE_INFINITY, this.#parts.now() + WAKE_MAX_MS));
  }

  #wakeBy(at: number): void {
    if (this.#isManual || this.#stopped || at >= this.#wakeAt) return;
    this.#wakeAt = at;
    this.#cancelWake();
    const delayMs = Math.min(Math.max(at - this.#parts.now(), 1), WAKE_MAX_MS);
    this.#cancelWake = this.#timers.after(delayMs, () => this.#wake());
  }
}
