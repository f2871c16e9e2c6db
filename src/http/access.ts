import { isMembers, type Members } from "../base/members.ts";
import type { AccessObject, Bearer, WorkloadTraits } from "../authority/access.ts";
import type { CallContext } from "../authority/api.ts";
import type { Result } from "../base/result.ts";
import { MandateError, type Refusal } from "../core/errors.ts";
import type { Capability } from "../core/grant/capabilities.ts";
import { snapshotOf } from "../core/grant/snapshot.ts";
import type { Subject } from "../core/subject.ts";
import type { HttpContext } from "./context.ts";
import { readPathId, readScope } from "./request.ts";
import type { Exchange, HttpRoute } from "./route.ts";

/** What this door needs to know grants by. Without it the node runs in open mode. */
export interface HttpGrants {
  /** The grant of a token whose signatures are good; never rejects. */
  verify(token: string): Promise<Result<Bearer, Refusal>>;
  /** The public keys, as a JWKS. */
  jwks(): string;
}

/**
 * The grant that a request carries (contract 4.3).
 *
 * @throws MandateError `GRANT_INVALID` when there is none, or its signature is not good.
 */
export async function readBearer(context: HttpContext, grants: HttpGrants): Promise<Bearer> {
  const header = context.req.header("authorization");
  const [, token] = /^Bearer +([\w.-]+) *$/i.exec(header ?? "") ?? [];
  if (token === undefined)
    throw new MandateError("GRANT_INVALID", "the request has no Authorization: Bearer with a grant");
  const verified = await grants.verify(token);
  if (!verified.ok) throw MandateError.of(verified.error);
  return verified.value;
}

const foreign = (name: string): MandateError =>
  new MandateError("GRANT_SCOPE_DENIED", `${name} is not the grant's`, { details: { paths: [name] } });

/**
 * Members with the grant's tenant and application in their places, whatever they left out; in open mode as they are.
 *
 * @throws MandateError `GRANT_SCOPE_DENIED` when they name others.
 */
export function withOwner(exchange: Pick<Exchange, "bearer">, members: unknown): unknown {
  const { bearer } = exchange;
  if (bearer === undefined || !isMembers(members)) return members;
  const { tenantId, applicationId } = bearer.grant;
  const owner: Members = { tenantId, applicationId };
  for (const [name, value] of Object.entries(owner))
    if (members[name] !== undefined && members[name] !== value) throw foreign(name);
  return { ...members, ...owner };
}

/**
 * A query whose tenant and application are the grant's, where the route knows them: no handler can ask for others.
 *
 * @throws MandateError `GRANT_SCOPE_DENIED` when it names others.
 */
export function bindQuery(
  query: Exchange["query"],
  route: Pick<HttpRoute, "query">,
  bearer: Bearer | undefined,
): Exchange["query"] {
  if (bearer === undefined) return query;
  const bound = new Map(query);
  for (const name of ["tenantId", "applicationId"] as const) {
    if (route.query?.shape[name] === undefined) continue;
    if (query.get(name)?.some((value) => value !== bearer.grant[name]) === true) throw foreign(name);
    bound.set(name, [bearer.grant[name]]);
  }
  return bound;
}

/** How the operation's id tells callers apart: the kind has no colon, so no two subjects coincide. */
export const callerOf = (subject: Subject): string => `${subject.kind}:${subject.id}`;

/** The context of a call. Under a grant its scope is the grant's, whatever is asked for. */
export function contextOf(
  { subject, bearer }: Pick<Exchange, "subject" | "bearer">,
  scope?: CallContext["scope"],
): CallContext {
  const caller = { caller: callerOf(subject), subject };
  if (bearer === undefined) return { ...caller, ...(scope === undefined ? {} : { scope }) };
  const { grant, chain } = bearer;
  const { tenantId, applicationId } = grant;
  return { ...caller, scope: { tenantId, applicationId }, grant: snapshotOf(grant, chain) };
}

/** The context of a call on one workload, whose query may name the tenant and the application. */
export const scopedContextOf = (exchange: Exchange): CallContext => contextOf(exchange, readScope(exchange.query));

const fromOf = ({ context, operation }: Exchange) => {
  const network = context.env?.incoming?.socket.remoteAddress;
  return { door: "http" as const, operation, ...(network === undefined ? {} : { network }) };
};

/**
 * Asks whether the caller may; in open mode everybody may everything.
 *
 * @throws MandateError the refusal.
 */
export async function authorize(exchange: Exchange, capability: Capability, on: AccessObject): Promise<void> {
  const { bearer, services } = exchange;
  if (bearer === undefined) return;
  await services.authority.access().require({ bearer, capability, on, from: fromOf(exchange) });
}

/** Asks for what a route says that it needs, before its handler runs. */
export async function authorizeRoute(exchange: Exchange, { access }: HttpRoute): Promise<void> {
  if (access === "public") return;
  const { capability, on } = access;
  switch (on) {
    case "any":
    case "collection":
    case "every":
      return authorize(exchange, capability, { kind: on });
    case "workload":
      return authorize(exchange, capability, { kind: "workload", workloadId: readPathId(exchange.context) });
    case "worker":
      return authorize(exchange, capability, { kind: "worker", workerId: readPathId(exchange.context) });
  }
}

/** Which workloads the caller may be shown: asked of each, at the time that it is shown. */
export function mayShow(
  exchange: Exchange,
  ...capabilities: readonly Capability[]
): (traits: WorkloadTraits) => boolean {
  const { bearer, services } = exchange;
  if (bearer === undefined) return () => true;
  const from = fromOf(exchange);
  return (traits) => {
    const access = services.authority.access();
    return capabilities.every((capability) => access.reaches({ bearer, capability, from }, traits));
  };
}
