import { MandateError, refuse } from "../core/errors.ts";
import type { Json } from "../base/json.ts";
import { inLanes } from "../base/lanes.ts";
import { explainWorkload, noWorkerReason } from "../core/workload/explain.ts";
import { hashJson } from "../core/workload/payload.ts";
import { attemptIdOf } from "../core/workload/identity.ts";
import type { Payload, Workload } from "../core/workload/record.ts";
import { meshClaimOf } from "../core/worker/mesh-claim.ts";
import type { MeshClaim } from "../core/worker/record.ts";
import { rankOf, type Projected } from "../store/projection/projected.ts";
import { decodeCursor, encodeCursor, pageOf, type PageFilter, type ProjectedPage } from "../store/projection/page.ts";
import { admitManyRequest, claimNextRequest, getRequest, listRequest } from "../wire/requests.ts";
import { placeAndClaimRequest } from "../wire/worker-requests.ts";
import type { Admitted } from "./admissions.ts";
import type { Answered, Answers, CallContext, CallName, ItemAnswer, Page, Position } from "./api.ts";
import { parseArguments } from "./arguments.ts";
import { boundaryError } from "./failures.ts";
import type { Parts } from "./parts.ts";
import { dependencyStatesOf } from "./records.ts";
import type { KnownPayloads } from "./render.ts";
import { isRegisteredId, workerNotFound } from "./worker-records.ts";

/** How many items of a batch are worked on at once. */
const BATCH_CONCURRENCY = 64;
/** How long a list waits for a view that is newer than the call, ms: longer than a follower takes to begin anew. */
const BARRIER_MS = 5000;

/** Payloads beside the records that one page may carry, bytes: a page ends early rather than fill the memory. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024;

const besideBytes = ({ record }: Projected): number =>
  [
    record.input,
    ...record.checkpoints.map(({ state }) => state),
    ...(record.result === undefined ? [] : [record.result.output]),
  ].reduce((bytes, payload) => ("slot" in payload ? bytes + payload.bytes : bytes), 0);

/** The part of a page whose payloads fit, with the place where the next one begins. */
function fittingOf(page: ProjectedPage): ProjectedPage {
  let bytes = 0;
  for (const [index, workload] of page.workloads.entries()) {
    bytes += besideBytes(workload);
    const last = page.workloads[index - 1];
    if (bytes > PAGE_BYTES_MAX && last !== undefined)
      return { workloads: page.workloads.slice(0, index), next: rankOf(last.record) };
  }
  return page;
}

/** A payload as this very call brought it, if it is the one that is recorded: then it need not be read back. */
const knownPayload = (payload: Payload, hash: string, brought: Json): KnownPayloads =>
  "slot" in payload && hashJson(brought) === hash ? new Map([[payload.slot, brought]]) : new Map<string, Json>();

/** Renders what is committed. That it can't be read back does not mean that it did not happen. */
async function renderCommitted<Answer>(render: () => Promise<Answer>): Promise<Answer> {
  try {
    return await render();
  } catch (cause) {
    const error = boundaryError(cause);
    if (error.code !== "WORKLOAD_STORAGE_FAILURE") throw cause;
    throw new MandateError("WORKLOAD_OUTCOME_UNKNOWN", "what is committed can't be read back now; repeat the call", {
      cause,
    });
  }
}

