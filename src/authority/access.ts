import type { Timers } from "../base/clock.ts";
import { MandateError, refuse, type Refusal } from "../core/errors.ts";
import { decideAuthorization, findFallen, type AccessTarget } from "../core/grant/authorize.ts";
import { collectionOf, resourceOf, type Capability } from "../core/grant/capabilities.ts";
import type { RequestFacts } from "../core/grant/constraints.ts";
import type { Grant, GrantConstraints } from "../core/grant/grant.ts";
import type { Subject } from "../core/subject.ts";
import { workerIdOf } from "../core/worker/identity.ts";
import type { Workload } from "../core/workload/record.ts";
import { workerKey } from "../store/keys.ts";
import type { Needs } from "../store/projection/ability.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { CallContext } from "./api.ts";
import type { Records } from "./records.ts";

/** A verified grant with what it stems from, its parent first. Its signatures are good; whether it allows anything is decided at each call. */
export interface Bearer {
  readonly grant: Grant;
  readonly chain: readonly Grant[];
  /** Whether every key that it was verified by is still one of the node's. Absent: keys never change. */
  keysStand?(): boolean;
}

/** What constraints may ask of a workload; none of it ever changes. */
export type WorkloadTraits = Pick<
  Workload,
  | "workloadId"
  | "environment"
  | "connectionScopes"
  | "contractVersion"
  | "definitionId"
  | "definitionRevision"
  | "trigger"
  | "requestedBy"
>;

/** What something is done to. */
export type AccessObject =
  /** Whatever it will turn out to be: each thing is asked for on its own before it is shown or done. */
  | { readonly kind: "any" }
  /** The collection itself. */
  | { readonly kind: "collection" }
  /** Every workload there is, or will be; or every worker. */
  | { readonly kind: "every" }
  /** Work that a queue hands out: see {@link Access.mayTake}. */
  | { readonly kind: "queue" }
  | { readonly kind: "workload"; readonly workloadId: string }
  /** A workload by its traits: one that is to be admitted, or that is at hand. */
  | { readonly kind: "traits"; readonly traits: WorkloadTraits; readonly isNew?: true }
  | { readonly kind: "worker"; readonly workerId: string };

/** What a bearer wants to do, and what is known of the request. */
export interface AccessAsk {
  readonly bearer: Bearer;
  readonly capability: Capability;
  readonly on: AccessObject;
  /** Given: the grant must be this subject's. */
  readonly subject?: Subject;
  /** Whose runtime and labels count, when it is one of the registry. */
  readonly workerId?: string;
  /** Where the request came in. */
  readonly from: { readonly door: "http" | "nats"; readonly operation: string; readonly network?: string };
}

export interface AccessOptions {
  readonly records: Records;
  readonly projection: Projection;
  readonly now: () => number;
  readonly skewMs: number;
  readonly timers: Timers;
}

/** How often it is looked whether what was opened under a grant may go on, beside the moments of a revocation, ms. */
const LOOK_EVERY_MS = 10_000;

/** Constraints that a workload satisfies, or does not: to say which would tell whether there is one, and what it is like. */
const constraintsOnWork: readonly (keyof GrantConstraints)[] = [
  "environments",
  "connectionEnabled",
  "minimumSchemaVersion",
  "resourceAttributes",
];

/** The facts that a workload is good for. */
const factsOf = (traits: WorkloadTraits): RequestFacts => ({
  workloadId: traits.workloadId,
  environment: traits.environment,
  connectionEnabled: traits.connectionScopes.length > 0,
  schemaVersion: traits.contractVersion,
  resourceAttributes: {
    definitionId: traits.definitionId,
    definitionRevision: traits.definitionRevision,
    trigger: traits.trigger,
    environment: traits.environment,
    requestedBy: `${traits.requestedBy.kind}:${traits.requestedBy.id}`,
  },
});

