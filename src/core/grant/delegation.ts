import { refuse, type Refusal } from "../errors.ts";
import { sameSubject } from "../subject.ts";
import { findLooserConstraint } from "./constraints.ts";
import { CHAIN_LENGTH_MAX, type Grant } from "./grant.ts";
import { isInside, parseResource } from "./resource-uri.ts";

const invalid = (message: string, grant: Grant): Refusal =>
  refuse("GRANT_DELEGATION_INVALID", message, { grantId: grant.id });

function resourcesInside(child: Grant, parent: Grant): boolean {
  const outer = parent.resources.flatMap((resource) => parseResource(resource) ?? []);
  return child.resources.every((resource) => {
    const inner = parseResource(resource);
    return inner !== undefined && outer.some((region) => isInside(inner, region));
  });
}

/** Why a grant is not within the one that it was delegated from (contract 4.2); `undefined` when it is. */
export function findOutside(child: Grant, parent: Grant): Refusal | undefined {
  if (child.parentGrant !== parent.id) return invalid("the grant names another parent", child);
  if (child.id === parent.id) return invalid("the grant bears its parent's id", child);
  if (!sameSubject(child.issuer, parent.subject))
    return invalid("the issuer is not the subject of the parent grant", child);
  if (child.tenantId !== parent.tenantId || child.applicationId !== parent.applicationId)
    return invalid("the grant is of another tenant or application than its parent", child);
  if (child.issuedAt < parent.issuedAt || child.expiresAt > parent.expiresAt)
    return invalid("the grant is not within its parent's time", child);
  if (!child.capabilities.every((capability) => parent.capabilities.includes(capability)))
    return invalid("the grant has a capability that its parent lacks", child);
  if (!resourcesInside(child, parent)) return invalid("the grant has a resource outside its parent's", child);
  const looser = findLooserConstraint(child.constraints, parent.constraints);
  return looser === undefined ? undefined : invalid(`the constraint ${looser} is looser than the parent's`, child);
}

/**
 * What is wrong with the shape of a chain: it must lead from the grant, parent by parent, to one that has none, be at
 * most {@link CHAIN_LENGTH_MAX} long, and hold no id twice (contract 4.2).
 */
export function findChainFault(grant: Grant, ancestors: readonly Grant[]): Refusal | undefined {
  const chain = [grant, ...ancestors];
  if (chain.length > CHAIN_LENGTH_MAX) return invalid(`the chain has more than ${CHAIN_LENGTH_MAX} grants`, grant);
  if (new Set(chain.map(({ id }) => id)).size < chain.length) return invalid("a grant comes twice in the chain", grant);
  const last = chain.at(-1);
  return last?.parentGrant === undefined ? undefined : invalid("the parent of a grant is missing", last);
}
