import { refuse, type Refusal } from "../errors.ts";
import { sameSubject, type Subject } from "../subject.ts";
import { findBrokenConstraint, type RequestFacts } from "./constraints.ts";
import { findChainFault, findOutside } from "./delegation.ts";
import type { Grant, GrantConstraints } from "./grant.ts";
import { isInside, parseResource, parseResourceUri } from "./resource-uri.ts";
import type { Revocations } from "./revocation.ts";

/** What somebody wants to do. */
export interface AccessRequest {
  /** Given: the grant must be this subject's. */
  readonly subject?: Subject;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly capability: string;
  /** `any`: whether there could be something at all. Whoever asks so must ask again for each thing, with what is known of it. */
  readonly target: AccessTarget | "any";
}

/** What something is done to. */
export interface AccessTarget {
  /** The URI that the capability is checked on: see `resourceOf`. */
  readonly resource: string;
  /** Not the resource, but everything below it. */
  readonly everythingBelow?: true;
  readonly facts: RequestFacts;
  /** Constraints that are asked for later, of each thing. */
  readonly later?: readonly (keyof GrantConstraints)[];
  /** Constraints that a refusal does not name: which of them holds would tell of something that the caller may not see. */
  readonly unnamed?: readonly (keyof GrantConstraints)[];
}

/** When, and with which knowledge, it is decided. */
export interface AuthorizationInstant {
  /** Epoch ms. */
  readonly now: number;
  /** How far an issuer's clock may be ahead, ms. */
  readonly skewMs: number;
  readonly revocations: Revocations;
}

/** Everything that a decision rests on. The signatures of the grant and of its ancestors were verified before. */
export interface Authorization extends AuthorizationInstant {
  readonly grant: Grant;
  /** From the parent to the first. */
  readonly chain: readonly Grant[];
  readonly request: AccessRequest;
}

export type AuthorizationDecision = { readonly allowed: true } | { readonly allowed: false; readonly refusal: Refusal };

const denied = (message: string, details?: Refusal["details"]): Refusal =>
  refuse("GRANT_SCOPE_DENIED", message, details);

function findForeign(grant: Grant, { subject, tenantId, applicationId }: AccessRequest): Refusal | undefined {
  if (subject !== undefined && !sameSubject(grant.subject, subject))
    return denied("the grant is another subject's", { member: "subject" });
  if (grant.tenantId !== tenantId) return denied("the grant is of another tenant", { member: "tenantId" });
  if (grant.applicationId !== applicationId)
    return denied("the grant is of another application", { member: "applicationId" });
  return undefined;
}

/** The URI that is asked for, and every one in the grant, must be well-formed and within the application. */
function findMalformed(grant: Grant, { applicationId, target }: AccessRequest): Refusal | undefined {
  if (target !== "any" && parseResourceUri(target.resource)?.[0] !== applicationId)
    return denied("the resource is no URI of the application");
  const isWithin = grant.resources.every((each) => parseResource(each)?.parts[0] === grant.applicationId);
  return isWithin ? undefined : denied("a resource of the grant is no URI of its application");
}

function findUntimely(
  { issuedAt, expiresAt, status }: Grant,
  { now, skewMs }: AuthorizationInstant,
): Refusal | undefined {
  if (issuedAt > now + skewMs) return refuse("GRANT_INVALID", "the grant was issued in the future");
  if (now >= expiresAt || status === "EXPIRED") return refuse("GRANT_EXPIRED", "the grant has expired", { expiresAt });
  return undefined;
}

function findRevoked(chain: readonly Grant[], revocations: Revocations): Refusal | undefined {
  const fates = chain.map((grant) => revocations.fateOf(grant));
  const [ended, replaced] = (["REVOKED", "SUPERSEDED"] as const).map((status) =>
    chain.some((grant) => grant.status === status),
  );
  if (ended === true || fates.includes("revoked"))
    return refuse("GRANT_REVOKED", "the grant, or one that it was delegated from, was revoked");
  if (replaced === true || fates.includes("superseded"))
    return refuse("GRANT_REVOKED", "the grant, or one that it was delegated from, was superseded");
  return undefined;
}

function findUnreached(grant: Grant, { capability, target }: AccessRequest): Refusal | undefined {
  if (!grant.capabilities.includes(capability)) return denied("the grant lacks the capability", { capability });
  if (target === "any") return undefined;
  const parts = parseResourceUri(target.resource) ?? [];
  const below = target.everythingBelow === true;
  const reaches = grant.resources.some((each) => {
    const region = parseResource(each);
    return region !== undefined && isInside({ parts, itself: !below, below }, region);
  });
  const { resource } = target;
  return reaches ? undefined : denied("the grant does not reach the resource", { capability, resource });
}

function findUnmet(grant: Grant, { target }: AccessRequest): Refusal | undefined {
  if (target === "any") return undefined;
  const constraint = findBrokenConstraint(grant.constraints, target.facts, target.later);
  if (constraint === undefined) return undefined;
  if (target.unnamed?.includes(constraint) === true) return denied("a constraint on the workload does not hold");
  return denied(`the constraint ${constraint} does not hold`, { constraint });
}

/** A chain whose child is within its parent holds wherever the child does; what is left to look at is each link. */
function findBrokenLink(authorization: Authorization): Refusal | undefined {
  const { grant, chain, request } = authorization;
  const fault = findChainFault(grant, chain);
  if (fault !== undefined) return fault;
  const { subject: _own, ...inherited } = request;
  let child = grant;
  for (const parent of chain) {
    const outside = findOutside(child, parent);
    if (outside !== undefined) return outside;
    const refusal = findOwnFault(parent, { ...authorization, request: inherited });
    if (refusal !== undefined)
      return refuse(
        "GRANT_DELEGATION_INVALID",
        `a grant that it was delegated from does not allow this: ${refusal.message}`,
        {
          grantId: parent.id,
          code: refusal.code,
        },
      );
    child = parent;
  }
  return undefined;
}

/** What one grant says to a request, its ancestors left aside. */
function findOwnFault(grant: Grant, authorization: Authorization): Refusal | undefined {
  const { request } = authorization;
  return (
    findForeign(grant, request) ??
    findMalformed(grant, request) ??
    findUntimely(grant, authorization) ??
    findUnreached(grant, request) ??
    findUnmet(grant, request)
  );
}

/** Whether a grant still stands, whatever it may be used for: its time, and that nothing above it was revoked. */
export const findFallen = (
  authorization: AuthorizationInstant & Pick<Authorization, "grant" | "chain">,
): Refusal | undefined =>
  findUntimely(authorization.grant, authorization) ??
  findRevoked([authorization.grant, ...authorization.chain], authorization.revocations);

/**
 * Decides whether a verified grant lets its bearer do something: the checks of contract 4.2 after the signature's, in
 * its order; the first that fails is the answer.
 */
export function decideAuthorization(authorization: Authorization): AuthorizationDecision {
  const { grant, request } = authorization;
  const refusal =
    findForeign(grant, request) ??
    findMalformed(grant, request) ??
    findFallen(authorization) ??
    findUnreached(grant, request) ??
    findUnmet(grant, request) ??
    findBrokenLink(authorization);
  return refusal === undefined ? { allowed: true } : { allowed: false, refusal };
}