/** The facts that all work in one lane of a queue is good for. */
const factsOfNeeds = ({ environment, connectionEnabled, contractVersion, definitionId }: Needs): RequestFacts => ({
  ...(environment === undefined ? {} : { environment }),
  ...(connectionEnabled === undefined ? {} : { connectionEnabled }),
  ...(contractVersion === undefined ? {} : { schemaVersion: contractVersion }),
  resourceAttributes: { definitionId, ...(environment === undefined ? {} : { environment }) },
});

/** The constraints that can be asked of a lane; what else they ask of a workload can't be told before it is taken. */
function askedOfNeeds({ grant, chain }: Bearer): readonly (keyof GrantConstraints)[] {
  const attributes = [grant, ...chain].flatMap(({ constraints }) => Object.keys(constraints.resourceAttributes ?? {}));
  const known = attributes.every((name) => name === "definitionId" || name === "environment");
  return constraintsOnWork.filter((name) => name !== "resourceAttributes" || known);
}

const isConstrained = ({ grant, chain }: Bearer): boolean =>
  [grant, ...chain].some(({ constraints }) => Object.keys(constraints).length > 0);

/** The names of the workers that a grant is good for alone: its subject's, and those of the grants that it was delegated from. */
export const boundWorkersOf = ({ grant, chain }: Bearer): readonly string[] =>
  [grant, ...chain].flatMap(({ subject }) => (subject.kind === "worker" ? subject.id : []));

/** A worker's grant is for that worker: it names it by its name, or by the id that the name has (contract 2.1). */
function findOtherWorker({ bearer, on, workerId }: AccessAsk): Refusal | undefined {
  const named = on.kind === "worker" ? on.workerId : workerId;
  if (named === undefined) return undefined;
  const { tenantId, applicationId } = bearer.grant;
  for (const name of boundWorkersOf(bearer))
    if (named !== name && named !== workerIdOf({ tenantId, applicationId, name }))
      return refuse("GRANT_SCOPE_DENIED", "the grant is another worker's", { member: "workerId" });
  return undefined;
}

/**
 * Decides at each call what a verified grant lets its bearer do (contract 4.2), by the rules of the core, on this node's
 * view of revocations and on what it knows of the workload, the worker and the request.
 */
export class Access {
  readonly #options: AccessOptions;
  readonly #fallListeners = new Set<() => void>();

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** @throws MandateError the refusal; AUTHORITY errors and those of the store when it can't be decided. */
  async require(ask: AccessAsk): Promise<void> {
    const refusal = findOtherWorker(ask) ?? this.#decide(ask, await this.#target(ask));
    if (refusal !== undefined) throw MandateError.of(refusal);
  }

  /** Whether the bearer may have to do with one workload. */
  reaches(ask: Omit<AccessAsk, "on">, traits: WorkloadTraits): boolean {
    const asked: AccessAsk = { ...ask, on: { kind: "traits", traits } };
    return this.#decide(asked, this.#targetOf(asked, factsOf(traits), traits.workloadId)) === undefined;
  }

  /** Which of the work that a queue hands out the bearer may have. {@link require} was asked about the queue before. */
  mayTake(ask: Omit<AccessAsk, "on">): NonNullable<CallContext["mayTake"]> {
    const { grant, chain } = ask.bearer;
    const asked: AccessAsk = { ...ask, on: { kind: "queue" } };
    const resource = collectionOf(ask.capability, grant.applicationId);
    return {
      name: JSON.stringify([grant, ...chain].map(({ constraints }) => constraints)),
      accepts: (needs) => {
        const facts = this.#facts(asked, factsOfNeeds(needs));
        return this.#decide(asked, { resource, everythingBelow: true, facts }) === undefined;
      },
    };
  }

  /**
   * Calls back once when the bearer's grant has expired or was revoked, and at most ten seconds after a key of it was taken
   * away; the answer takes it back.
   */
  onFallen(bearer: Bearer, action: () => void): () => void {
    const { now, timers } = this.#options;
    let cancelTimer: () => void = () => undefined;
    const end = (): void => {
      this.#fallListeners.delete(look);
      cancelTimer();
    };
    const look = (): void => {
      if (this.isFallen(bearer)) {
        end();
        action();
        return;
      }
      // A timer can't be set as far as a grant may last, and the store's clock may be moved.
      cancelTimer();
      cancelTimer = timers.after(Math.min(Math.max(bearer.grant.expiresAt - now(), 1), LOOK_EVERY_MS), look);
    };
    this.#fallListeners.add(look);
    look();
    return end;
  }

