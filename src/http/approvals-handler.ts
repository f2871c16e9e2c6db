import type { Answered, Page } from "../authority/api.ts";
import { sameSubject, type Subject } from "../core/subject.ts";
import { mayDecide } from "../core/workload/approval.ts";
import type { Workload } from "../core/workload/record.ts";
import { contextOf, mayShow } from "./access.ts";
import { answerJson, type HttpAnswer } from "./answer.ts";
import { single, singleNumber } from "./request.ts";
import type { Exchange } from "./route.ts";
import { revisionOf } from "./workload-handlers.ts";

/** How many pages are looked through for one answer: a subject that may decide little must not cost a scan of everything. */
const PAGES_MAX = 10;

/** Whether a verdict of the subject is awaited: it may decide, and has not given its part of a quorum yet. */
function awaits(workload: Workload, subject: Subject): boolean {
  const { approval } = workload;
  if (approval === undefined || !mayDecide(workload, approval, subject)) return false;
  return approval.given?.some(({ decidedBy }) => sameSubject(decidedBy, subject)) !== true;
}

/**
 * What waits for a decision that the subject may take (contract 1.9, 6.2). A page may hold fewer workloads than its
 * limit, or none; while it has a cursor there may be more.
 */
export async function listApprovals(exchange: Exchange): Promise<HttpAnswer> {
  const { services, subject, query } = exchange;
  const filter = {
    state: "AWAITING_APPROVAL",
    tenantId: single(query, "tenantId"),
    applicationId: single(query, "applicationId"),
    limit: singleNumber(query, "limit"),
  };
  const shown = mayShow(exchange, "workload:read", "workload:approve");
  let cursor = single(query, "cursor");
  for (let page = 1; ; page++) {
    const answered: Answered<Page> = await services.authority.call("list", { ...filter, cursor }, contextOf(exchange));
    const workloads = answered.answer.workloads.filter((workload) => awaits(workload, subject) && shown(workload));
    cursor = answered.answer.cursor;
    if (workloads.length > 0 || cursor === undefined || page >= PAGES_MAX)
      return answerJson({ workloads, cursor }, { headers: revisionOf(answered, exchange) });
  }
}
