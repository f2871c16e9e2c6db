import { scopedContextOf } from "./access.ts";
import { answerJson, type HttpAnswer } from "./answer.ts";
import { bindActor, bindGrantId, bindRequestId, bindSubject, bindWorkloadId, optionalMembers } from "./members.ts";
import { readPathId, readRequestId } from "./request.ts";
import type { Exchange } from "./route.ts";
import { revisionOf } from "./workload-handlers.ts";

/** The decider is the subject that asks (contract 1.9). */
export async function decideWorkload(exchange: Exchange): Promise<HttpAnswer> {
  const { context, services, subject } = exchange;
  const who = scopedContextOf(exchange);
  const body = optionalMembers(await exchange.readBody());
  const request = {
    ...body,
    workloadId: bindWorkloadId(body["workloadId"], readPathId(context)),
    decider: bindSubject("decider", body["decider"], subject),
    grantId: bindGrantId(body["grantId"], who.grant),
    requestId: bindRequestId(body["requestId"], readRequestId(context)),
  };
  const answered = await services.authority.call("decide", request, who);
  return answerJson(answered.answer, { headers: revisionOf(answered, exchange) });
}

/** Cancel, retry and time out (contract 1.10); the actor is the subject that asks. */
export const operateWorkload =
  (name: "cancel" | "retry" | "timeout") =>
  async (exchange: Exchange): Promise<HttpAnswer> => {
    const { context, services, subject } = exchange;
    const who = scopedContextOf(exchange);
    const body = optionalMembers(await exchange.readBody());
    const request = {
      ...body,
      workloadId: bindWorkloadId(body["workloadId"], readPathId(context)),
      actor: bindActor(body["actor"], subject),
      requestId: bindRequestId(body["requestId"], readRequestId(context)),
    };
    const answered = await services.authority.call(name, request, who);
    return answerJson(answered.answer, { headers: revisionOf(answered, exchange) });
  };