  isFallen(bearer: Bearer): boolean {
    const { now, skewMs, projection } = this.#options;
    if (bearer.keysStand?.() === false) return true;
    return findFallen({ ...bearer, now: now(), skewMs, revocations: projection.revocations }) !== undefined;
  }

  /** Something was revoked. */
  revoked(): void {
    for (const look of [...this.#fallListeners]) look();
  }

  #decide(ask: AccessAsk, target: AccessTarget | "any"): Refusal | undefined {
    const { now, skewMs, projection } = this.#options;
    const { bearer, capability, subject } = ask;
    const { tenantId, applicationId } = bearer.grant;
    const decision = decideAuthorization({
      ...bearer,
      now: now(),
      skewMs,
      revocations: projection.revocations,
      request: { tenantId, applicationId, capability, target, ...(subject === undefined ? {} : { subject }) },
    });
    return decision.allowed ? undefined : decision.refusal;
  }

  async #target(ask: AccessAsk): Promise<AccessTarget | "any"> {
    const { on, bearer, capability } = ask;
    switch (on.kind) {
      case "any":
        return "any";
      case "every": {
        const resource = collectionOf(capability, bearer.grant.applicationId);
        return { resource, everythingBelow: true, facts: this.#facts(ask, {}) };
      }
      case "queue": {
        const resource = collectionOf(capability, bearer.grant.applicationId);
        return { resource, everythingBelow: true, facts: this.#facts(ask, {}), later: askedOfNeeds(bearer) };
      }
      case "collection":
        return this.#targetOf(ask, {}, undefined);
      case "worker":
        return this.#targetOf({ ...ask, workerId: ask.workerId ?? on.workerId }, {}, on.workerId);
      case "traits":
        return this.#targetOf(ask, factsOf(on.traits), on.isNew === true ? undefined : on.traits.workloadId);
      case "workload":
        return {
          ...this.#targetOf(ask, await this.#factsOfWorkload(bearer, on.workloadId), on.workloadId),
          unnamed: constraintsOnWork,
        };
    }
  }

  #targetOf(ask: AccessAsk, facts: RequestFacts, id: string | undefined): AccessTarget {
    return {
      resource: resourceOf(ask.capability, ask.bearer.grant.applicationId, id),
      facts: this.#facts(ask, facts),
    };
  }

  /** Only a grant with constraints needs to know more of a workload than its id. What does not exist satisfies none of them. */
  async #factsOfWorkload(bearer: Bearer, workloadId: string): Promise<RequestFacts> {
    if (!isConstrained(bearer)) return {};
    try {
      const { workload } = await this.#options.records.current(workloadId, bearer.grant);
      return factsOf(workload.record);
    } catch (thrown) {
      if (thrown instanceof MandateError && thrown.code === "WORKLOAD_NOT_FOUND") return { workloadId };
      throw thrown;
    }
  }

  #facts({ bearer, workerId, from }: AccessAsk, facts: RequestFacts): RequestFacts {
    const { grant } = bearer;
    const { network, door, operation } = from;
    const worker =
      workerId === undefined
        ? undefined
        : this.#options.projection.registry.workers.get(workerKey(grant, workerId))?.value;
    const labels = Object.entries(worker?.labels ?? {}).map(([name, value]) => [`label.${name}`, value] as const);
    return {
      ...facts,
      ...(network === undefined ? {} : { network }),
      ...(worker === undefined ? {} : { workerClass: worker.runtime }),
      subjectAttributes: { ...Object.fromEntries(labels), kind: grant.subject.kind, id: grant.subject.id },
      contextAttributes: { door, operation },
    };
  }
}
