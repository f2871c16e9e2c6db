import { compactVerify } from "jose";
import { isUtf8 } from "node:buffer";
import { canonicalJson, type Json } from "../base/json.ts";
import { err, ok, type Result } from "../base/result.ts";
import { refuse, type Refusal } from "../core/errors.ts";
import type { Grant } from "../core/grant/grant.ts";
import { parseGrantClaims, type GrantClaims } from "../wire/grant-claims.ts";
import { hasDuplicateMember } from "./duplicate-members.ts";
import type { PublicKey } from "./public-keys.ts";
import { GRANT_ALGORITHM, GRANT_TYPE, TOKEN_BYTES_MAX } from "./token-format.ts";

/** A grant whose signature, and whose ancestors' signatures, are good. Whether it allows anything is for the rules to say. */
export interface SignedGrant {
  readonly grant: Grant;
  /** From the parent to the first. */
  readonly chain: readonly Grant[];
}

export type FindKey = (kid: string) => PublicKey | undefined;

const invalid = (message: string): Refusal => refuse("GRANT_INVALID", message);

const compact = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** A part of a token as a JSON object in which no member comes twice. */
function readPart(part: string): { readonly [name: string]: unknown } | undefined {
  try {
    const bytes = Buffer.from(part, "base64url");
    // Only one text stands for these bytes, so that one token has one digest.
    if (!isUtf8(bytes) || bytes.toString("base64url") !== part) return undefined;
    const text = bytes.toString("utf8");
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value) || hasDuplicateMember(text))
      return undefined;
    return value as { readonly [name: string]: unknown };
  } catch {
    return undefined;
  }
}

/** The kid of a header that says what a grant's must, and no more. */
function readHeader(part: string): Result<string, Refusal> {
  const header = readPart(part);
  if (header === undefined) return err(invalid("the grant's header is not good"));
  const { alg, typ, kid, ...rest } = header;
  if (alg !== GRANT_ALGORITHM) return err(invalid(`the grant's algorithm is not ${GRANT_ALGORITHM}`));
  if (typ !== GRANT_TYPE) return err(invalid(`the grant's type is not ${GRANT_TYPE}`));
  if (typeof kid !== "string") return err(invalid("the grant does not name its key"));
  if (Object.keys(rest).length > 0) return err(invalid("the grant's header has members that it must not have"));
  return ok(kid);
}

/** Reads one token; without keys its signature is not looked at. */
async function verifyOne(token: string, findKey: FindKey | undefined): Promise<Result<GrantClaims, Refusal>> {
  if (token.length > TOKEN_BYTES_MAX) return err(invalid(`the grant has more than ${TOKEN_BYTES_MAX} bytes`));
  if (!compact.test(token)) return err(invalid("the grant is no compact JWS"));
  const [header = "", payload = "", signature = ""] = token.split(".");
  const kid = readHeader(header);
  if (!kid.ok) return kid;
  const key = findKey?.(kid.value);
  if (findKey !== undefined && key === undefined) return err(invalid("the grant's key is not known"));
  if (Buffer.from(signature, "base64url").toString("base64url") !== signature)
    return err(invalid("the grant's signature is not good"));
  try {
    if (key !== undefined) await compactVerify(token, key.key, { algorithms: [GRANT_ALGORITHM] });
  } catch {
    return err(invalid("the grant's signature is not good"));
  }
  const claims = readPart(payload);
  return claims === undefined ? err(invalid("the grant's content is not good")) : parseGrantClaims(claims);
}

const sayTheSame = (left: Grant, right: Grant): boolean =>
  canonicalJson({ ...left } as unknown as Json) === canonicalJson({ ...right } as unknown as Json);

/** The grants of a chain, each by a token of its own; the first must be the grant that carries them. */
async function verifyChain(
  grant: Grant,
  tokens: readonly string[],
  findKey: FindKey | undefined,
): Promise<Result<SignedGrant, Refusal>> {
  const grants: Grant[] = [];
  for (const token of tokens) {
    const read = await verifyOne(token, findKey);
    if (!read.ok) return read;
    if (read.value.chain !== undefined) return err(invalid("a grant within a chain carries a chain"));
    grants.push(read.value.grant);
  }
  const [own, ...chain] = grants;
  if (own === undefined || !sayTheSame(own, grant)) return err(invalid("the chain does not begin with the grant"));
  return ok({ grant, chain });
}

/**
 * Reads a token, and those of its chain within it, each signed by a key that is known. Whatever the text is, the answer
 * is a grant or GRANT_INVALID. Whether the chain is whole is for the rules to say.
 */
export const verifyToken = (token: string, findKey: FindKey): Promise<Result<SignedGrant, Refusal>> =>
  readChain(token, findKey);

/** What a token says, signed by whomever: for people to look at, and never to act on. */
export const readTokenUnverified = (token: string): Promise<Result<SignedGrant, Refusal>> =>
  readChain(token, undefined);

async function readChain(token: string, findKey: FindKey | undefined): Promise<Result<SignedGrant, Refusal>> {
  const read = await verifyOne(token, findKey);
  if (!read.ok) return read;
  const { grant, chain } = read.value;
  return chain === undefined ? ok({ grant, chain: [] }) : verifyChain(grant, chain, findKey);
}

/** The tokens of a chain, one grant each, of a token that was verified. */
export function chainTokensOf(token: string): readonly string[] {
  const claims = parseGrantClaims(readPart(token.split(".")[1] ?? ""));
  return (claims.ok ? claims.value.chain : undefined) ?? [token];
}
