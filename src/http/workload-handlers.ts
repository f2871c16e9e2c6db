import { isMembers } from "../base/members.ts";
import type { Answered } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import { settledStates } from "../core/workload/states.ts";
import { BATCH_SIZE_MAX } from "../wire/limits.ts";
import { parseShape } from "../wire/parse.ts";
import { renderItem } from "../wire/problem.ts";
import { authorize, contextOf, mayShow, scopedContextOf, withOwner } from "./access.ts";
import { answerJson, invalidAt, type HttpAnswer } from "./answer.ts";
import { fillAdmission, traitsOfDraft } from "./members.ts";
import { parseSubject, readPathId, readRequestId, renderPosition, single, singleNumber } from "./request.ts";
import type { Exchange } from "./route.ts";
import { resultQuery } from "./schemas.ts";

/** The header that tells which revision an answer reflects (contract 6.2). */
export function revisionOf(answered: Answered<unknown>, exchange: Exchange): Readonly<Record<string, string>> {
  const { position } = answered;
  if (position === undefined) return {};
  return { "mandate-revision": renderPosition(position, exchange.services.authority.shards) };
}

/**
 * A request to admit work, filled in, that the caller's grant reaches.
 *
 * @throws MandateError the refusal.
 */
async function permitted(exchange: Exchange, item: unknown, requestId: string | undefined): Promise<unknown> {
  const who = contextOf(exchange);
  const owned = withOwner(exchange, item);
  const request = fillAdmission(owned, who, requestId);
  const { scope, subject } = who;
  if (scope !== undefined && subject !== undefined && isMembers(request)) {
    const traits = traitsOfDraft(request, { scope, subject });
    await authorize(exchange, "workload:create", { kind: "traits", traits, isNew: true });
  }
  return request;
}

/** Contract 1.7: 201 when this call created the workload, 200 when an earlier one did. */
export async function admitWorkload(exchange: Exchange): Promise<HttpAnswer> {
  const { context, services } = exchange;
  const request = await permitted(exchange, await exchange.readBody(), readRequestId(context));
  const answered = await services.authority.call("admit", request, contextOf(exchange));
  const { workload, created } = answered.answer;
  return answerJson(answered.answer, {
    status: created ? 201 : 200,
    headers: {
      location: `/v1/workloads/${encodeURIComponent(workload.workloadId)}`,
      ...revisionOf(answered, exchange),
    },
  });
}

/** Each item is answered as the single door would, in the order of the requests. */
export async function admitWorkloads(exchange: Exchange): Promise<HttpAnswer> {
  const { context, services } = exchange;
  const items = await exchange.readBody();
  if (!Array.isArray(items)) throw invalidAt("", "the body is not an array of requests");
  // Before anything is asked about any of them: the loop that asks does not let others in.
  if (items.length > BATCH_SIZE_MAX) throw invalidAt("", `has more than ${BATCH_SIZE_MAX} requests`);
  const requestId = readRequestId(context);
  const refused = new Map<number, MandateError>();
  const filled: unknown[] = [];
  for (const [index, item] of items.entries()) {
    try {
      filled.push(await permitted(exchange, item, requestId === undefined ? undefined : `${requestId}.${index}`));
    } catch (thrown) {
      if (!(thrown instanceof MandateError)) throw thrown;
      refused.set(index, thrown);
    }
  }
  const answered = await services.authority.call("admitMany", filled, contextOf(exchange));
  const answers = answered.answer.values();
  const woven = items.map((_, index) => {
    const error = refused.get(index);
    if (error !== undefined) return renderItem({ ok: false, error });
    const next = answers.next();
    return next.done === true ? undefined : renderItem(next.value);
  });
  return answerJson(woven, { headers: revisionOf(answered, exchange) });
}

export async function listWorkloads(exchange: Exchange): Promise<HttpAnswer> {
  const { services, query } = exchange;
  const requestedBy = single(query, "requestedBy");
  const filter = {
    tenantId: single(query, "tenantId"),
    applicationId: single(query, "applicationId"),
    state: query.get("state"),
    definitionId: single(query, "definitionId"),
    requestedBy: requestedBy === undefined ? undefined : parseSubject("requestedBy", requestedBy),
    workerId: single(query, "workerId"),
    createdFrom: singleNumber(query, "createdFrom"),
    createdTo: singleNumber(query, "createdTo"),
    limit: singleNumber(query, "limit"),
    cursor: single(query, "cursor"),
  };
  const answered = await services.authority.call("list", filter, contextOf(exchange));
  const workloads = answered.answer.workloads.filter(mayShow(exchange, "workload:read"));
  return answerJson({ ...answered.answer, workloads }, { headers: revisionOf(answered, exchange) });
}

export async function getWorkload(exchange: Exchange): Promise<HttpAnswer> {
  const { services } = exchange;
  const request = { workloadId: readPathId(exchange.context) };
  const answered = await services.authority.call("get", request, scopedContextOf(exchange));
  return answerJson(answered.answer, { headers: revisionOf(answered, exchange) });
}

/** Does something under a signal that any of several aborts; nothing is left on those afterwards, however long they live. */
async function untilAborted<Value>(
  signals: readonly AbortSignal[],
  run: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  for (const signal of signals) {
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
  }
  try {
    return await run(controller.signal);
  } finally {
    for (const signal of signals) signal.removeEventListener("abort", abort);
  }
}

/** Waits until nothing more will happen by itself, the time is up, the client is gone or the server stops. */
export async function readResult(exchange: Exchange): Promise<HttpAnswer> {
  const { context, services, query } = exchange;
  const shaped = parseShape(resultQuery, {
    tenantId: single(query, "tenantId"),
    applicationId: single(query, "applicationId"),
    waitMs: singleNumber(query, "waitMs"),
  });
  if (!shaped.ok) throw MandateError.of(shaped.error);
  const { waitMs } = shaped.value;
  const scoped = scopedContextOf(exchange);
  const workloadId = readPathId(context);
  const answered = await (waitMs === 0
    ? services.authority.waitForSettled(workloadId, 0, scoped)
    : untilAborted([services.stopping, context.req.raw.signal], (signal) =>
        services.authority.waitForSettled(workloadId, signal.aborted ? 0 : waitMs, { ...scoped, signal }),
      ));
  // The grant may have ended while the request waited.
  if (waitMs > 0) await authorize(exchange, "workload:read", { kind: "workload", workloadId });
  const { state, result, lastFailure } = answered.answer;
  const answer = { workloadId, state, settled: settledStates.includes(state), result, lastFailure };
  return answerJson(answer, { headers: revisionOf(answered, exchange) });
}

export async function explainWorkload(exchange: Exchange): Promise<HttpAnswer> {
  const { services } = exchange;
  const workloadId = readPathId(exchange.context);
  const answered = await services.authority.call("explain", { workloadId }, scopedContextOf(exchange));
  return answerJson({ workloadId, reasons: answered.answer }, { headers: revisionOf(answered, exchange) });
}
