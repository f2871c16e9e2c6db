import { sortedSet } from "../base/text-order.ts";
import { z } from "zod";
import { err, ok, type Result } from "../base/result.ts";
import { refuse, type Refusal } from "../core/errors.ts";
import {
  CHAIN_LENGTH_MAX,
  grantStatuses,
  resourceKinds,
  type Grant,
  type GrantConstraints,
} from "../core/grant/grant.ts";
import { isNetwork } from "../core/grant/network.ts";
import { parseResource } from "../core/grant/resource-uri.ts";
import type { Subject } from "../core/subject.ts";
import { SET_SIZE_MAX } from "./limits.ts";
import { parseShape } from "./parse.ts";
import { identifier, identifiers, subject, whole } from "./shapes.ts";

/** A grant as the claims of a token (contract 4.1): `jti, iss, sub, iat, exp` for id, issuer, subject and times, in seconds. */

const attributes = z
  .record(identifier, identifier)
  .refine((value) => Object.keys(value).length <= SET_SIZE_MAX, `has more than ${SET_SIZE_MAX} members`);

/** A constraint that is not known can't be held, so it is refused. */
export const grantConstraints = z.strictObject({
  environments: identifiers.optional(),
  workerClass: identifier.optional(),
  network: identifier.refine(isNetwork, "is no address and no block of addresses").optional(),
  workloadId: identifier.optional(),
  connectionEnabled: z.boolean().optional(),
  minimumSchemaVersion: whole(0).optional(),
  subjectAttributes: attributes.optional(),
  resourceAttributes: attributes.optional(),
  contextAttributes: attributes.optional(),
});

export const grantResource = z
  .strictObject({ kind: z.enum(resourceKinds), uri: z.string().max(2048) })
  .refine((resource) => parseResource(resource) !== undefined, "is no resource: the URI is malformed for its kind");

/** Most seconds whose milliseconds are a safe whole number. */
const SECONDS_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 1000);

const seconds = z.number().min(0).max(SECONDS_MAX);

/** `kind:id` as a subject; everything after the first colon is the id. */
const subjectText = z.string().transform((text, context): Subject => {
  const colon = text.indexOf(":");
  const parsed = subject.safeParse({ kind: text.slice(0, Math.max(colon, 0)), id: text.slice(colon + 1) });
  if (parsed.success) return parsed.data;
  context.issues.push({ code: "custom", message: "is not kind:id", input: undefined });
  return z.NEVER;
});

const claimsShape = z.strictObject({
  contractVersion: z.literal(1),
  jti: identifier,
  iss: subjectText,
  sub: subjectText,
  tenantId: identifier,
  applicationId: identifier,
  capabilities: identifiers,
  resources: z.array(grantResource).max(SET_SIZE_MAX),
  constraints: grantConstraints.default({}),
  iat: seconds,
  exp: seconds,
  parentGrant: identifier.optional(),
  /**
   * Of a delegated grant: its own token and those of its ancestors, each without this claim, so that each can be verified.
   * Listed side by side, since one within the other would grow by a third with every link.
   */
  chain: z.array(z.string()).min(2).max(CHAIN_LENGTH_MAX).optional(),
  revision: whole(0),
  status: z.enum(grantStatuses).default("ACTIVE"),
});

/** A grant as a token says it. */
export interface GrantClaims {
  readonly grant: Grant;
  /** Tokens that say one grant each: this one, its parent, and so on to the first. */
  readonly chain?: readonly string[];
}

function definedOnly(constraints: z.output<typeof grantConstraints>): GrantConstraints {
  return Object.fromEntries(Object.entries(constraints).filter(([, value]) => value !== undefined));
}

const toMs = (value: number): number => Math.round(value * 1000);
const invalid = (message: string): Refusal => refuse("GRANT_INVALID", message);

/** Reads claims. A refusal is GRANT_INVALID and names what is wrong, without its value. */
export function parseGrantClaims(value: unknown): Result<GrantClaims, Refusal> {
  const parsed = parseShape(claimsShape, value);
  if (!parsed.ok) return err(invalid(`the grant's content is not good: ${parsed.error.message}`));
  const { jti, iss, sub, iat, exp, chain, parentGrant, constraints, capabilities, ...rest } = parsed.value;
  if (toMs(exp) <= toMs(iat)) return err(invalid("the grant expires before it is issued"));
  if (chain !== undefined && parentGrant === undefined)
    return err(invalid("the grant carries a chain and names no parent"));
  const grant: Grant = {
    ...rest,
    id: jti,
    issuer: iss,
    subject: sub,
    capabilities: sortedSet(capabilities),
    constraints: definedOnly(constraints),
    issuedAt: toMs(iat),
    expiresAt: toMs(exp),
    ...(parentGrant === undefined ? {} : { parentGrant }),
  };
  return ok(chain === undefined ? { grant } : { grant, chain });
}

const subjectName = ({ kind, id }: Subject): string => `${kind}:${id}`;

/** The claims of a grant: {@link parseGrantClaims} the other way round. */
export function renderGrantClaims({ grant, chain }: GrantClaims): { readonly [name: string]: unknown } {
  const { id, issuer, subject: bearer, issuedAt, expiresAt, ...rest } = grant;
  return {
    ...rest,
    jti: id,
    iss: subjectName(issuer),
    sub: subjectName(bearer),
    iat: issuedAt / 1000,
    exp: expiresAt / 1000,
    ...(chain === undefined ? {} : { chain }),
  };
}
