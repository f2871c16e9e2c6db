import type { Answered, CallContext, CallName } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import { renderItem } from "../wire/problem.ts";
import type { WorkerAuthority } from "./authority-port.ts";

/** A verb of contract 6.3 and the call of contract 6.1 that it makes. */
const callsByVerb = {
  "worker.register": "registerWorker",
  "worker.heartbeat": "heartbeatWorker",
  "worker.drain": "drainWorker",
  "worker.reconcile": "reconcileWorker",
  "work.next": "claimNext",
  "work.claim": "claim",
  "work.start": "start",
  "work.heartbeat": "heartbeat",
  "work.context": "executionContext",
  "work.checkpoint": "checkpoint",
  "work.complete": "complete",
  "work.fail": "fail",
  "work.confirm-cancel": "confirmCancel",
  "claim.validate": "validateClaim",
} as const satisfies Record<string, CallName>;

export type ServedVerb = keyof typeof callsByVerb;

export const servedVerbs = Object.keys(callsByVerb) as readonly ServedVerb[];

export const isServedVerb = (text: string): text is ServedVerb => Object.hasOwn(callsByVerb, text);

/** Verbs that change nothing. */
export const isReading = (verb: ServedVerb): boolean => verb === "work.context" || verb === "claim.validate";

/** Verbs whose call names its tenant and application itself; the others name a workload. */
const scopedVerbs: readonly ServedVerb[] = [
  "work.next",
  "worker.register",
  "worker.heartbeat",
  "worker.drain",
  "worker.reconcile",
  "claim.validate",
];

/** Whose work it is. */
export type Scope = NonNullable<CallContext["scope"]>;

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** One request, as far as it is understood before its shape is checked. */
export interface WorkRequest {
  readonly verb: ServedVerb;
  /** From the subject: what the message says cannot widen it. */
  readonly scope: Scope;
  readonly value: unknown;
  readonly signal: AbortSignal;
}

/** A request that waits at the authority, perhaps for long. */
export const isLongPoll = (verb: ServedVerb, value: unknown): boolean =>
  verb === "work.next" && isMembers(value) && typeof value["waitMs"] === "number" && value["waitMs"] > 0;

/** @throws MandateError `WORKLOAD_UNAUTHORIZED` when a message names another tenant or application than its subject. */
function checkScope(members: Members, scope: Scope): void {
  for (const name of ["tenantId", "applicationId"] as const) {
    const given = members[name];
    if (given !== undefined && given !== scope[name])
      throw new MandateError("WORKLOAD_UNAUTHORIZED", `${name} is not the one of the subject`, {
        details: { paths: [name] },
      });
  }
}

/** Who asks: every identifier is encoded or last, so that no two callers coincide. */
function contextOf(request: WorkRequest, members: Members, subjectPrefix: string): CallContext {
  const { workerId } = members;
  const named = typeof workerId === "string";
  return {
    scope: request.scope,
    caller: `${subjectPrefix}/worker:${named ? workerId : ""}`,
    ...(named ? { subject: { kind: "worker", id: workerId } } : {}),
    ...(request.verb === "work.next" ? { signal: request.signal } : {}),
  };
}

/** Renewals of many claims in one message, each answered on its own (contract 1.8). */
async function heartbeatMany(authority: WorkerAuthority, claims: unknown, context: CallContext): Promise<unknown> {
  const answered = await authority.call("heartbeatMany", claims, context);
  return answered.answer.map(renderItem);
}

/**
 * Makes the call that a request asks for, and answers what it answers. `subjectPrefix` is the encoded
 * `<tenant>/<application>` of the subject.
 *
 * @throws MandateError the refusal.
 */
export async function makeCall(
  authority: WorkerAuthority,
  request: WorkRequest,
  subjectPrefix: string,
): Promise<unknown> {
  const { verb, scope, value } = request;
  const name = callsByVerb[verb];
  if (!isMembers(value)) return (await authority.call(name, value, contextOf(request, {}, subjectPrefix))).answer;
  checkScope(value, scope);
  const { tenantId: _tenant, applicationId: _application, ...members } = value;
  const context = contextOf(request, members, subjectPrefix);
  if (verb === "work.heartbeat" && "claims" in members) {
    const { claims, ...rest } = members;
    const extra = Object.keys(rest);
    if (extra.length > 0)
      throw new MandateError(
        "WORKLOAD_INVALID",
        `${extra[0]}: is not a member of a batch of heartbeats`.toWellFormed(),
        {
          details: { paths: extra.slice(0, 50) },
        },
      );
    return heartbeatMany(authority, claims, context);
  }
  const args = scopedVerbs.includes(verb) ? { ...members, ...scope } : members;
  const answered: Answered<unknown> = await authority.call(name, args, context);
  return answered.answer;
}
