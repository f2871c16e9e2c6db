import { MandateError, refuse } from "../core/errors.ts";
import { admittedIdOf, decideAdmit, type Admission } from "../core/workload/admission.ts";
import type { WorkloadRules } from "../core/workload/rules.ts";
import { shardOf, workloadKey } from "../store/keys.ts";
import { admitRequest } from "../wire/requests.ts";
import type { Answered, CallContext, Position } from "./api.ts";
import { parseArguments } from "./arguments.ts";
import type { Executor } from "./executor.ts";
import type { Records } from "./records.ts";
import type { Store } from "../store/store.ts";

/** A lost race to create ends in a replay; only a store that contradicts itself could make it go on. */
const ROUNDS_MAX = 8;

/** An admission with the place it was committed at. */
export type Admitted = Answered<Admission> & { readonly position: Position };

/** Admits work (contract 1.7): one require-absent commit, and whoever loses it answers as a replay does. */
export class Admissions {
  readonly #options: {
    readonly executor: Executor;
    readonly records: Records;
    readonly store: Store;
    readonly rules: WorkloadRules;
    readonly now: () => number;
  };

  constructor(options: {
    readonly executor: Executor;
    readonly records: Records;
    readonly store: Store;
    readonly rules: WorkloadRules;
    readonly now: () => number;
  }) {
    this.#options = options;
  }

  async admit(value: unknown, context: CallContext): Promise<Admitted> {
    const { requestId: _unused, ...request } = parseArguments(admitRequest, value);
    const { executor, records, store, rules, now } = this.#options;
    const drafted = decideAdmit(undefined, request, { now: now(), rules });
    // Nothing that is refused without looking at what exists needs the store.
    if (!drafted.ok) throw MandateError.of(drafted.error);
    const workloadId = admittedIdOf(request);
    const key = workloadKey(request, workloadId);
    const shard = records.shard(shardOf(request, store.shards.length));
    let known = records.isKnown(workloadId);
    for (let round = 0; round < ROUNDS_MAX; round++) {
      if (known) {
        const { workload } = await records.fresh(workloadId, { scope: undefined });
        const decision = decideAdmit(workload.record, request, { now: now(), rules });
        if (!decision.ok) throw MandateError.of(decision.error);
        return { answer: decision.answer, position: { shard: workload.shard, revision: workload.revision } };
      }
      const decision = round === 0 ? drafted : decideAdmit(undefined, request, { now: now(), rules });
      if (!decision.ok) throw MandateError.of(decision.error);
      if (decision.change === undefined) break;
      const committed = await executor.commit({
        change: decision.change,
        key,
        shard,
        base: "absent",
        mark: undefined,
        context,
        asserts: [],
      });
      if (committed !== undefined)
        return { answer: decision.answer, position: { shard: committed.shard, revision: committed.revision } };
      known = true;
    }
    throw MandateError.of(refuse("WORKLOAD_CONFLICT", "other writers kept winning; try again", { workloadId }));
  }
}
