import { isMembers, type Members } from "../base/members.ts";
import type { AccessObject, Bearer } from "../authority/access.ts";
import type { Answered, CallContext, CallName } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import { grantedWorkerCapabilities, type Capability } from "../core/grant/capabilities.ts";
import { snapshotOf } from "../core/grant/snapshot.ts";
import { workerIdOf } from "../core/worker/identity.ts";
import { BATCH_SIZE_MAX } from "../wire/limits.ts";
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

/** What a verb needs of the grant, and on what (contract 4.1): the work that its message names, the worker, or whatever a queue hands out. */
const accessByVerb: {
  readonly [Verb in ServedVerb]: readonly [Capability, "collection" | "worker" | "work" | "queue"];
} = {
  "worker.register": ["worker:register", "collection"],
  "worker.heartbeat": ["worker:heartbeat", "worker"],
  "worker.drain": ["worker:manage", "worker"],
  "worker.reconcile": ["worker:heartbeat", "worker"],
  "work.next": ["workload:claim", "queue"],
  "work.claim": ["workload:claim", "work"],
  "work.start": ["workload:execute", "work"],
  "work.heartbeat": ["workload:execute", "work"],
  "work.context": ["workload:execute", "work"],
  "work.checkpoint": ["workload:execute", "work"],
  "work.complete": ["workload:execute", "work"],
  "work.fail": ["workload:execute", "work"],
  "work.confirm-cancel": ["workload:execute", "work"],
  "claim.validate": ["workload:read", "work"],
};

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

/** One request, as far as it is understood before its shape is checked. */
export interface WorkRequest {
  readonly verb: ServedVerb;
  /** From the subject: what the message says cannot widen it. */
  readonly scope: Scope;
  readonly value: unknown;
  readonly signal: AbortSignal;
  /** The grant that the request carries; absent in open mode. */
  readonly bearer?: Bearer | undefined;
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

/**
 * Asks for one call whether the grant allows it. A member that should name the work or the worker and does not is left
 * to the shapes: no record bears the name that stands for it here.
 */
function authorizeOne(authority: WorkerAuthority, request: WorkRequest, members: Members): Promise<void> {
  const { verb, bearer } = request;
  if (bearer === undefined) return Promise.resolve();
  const [capability, kind] = accessByVerb[verb];
  const textOf = (name: string): string => {
    const value = members[name];
    return typeof value === "string" ? value : "unnamed";
  };
  const workerId =
    verb === "worker.register" ? workerIdOf({ ...request.scope, name: textOf("name") }) : textOf("workerId");
  const on: AccessObject =
    kind === "worker"
      ? { kind, workerId }
      : kind === "work"
        ? { kind: "workload", workloadId: textOf("workloadId") }
        : { kind };
  const from = { door: "nats", operation: verb } as const;
  return authority.access().require({ bearer, capability, on, workerId, from });
}

/** Claims of one workload and worker are asked about once. */
const keyOf = ({ workloadId, workerId }: Members): string => JSON.stringify([workloadId, workerId]);

/** Which work a request for any may be answered with. */
function mayTakeOf(authority: WorkerAuthority, request: WorkRequest, members: Members): Pick<CallContext, "mayTake"> {
  const { verb, bearer } = request;
  const { workerId } = members;
  if (bearer === undefined || verb !== "work.next" || typeof workerId !== "string") return {};
  const from = { door: "nats", operation: verb } as const;
  return { mayTake: authority.access().mayTake({ bearer, capability: accessByVerb[verb][0], workerId, from }) };
}

/**
 * Asks whether the grant allows a request, each claim of a batch for itself.
 *
 * @throws MandateError the refusal, `GRANT_SCOPE_DENIED` when the grant is of another tenant or application than the subject.
 */
async function authorize(authority: WorkerAuthority, request: WorkRequest, members: Members): Promise<void> {
  const { bearer, scope } = request;
  if (bearer === undefined) return;
  const { tenantId, applicationId } = bearer.grant;
  if (tenantId !== scope.tenantId || applicationId !== scope.applicationId)
    throw new MandateError("GRANT_SCOPE_DENIED", "the grant is of another tenant or application than the subject");
  const { claims } = members;
  const isBatch = request.verb === "work.heartbeat" && Array.isArray(claims);
  // Before anything is asked about any of them: the loop that asks does not let others in.
  if (isBatch && claims.length > BATCH_SIZE_MAX)
    throw new MandateError("WORKLOAD_INVALID", `claims: more than ${BATCH_SIZE_MAX}`, {
      details: { paths: ["claims"] },
    });
  const named = isBatch ? claims.filter(isMembers) : [members];
  const asked = isBatch ? new Map(named.map((claim) => [keyOf(claim), claim])).values() : named;
  for (const one of asked) await authorizeOne(authority, request, one);
}

/** Who asks: every identifier is encoded or last, so that no two callers coincide. */
function contextOf(request: WorkRequest, members: Members, subjectPrefix: string): CallContext {
  const { workerId } = members;
  const { bearer } = request;
  const named = typeof workerId === "string";
  return {
    scope: request.scope,
    caller: `${subjectPrefix}/worker:${named ? workerId : ""}`,
    ...(named ? { subject: { kind: "worker", id: workerId } } : {}),
    ...(request.verb === "work.next" ? { signal: request.signal } : {}),
    ...(bearer === undefined ? {} : { subject: bearer.grant.subject, grant: snapshotOf(bearer.grant, bearer.chain) }),
  };
}

/** A worker that is not in the registry may say that it can do what its grant lets it say, as one that registers may (contract 2.2). */
function withGranted(members: Members, bearer: Bearer | undefined): Members {
  const { capabilities } = members;
  if (bearer === undefined || !Array.isArray(capabilities)) return members;
  const granted = new Set<unknown>(grantedWorkerCapabilities(bearer.grant.capabilities));
  // What is no text stays, for the shape to name.
  return { ...members, capabilities: capabilities.filter((name) => typeof name !== "string" || granted.has(name)) };
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
  await authorize(authority, request, isMembers(value) ? value : {});
  if (!isMembers(value)) return (await authority.call(name, value, contextOf(request, {}, subjectPrefix))).answer;
  checkScope(value, scope);
  const { tenantId: _tenant, applicationId: _application, ...members } = value;
  const context = { ...contextOf(request, members, subjectPrefix), ...mayTakeOf(authority, request, members) };
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
  const claims = verb === "work.next" || verb === "work.claim";
  const asked = claims ? withGranted(members, request.bearer) : members;
  const args = scopedVerbs.includes(verb) ? { ...asked, ...scope } : asked;
  const answered: Answered<unknown> = await authority.call(name, args, context);
  return answered.answer;
}
