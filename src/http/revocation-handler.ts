import { isMembers, type Members } from "../base/members.ts";
import { MandateError } from "../core/errors.ts";
import { contextOf, withOwner } from "./access.ts";
import { answerJson, type HttpAnswer } from "./answer.ts";
import { bindRequestId } from "./members.ts";
import { readRequestId } from "./request.ts";
import type { Exchange } from "./route.ts";
import { revisionOf } from "./workload-handlers.ts";

/**
 * Ending a tenant ends what is done in its other applications too, so it takes more than a grant of one of them that
 * somebody passed on: one that the issuer gave himself, for the whole application, and without constraints.
 */
function checkTenantReach({ bearer }: Exchange, body: Members): void {
  const { target } = body;
  if (bearer === undefined || !isMembers(target) || target["kind"] !== "tenant") return;
  const { grant, chain } = bearer;
  const isWhole = grant.resources.some(
    ({ kind, uri }) => kind === "APPLICATION" && !uri.slice("flow://".length).includes("/"),
  );
  if (chain.length === 0 && isWhole && Object.keys(grant.constraints).length === 0) return;
  throw new MandateError(
    "GRANT_SCOPE_DENIED",
    "to end a tenant takes a grant of a whole application that was neither delegated nor constrained",
    { details: { paths: ["target"] } },
  );
}

/** Contract 4.2: at this node from now on, at the others as soon as their view has it. */
export async function revokeGrants(exchange: Exchange): Promise<HttpAnswer> {
  const { context, services } = exchange;
  const body = withOwner(exchange, await exchange.readBody());
  if (isMembers(body)) checkTenantReach(exchange, body);
  const request = isMembers(body)
    ? { ...body, requestId: bindRequestId(body["requestId"], readRequestId(context)) }
    : body;
  const answered = await services.authority.call("revoke", request, contextOf(exchange));
  return answerJson(answered.answer, { headers: revisionOf(answered, exchange) });
}
