import { answerJson, type HttpAnswer } from "./answer.ts";
import { readJsonBody } from "./body.ts";
import { bindActor, bindRequestId, bindSubject, bindWorkloadId, contextOf, optionalMembers } from "./members.ts";
import { readPathId, readRequestId, readScope } from "./request.ts";
import type { Exchange } from "./route.ts";
import { revisionOf } from "./workload-handlers.ts";

/** The decider is the subject that asks (contract 1.9). */
export async function decideWorkload(exchange: Exchange): Promise<HttpAnswer> {
  const { context, services, subject, query } = exchange;
  const scope = readScope(query);
  const body = optionalMembers(await readJsonBody(context));
  const request = {
    ...body,
    workloadId: bindWorkloadId(body["workloadId"], readPathId(context)),
    decider: bindSubject("decider", body["decider"], subject),
    grantId: body["grantId"] === undefined ? "open" : body["grantId"],
    requestId: bindRequestId(body["requestId"], readRequestId(context)),
  };
  const answered = await services.authority.call("decide", request, contextOf(subject, scope));
  return answerJson(answered.answer, { headers: revisionOf(answered, exchange) });
}

/** Cancel, retry and time out (contract 1.10); the actor is the subject that asks. */
export const operateWorkload =
  (name: "cancel" | "retry" | "timeout") =>
  async (exchange: Exchange): Promise<HttpAnswer> => {
    const { context, services, subject, query } = exchange;
    const scope = readScope(query);
    const body = optionalMembers(await readJsonBody(context));
    const request = {
      ...body,
      workloadId: bindWorkloadId(body["workloadId"], readPathId(context)),
      actor: bindActor(body["actor"], subject),
      requestId: bindRequestId(body["requestId"], readRequestId(context)),
    };
    const answered = await services.authority.call(name, request, contextOf(subject, scope));
    return answerJson(answered.answer, { headers: revisionOf(answered, exchange) });
  };
