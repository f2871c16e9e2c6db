import { isMembers, type Members } from "../base/members.ts";
import { boundWorkersOf } from "../authority/access.ts";
import type { CallName } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import { authorize, contextOf, withOwner } from "./access.ts";
import { answerJson, type HttpAnswer } from "./answer.ts";
import { bindRequestId, optionalMembers } from "./members.ts";
import { readPathId, readRequestId, single, singleNumber } from "./request.ts";
import type { Exchange } from "./route.ts";
import { revisionOf } from "./workload-handlers.ts";

/** The members of a query that say whose worker, pool or claim it is; the shapes name what is missing. */
const ownerOf = ({ query }: Exchange): Members => {
  const tenantId = single(query, "tenantId");
  const applicationId = single(query, "applicationId");
  return {
    ...(tenantId === undefined ? {} : { tenantId }),
    ...(applicationId === undefined ? {} : { applicationId }),
  };
};

async function answerCall(exchange: Exchange, name: CallName, request: unknown): Promise<HttpAnswer> {
  const { services } = exchange;
  const answered = await services.authority.call(name, request, contextOf(exchange));
  return answerJson(answered.answer, { headers: revisionOf(answered, exchange) });
}

const requestIdOf = (exchange: Exchange, body: Members): Members => {
  const requestId = bindRequestId(body["requestId"], readRequestId(exchange.context));
  return requestId === undefined ? {} : { requestId };
};

/** @throws MandateError `GRANT_SCOPE_DENIED` when a worker's grant is used to register another. */
function checkName({ bearer }: Exchange, body: unknown): void {
  if (bearer === undefined || !isMembers(body)) return;
  if (boundWorkersOf(bearer).every((name) => body["name"] === name)) return;
  throw new MandateError("GRANT_SCOPE_DENIED", "the grant is another worker's", { details: { paths: ["name"] } });
}

/** Contract 2.2: 201 when this call created the worker, 200 when it was known. */
export async function registerWorker(exchange: Exchange): Promise<HttpAnswer> {
  const { services } = exchange;
  const body = withOwner(exchange, await exchange.readBody());
  checkName(exchange, body);
  const request = isMembers(body) ? { ...body, ...requestIdOf(exchange, body) } : body;
  const answered = await services.authority.call("registerWorker", request, contextOf(exchange));
  const { worker, created } = answered.answer;
  return answerJson(answered.answer, {
    status: created ? 201 : 200,
    headers: { location: `/v1/workers/${encodeURIComponent(worker.workerId)}`, ...revisionOf(answered, exchange) },
  });
}

/** A call on the worker of the path. */
export const onWorker =
  (name: "heartbeatWorker" | "drainWorker" | "recoverWorker" | "removeWorker" | "reconcileWorker") =>
  async (exchange: Exchange): Promise<HttpAnswer> => {
    const body = optionalMembers(await exchange.readBody());
    const workerId = readPathId(exchange.context);
    return answerCall(exchange, name, { ...body, ...ownerOf(exchange), workerId, ...requestIdOf(exchange, body) });
  };

export const getWorker = (exchange: Exchange): Promise<HttpAnswer> =>
  answerCall(exchange, "getWorker", { ...ownerOf(exchange), workerId: readPathId(exchange.context) });

export function listWorkers(exchange: Exchange): Promise<HttpAnswer> {
  const { query } = exchange;
  const limit = singleNumber(query, "limit");
  const after = single(query, "after");
  return answerCall(exchange, "listWorkers", {
    ...ownerOf(exchange),
    ...(limit === undefined ? {} : { limit }),
    ...(after === undefined ? {} : { after }),
  });
}

export async function createPool(exchange: Exchange): Promise<HttpAnswer> {
  const { services } = exchange;
  const body = withOwner(exchange, await exchange.readBody());
  const request = isMembers(body) ? { ...body, ...requestIdOf(exchange, body) } : body;
  const answered = await services.authority.call("createPool", request, contextOf(exchange));
  return answerJson(answered.answer, {
    status: 201,
    headers: {
      location: `/v1/pools/${encodeURIComponent(answered.answer.poolId)}`,
      ...revisionOf(answered, exchange),
    },
  });
}

/** A change of the pool of the path. */
export const onPool =
  (name: "changePool" | "deletePool") =>
  async (exchange: Exchange): Promise<HttpAnswer> => {
    const body = optionalMembers(await exchange.readBody());
    const poolId = readPathId(exchange.context);
    return answerCall(exchange, name, { ...body, ...ownerOf(exchange), poolId, ...requestIdOf(exchange, body) });
  };

export const getPool = (exchange: Exchange): Promise<HttpAnswer> =>
  answerCall(exchange, "getPool", { ...ownerOf(exchange), poolId: readPathId(exchange.context) });

/** A pool of the whole tenant may hold workers of other applications, which a grant of one does not reach. */
export async function listPools(exchange: Exchange): Promise<HttpAnswer> {
  const { services, bearer } = exchange;
  const answered = await services.authority.call("listPools", ownerOf(exchange), contextOf(exchange));
  const applicationId = bearer?.grant.applicationId;
  const pools = answered.answer.pools.filter((pool) => bearer === undefined || pool.applicationId === applicationId);
  return answerJson({ pools }, { headers: revisionOf(answered, exchange) });
}

export const placeWorkload = (exchange: Exchange): Promise<HttpAnswer> =>
  answerCall(exchange, "place", { ...ownerOf(exchange), workloadId: readPathId(exchange.context) });

export async function validateClaim(exchange: Exchange): Promise<HttpAnswer> {
  const body = withOwner(exchange, await exchange.readBody());
  const workloadId = isMembers(body) ? body["workloadId"] : undefined;
  if (typeof workloadId === "string") await authorize(exchange, "workload:read", { kind: "workload", workloadId });
  return answerCall(exchange, "validateClaim", body);
}
