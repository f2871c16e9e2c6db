import type { CallFact } from "./call-facts.ts";
import { claimsIn, isEffectOf } from "./effects.ts";
import type { Version, WorkloadFacts } from "./facts.ts";
import { textOf } from "./fields.ts";

/** Calls whose effect in the store is looked for. */
const changing = new Set(
  "admit claim claimNext start heartbeat checkpoint complete fail confirmCancel cancel timeout retry decide".split(" "),
);

/** A claimNext that was not acknowledged may have taken work until this long after its caller gave up, ms. */
const CLAIM_LATE_MS = 60_000;

/**
 * Which call may have made which version. Most calls name a workload, and are told by the values that they give. Who asks
 * for any work names none: what was acknowledged names its claims, and of the others only those count that may explain a
 * claim which nobody was told of, or one that the same request was told of in another try.
 */
export class Matching {
  readonly #workloads: ReadonlyMap<string, WorkloadFacts>;
  readonly #clockErrorMs: number;
  readonly #effects = new Map<CallFact, readonly Version[]>();
  readonly #authors = new Map<Version, CallFact[]>();
  /** Claims that were acknowledged to a request. */
  readonly #claimsByRequest = new Map<string, readonly Version[]>();

  constructor(
    calls: readonly CallFact[],
    workloads: ReadonlyMap<string, WorkloadFacts>,
    options: { readonly clockErrorMs: number },
  ) {
    this.#workloads = workloads;
    this.#clockErrorMs = options.clockErrorMs;
    const wishes = calls.filter((call) => call.call === "claimNext" && call.kind !== "acknowledged");
    for (const call of calls)
      if (changing.has(call.call) && (call.call !== "claimNext" || call.kind === "acknowledged")) this.#addNamed(call);
    this.#addWishes(wishes);
  }

  /** What a call may have made. */
  effectsOf(call: CallFact): readonly Version[] {
    return this.#effects.get(call) ?? [];
  }

  /** The calls that may have made a version. */
  authorsOf(version: Version): readonly CallFact[] {
    return this.#authors.get(version) ?? [];
  }

  #addNamed(call: CallFact): void {
    const named =
      call.call === "claimNext"
        ? claimsIn(call.call, call.answer).map(({ workloadId }) => workloadId)
        : call.workloadId === undefined
          ? []
          : [call.workloadId];
    const found = named.flatMap((workloadId) => {
      const workload = this.#workloads.get(workloadId);
      return workload === undefined ? [] : workload.versions.filter((version) => isEffectOf(call, version, workload));
    });
    this.#add(call, found);
    if (call.call === "claimNext" && call.requestId !== undefined && found.length > 0)
      this.#claimsByRequest.set(requestOf(call), found);
  }

  #addWishes(wishes: readonly CallFact[]): void {
    const untold = this.#untoldClaims();
    for (const call of wishes) {
      const told = call.requestId === undefined ? [] : (this.#claimsByRequest.get(requestOf(call)) ?? []);
      const claims = untold.get(textOf(call.args["workerId"]) ?? "") ?? [];
      const earliest = call.startedAt - this.#clockErrorMs;
      const latest = call.endedAt + CLAIM_LATE_MS;
      const found = claims.filter(({ workloadId, storedAt }) => {
        if (storedAt < earliest || storedAt > latest) return false;
        const { tenantId, applicationId } = this.#workloads.get(workloadId)?.record ?? {};
        return tenantId === call.args["tenantId"] && applicationId === call.args["applicationId"];
      });
      this.#add(call, [...told, ...found]);
    }
  }

  /**
   * Claims that no answer named, by the worker that got them. That a call which was refused as definite asked for the same
   * explains nothing.
   */
  #untoldClaims(): ReadonlyMap<string, readonly Version[]> {
    const untold = new Map<string, Version[]>();
    for (const { versions } of this.#workloads.values())
      for (const version of versions) {
        if (version.command !== "claim" || this.authorsOf(version).some(({ kind }) => kind !== "refused")) continue;
        const known = untold.get(version.claim?.workerId ?? "");
        if (known === undefined) untold.set(version.claim?.workerId ?? "", [version]);
        else known.push(version);
      }
    return untold;
  }

  #add(call: CallFact, found: readonly Version[]): void {
    if (found.length === 0) return;
    this.#effects.set(call, found);
    for (const version of found) {
      const known = this.#authors.get(version);
      if (known === undefined) this.#authors.set(version, [call]);
      else known.push(call);
    }
  }
}

const requestOf = ({ caller, requestId, args }: CallFact): string =>
  JSON.stringify([caller, args["workerId"], requestId]);
