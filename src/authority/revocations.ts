import { MandateError, refuse } from "../core/errors.ts";
import { targetNameOf, type Revocation } from "../core/grant/revocation.ts";
import { revocationKey, shardOf } from "../store/keys.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { Base, Entry, Store } from "../store/store.ts";
import { decodeRevocation, encodeRevocation, revokeRequest } from "../wire/grant-codec.ts";
import type { Answered, CallContext } from "./api.ts";
import { parseArguments } from "./arguments.ts";
import { failureOf } from "./failures.ts";
import type { OperationIds } from "./operation-ids.ts";
import { whoOf } from "./provenance.ts";

/** How often a revocation is tried anew after losing a race against another of the same target. */
const ROUNDS_MAX = 8;

export interface RevocationsOptions {
  readonly nodeId: string;
  readonly store: Store;
  readonly projection: Projection;
  readonly operationIds: OperationIds;
  readonly now: () => number;
  readonly commitDeadlineMs: number;
}

/** Up to which revision a revocation ends a grant. */
const reachOf = ({ target }: Revocation): number =>
  (target.kind === "grant" ? target.belowRevision : undefined) ?? Number.POSITIVE_INFINITY;

/**
 * Revokes (contract 4.2): one guarded commit of a record of its own, which every node sees in its view. What is revoked
 * stays so; revoking it again answers the record that there is.
 */
export class RevocationCalls {
  readonly #options: RevocationsOptions;

  constructor(options: RevocationsOptions) {
    this.#options = options;
  }

  async revoke(value: unknown, context: CallContext): Promise<Answered<Revocation>> {
    const { requestId: _idempotentAnyway, ...request } = parseArguments(revokeRequest, value);
    const { store, projection, now } = this.#options;
    const { tenantId, applicationId, target } = request;
    const index = shardOf(request, store.shards.length);
    const shard = store.shards[index];
    if (shard === undefined) throw new RangeError(`no shard ${index}`);
    const key = revocationKey(request, targetNameOf(target));
    const wanted: Revocation = {
      contractVersion: 1,
      tenantId,
      applicationId,
      target,
      revokedBy: context.subject ?? { kind: "service", id: "library" },
      grantId: context.grant?.grantId ?? "open",
      revokedAt: now(),
      ...(request.reason === undefined ? {} : { reason: request.reason }),
    };
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const entry = (await shard.read([key], { fresh: true })).get(key);
      const known = entry === undefined ? undefined : decodeRevocation(entry.value);
      if (entry !== undefined && known === undefined)
        throw MandateError.of(
          refuse("WORKLOAD_MIGRATION_CONFLICT", "the record is of a format that this node must not write"),
        );
      if (entry !== undefined && known !== undefined && reachOf(known) >= reachOf(wanted)) {
        projection.revoke(known);
        return { answer: known, position: { shard: index, revision: entry.revision } };
      }
      const revision = await this.#commit({ key, shard, wanted, base: entry ?? "absent", context });
      if (revision === undefined) continue;
      projection.revoke(wanted);
      return { answer: wanted, position: { shard: index, revision } };
    }
    throw MandateError.of(refuse("WORKLOAD_CONFLICT", "other writers kept winning; try again"));
  }

  async #commit(how: {
    readonly key: string;
    readonly shard: Store["shards"][number];
    readonly wanted: Revocation;
    readonly base: Entry | Base;
    readonly context: CallContext;
  }): Promise<number | undefined> {
    const { key, shard, wanted, base, context } = how;
    const { nodeId, operationIds, commitDeadlineMs } = this.#options;
    const { tenantId, applicationId } = wanted;
    const outcome = await shard.commit(
      {
        operationId: operationIds.next(undefined, 0),
        puts: [{ key, value: encodeRevocation(wanted), base }],
        provenance: {
          action: "revoke",
          node: nodeId,
          tenant: tenantId,
          application: applicationId,
          ...whoOf(context),
        },
      },
      { deadlineMs: commitDeadlineMs },
    );
    if (outcome.kind === "committed") return outcome.revisions[0];
    if (outcome.kind === "refused") return undefined;
    throw failureOf(outcome);
  }
}