/** Makes calls by their names: checks arguments, has the work done, and turns stored answers into what is shown. */
export class Calls {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A page of workloads by a filter that need not be expressible in a request. */
  async page(
    filter: PageFilter,
    range: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Answered<Page>> {
    const after = range.cursor === undefined ? undefined : decodeCursor(range.cursor);
    if (range.cursor !== undefined && after === undefined)
      throw MandateError.of(
        refuse("WORKLOAD_INVALID", "cursor is not one that was answered", {
          paths: ["cursor"],
          issues: [{ path: "cursor", message: "is not one that was answered" }],
        }),
      );
    // A held view is old on purpose; any other that can't be made newer than the call must not pass for what there is.
    if (!(await this.#parts.pulse.barriers(BARRIER_MS)) && !this.#parts.projection.isHeld)
      throw MandateError.of(refuse("AUTHORITY_NOT_READY", "this node's view could not be made newer than the call"));
    const page = pageOf(this.#parts.projection.index, filter, {
      limit: range.limit,
      ...(after === undefined ? {} : { after }),
    });
    const kept = fittingOf(page);
    const workloads = await Promise.all(
      kept.workloads.map(({ shard, record }) => this.#parts.renderer.workload(shard, record)),
    );
    const revision = this.#parts.projection.position()[0] ?? 0;
    return {
      answer: { workloads, ...(kept.next === undefined ? {} : { cursor: encodeCursor(kept.next) }) },
      ...(this.#parts.projection.position().length === 1 ? { position: { shard: 0, revision } } : {}),
    };
  }

  async dispatch(name: CallName, value: unknown, context: CallContext): Promise<Answered<unknown>> {
    switch (name) {
      case "admit":
        return this.#admit(value, context);
      case "admitMany":
        return this.#many(parseArguments(admitManyRequest, value), (item) => this.#admit(item, context));
      case "heartbeatMany":
        return this.#many(parseArguments(admitManyRequest, value), (item) =>
          this.#parts.executor.run(this.#parts.commands.heartbeat(item, context)),
        );
      case "claimNext":
        return this.#parts.claimNext.run(parseArguments(claimNextRequest, value), context);
      case "get":
        return this.#get(value, context);
      case "list": {
        const { limit, cursor, ...filter } = parseArguments(listRequest, value);
        return this.page({ ...filter, ...context.scope }, { limit, cursor });
      }
      case "explain":
        return this.#explain(value, context);
      case "executionContext":
        return this.#executionContext(value, context);
      case "checkpoint":
        return this.#checkpoint(value, context);
      case "complete":
        return this.#complete(value, context);
      case "revoke":
        return this.#parts.revocations.revoke(value, context);
      case "registerWorker":
        return this.#parts.workers.register(value, context);
      case "heartbeatWorker":
        return this.#parts.workers.heartbeat(value, context);
      case "drainWorker":
        return this.#parts.workers.drain(value, context);
      case "recoverWorker":
        return this.#parts.workers.recover(value, context);
      case "removeWorker":
        return this.#parts.workers.remove(value, context);
      case "reconcileWorker":
        return this.#parts.workers.reconcile(value, context);
      case "getWorker":
        return this.#parts.workers.get(value);
      case "listWorkers":
        return this.#parts.workers.list(value);
      case "createPool":
        return this.#parts.pools.create(value, context);
      case "changePool":
        return this.#parts.pools.change(value, context);
      case "deletePool":
        return this.#parts.pools.remove(value, context);
      case "getPool":
        return this.#parts.pools.get(value);
      case "listPools":
        return this.#parts.pools.list(value);
      case "place":
        return this.#parts.placing.place(value, context);
      case "placeAndClaim":
        return this.#placeAndClaim(value, context);
      case "validateClaim":
        return this.#parts.placing.validate(value, context);
      case "claim":
      case "start":
      case "heartbeat":
      case "fail":
      case "confirmCancel":
      case "cancel":
      case "timeout":
      case "retry":
      case "decide":
        return this.#parts.executor.run<unknown>(this.#parts.commands[name](value, context));
    }
  }

  /** A claim by a worker of the registry, answered as such a worker holds it (contract 2.3). */
  async #placeAndClaim(value: unknown, context: CallContext): Promise<Answered<MeshClaim>> {
    const request = parseArguments(placeAndClaimRequest, value, "WORKER_INVALID");
    const { tenantId, applicationId, ...claim } = request;
    if (!isRegisteredId(request.workerId)) throw workerNotFound(request.workerId);
    const scoped = { ...context, scope: context.scope ?? { tenantId, applicationId } };
    const { answer, position } = await this.#parts.executor.run(this.#parts.commands.claim(claim, scoped));
    const { workload } = await this.#parts.records.current(answer.workloadId, scoped.scope);
    const attempt = workload.record.attempts.find(({ claimId }) => claimId === answer.claimId);
    return {
      answer: meshClaimOf(answer, attempt?.attemptId ?? attemptIdOf(answer.workloadId, answer.fencingToken)),
      ...(position === undefined ? {} : { position }),
    };
  }

  async #admit(value: unknown, context: CallContext): Promise<Answered<Answers["admit"]>> {
    const { answer, position } = await this.#parts.admissions.admit(value, context);
    return { answer: await this.#renderAdmission({ answer, position }, value), position };
  }

  async #renderAdmission({ answer, position }: Admitted, value: unknown): Promise<Answers["admit"]> {
    const { record, created } = answer;
    const known = knownPayload(record.input, record.inputHash, (value as { readonly input: Json }).input);
    const workload = await renderCommitted(() => this.#parts.renderer.workload(position.shard, record, known));
    return { workload, created };
  }

  async #get(value: unknown, context: CallContext): Promise<Answered<Workload>> {
    const { workloadId } = parseArguments(getRequest, value);
    const { shard, revision, record } = await this.#parts.records.newest(workloadId, context.scope);
    return { answer: await this.#parts.renderer.workload(shard, record), position: { shard, revision } };
  }

  async #explain(value: unknown, context: CallContext): Promise<Answered<Answers["explain"]>> {
    const { workloadId } = parseArguments(getRequest, value);
    const seen = await this.#parts.records.fresh(workloadId, { scope: context.scope });
    const { record, shard, revision } = seen.workload;
    const reasons = explainWorkload(record, {
      now: this.#parts.now(),
      dependencies: dependencyStatesOf(seen),
      revocations: this.#parts.projection.revocations,
    });
    const placement = record.state === "READY" ? this.#parts.placing.explain(record) : undefined;
    return {
      answer: placement?.eligible === 0 ? [...reasons, noWorkerReason(placement)] : reasons,
      position: { shard, revision },
    };
  }

  async #executionContext(value: unknown, context: CallContext): Promise<Answered<Answers["executionContext"]>> {
    const { answer, position } = await this.#parts.executor.run(this.#parts.commands.executionContext(value, context));
    const { workload } = await this.#parts.records.current(
      (value as { readonly workloadId: string }).workloadId,
      context.scope,
    );
    const { input, checkpoints } = await this.#parts.renderer.context(workload.shard, {
      ...workload.record,
      input: answer.input,
      checkpoints: answer.checkpoints,
    });
    return { answer: { ...answer, input, checkpoints }, ...(position === undefined ? {} : { position }) };
  }

  async #checkpoint(value: unknown, context: CallContext): Promise<Answered<Answers["checkpoint"]>> {
    const { answer, position } = await this.#parts.executor.run(this.#parts.commands.checkpoint(value, context));
    const known = knownPayload(answer.state, answer.stateHash, (value as { readonly state: Json }).state);
    const checkpoint = await renderCommitted(async () => {
      const { workload } = await this.#parts.records.current(answer.workloadId, context.scope);
      return this.#parts.renderer.checkpoint(workload, answer, known);
    });
    return { answer: checkpoint, ...(position === undefined ? {} : { position }) };
  }

  async #complete(value: unknown, context: CallContext): Promise<Answered<Answers["complete"]>> {
    const { answer, position } = await this.#parts.executor.run(this.#parts.commands.complete(value, context));
    const known = knownPayload(answer.output, answer.outputHash, (value as { readonly output: Json }).output);
    const result = await renderCommitted(async () => {
      const { workload } = await this.#parts.records.current(answer.workloadId, context.scope);
      return this.#parts.renderer.result(workload, answer, known);
    });
    return { answer: result, ...(position === undefined ? {} : { position }) };
  }

  /** Answers each item on its own. */
  async #many<Answer extends object>(
    items: readonly unknown[],
    one: (item: unknown) => Promise<Answered<Answer>>,
  ): Promise<Answered<readonly ItemAnswer<Answer>[]>> {
    const answers: ItemAnswer<Answer>[] = [];
    let last: Position | undefined;
    await inLanes(items.entries(), BATCH_CONCURRENCY, async ([index, item]) => {
      try {
        const { answer, position } = await one(item);
        if (position !== undefined && (last === undefined || position.revision > last.revision)) last = position;
        answers[index] = { ok: true, ...answer };
      } catch (cause) {
        answers[index] = { ok: false, error: boundaryError(cause) };
      }
    });
    return { answer: answers, ...(last === undefined ? {} : { position: last }) };
  }
}
