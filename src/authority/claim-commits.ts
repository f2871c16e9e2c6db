import type { Log } from "../base/log.ts";
import { MandateError, refuse } from "../core/errors.ts";
import { decideClaim } from "../core/workload/claim.ts";
import type { Change } from "../core/workload/decision.ts";
import type { Instant } from "../core/workload/fence.ts";
import type { Claim } from "../core/workload/record.ts";
import { isRegistryKey } from "../store/keys.ts";
import type { Projected, Rank } from "../store/projection/projected.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { Assertion, Shard } from "../store/store.ts";
import { decodeClaimRequest, encodeClaimRequest } from "../wire/codec.ts";
import type { ClaimNextRequest } from "../wire/requests.ts";
import type { CallContext, Position } from "./api.ts";
import { evidenceOf, type Claimant } from "./claimants.ts";
import type { Executor } from "./executor.ts";
import type { OperationIds } from "./operation-ids.ts";
import { provenanceOf } from "./provenance.ts";
import { dependencyStatesOf, type Records, type Seen } from "./records.ts";
import type { SlotGrab, Slots } from "./slots.ts";

/** What a claimNext request took is remembered this long, ms: a repeat within it gets the same. */
const CLAIM_REQUEST_TTL_MS = 600_000;
/** How many writes and assertions one commit may have: the store takes a thousand. */
const COMMIT_SIZE_MAX = 900;

export interface ClaimCommitsOptions {
  readonly nodeId: string;
  readonly executor: Executor;
  readonly records: Records;
  readonly projection: Projection;
  readonly slots: Slots;
  readonly operationIds: OperationIds;
  readonly instant: () => Instant;
  readonly commitDeadlineMs: number;
  readonly log: Log;
}

/** A request for work that is being served. */
export interface Taking {
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

/** What it was given. */
export interface Taken {
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

/** Claims what was picked for a request, by guarded commits (contract 2.4). */
export class ClaimCommits {
  readonly #options: ClaimCommitsOptions;

  constructor(options: ClaimCommitsOptions) {
    this.#options = options;
  }

  /** Claims of the candidates what can be claimed; nothing when somebody else was first everywhere. */
  take(taking: Taking, candidates: readonly Rank[]): Promise<readonly Taken[]> {
    return taking.memory === undefined ? this.#claimEach(taking, candidates) : this.#claimTogether(taking, candidates);
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
      // A pool that is full says nothing of what comes after.
      if (grab === "none") continue;
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
        asserts: [...(grab?.asserts ?? []), ...assertsOf(seen, change)],
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
      if (taking.memory === undefined || first === undefined) return await this.remembered(taking);
      const taken = await this.#commitTogether(taking, [first, ...intents.slice(1)]);
      if (taken.length > 0) return taken;
      await Promise.all(
        intents.map(({ claim }) => this.#options.records.fresh(claim.workloadId, { scope: taking.request })),
      );
      return await this.remembered(taking);
    } finally {
      for (const { grab } of all) grab?.end();
    }
  }

  async #commitTogether(taking: Taking, intents: readonly [Intent, ...Intent[]]): Promise<readonly Taken[]> {
    const { executor, operationIds, nodeId, commitDeadlineMs, slots } = this.#options;
    const { memory, shard, context } = taking;
    if (memory === undefined) return [];
    const [first] = intents;
    const operationId = operationIds.next(memory.mark, first.change.reference);
    const remembered = encodeClaimRequest(
      intents.map(({ claim: { workloadId, fencingToken } }) => ({ workloadId, fencingToken })),
    );
    const claimed = intents.flatMap(({ seen, change }) => executor.putsOf(change, seen.workload.key, seen.workload));
    const slotPuts = intents.flatMap(({ grab, claim }) => grab?.putsFor(claim) ?? []);
    const asserts = intents.flatMap(({ seen, change, grab }) => [...(grab?.asserts ?? []), ...assertsOf(seen, change)]);
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
  async remembered(taking: Taking): Promise<readonly Taken[]> {
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
}

/** The assertions that a change needs about the dependencies it was decided on. */
export const assertsOf = (seen: Seen, change: Change): { readonly key: string; readonly revision: number }[] =>
  change.assertedDependencies.flatMap((workloadId) => {
    const dependency = seen.dependencies.get(workloadId);
    return dependency === undefined ? [] : [{ key: dependency.key, revision: dependency.revision }];
  });

/** Each key once, since two workloads may be decided on one record: as it was first seen, which is the older of two versions. */
const distinct = (asserts: readonly Assertion[]): readonly Assertion[] => [
  ...new Map(asserts.toReversed().map((assertion) => [assertion.key, assertion])).values(),
];

/** As many of the intents, from the first on, as one commit can hold. A single one always fits. */
function fittingOf(intents: readonly Intent[]): readonly Intent[] {
  let size = 1;
  const end = intents.findIndex(({ change }) => (size += 3 + change.assertedDependencies.length) > COMMIT_SIZE_MAX);
  return end < 0 ? intents : intents.slice(0, Math.max(end, 1));
}
