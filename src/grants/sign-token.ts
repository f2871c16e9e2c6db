import { calculateJwkThumbprint, CompactSign, exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import { randomBytes } from "node:crypto";
import { utf8 } from "../base/bytes.ts";
import { err, ok, type Result } from "../base/result.ts";
import { refuse, type Refusal } from "../core/errors.ts";
import { findChainFault, findOutside } from "../core/grant/delegation.ts";
import type { Grant } from "../core/grant/grant.ts";
import { parseGrantClaims, renderGrantClaims, type GrantClaims } from "../wire/grant-claims.ts";
import { readPublicJwk, type PublicKey } from "./public-keys.ts";
import { GRANT_ALGORITHM, GRANT_TYPE, TOKEN_BYTES_MAX } from "./token-format.ts";
import { chainTokensOf, type SignedGrant } from "./verify-token.ts";

/** A key that signs grants. */
export interface SigningKey {
  readonly publicKey: PublicKey;
  readonly sign: (claims: { readonly [name: string]: unknown }) => Promise<string>;
}

/** Makes a private Ed25519 key, named by its thumbprint (RFC 7638). */
export async function makePrivateJwk(): Promise<JWK> {
  const { privateKey } = await generateKeyPair(GRANT_ALGORITHM, { crv: "Ed25519", extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: GRANT_ALGORITHM, use: "sig" };
}

/** Reads a private JWK. A reason never holds the key. */
export async function readSigningKey(value: unknown): Promise<Result<SigningKey, string>> {
  const read = await readPublicJwk(value);
  if (!read.ok) return read;
  const { d } = value as { readonly d?: unknown };
  if (typeof d !== "string") return err("has no private part");
  try {
    const { kid, jwk } = read.value;
    const key = await importJWK({ ...jwk, d }, GRANT_ALGORITHM);
    const sign = (claims: object): Promise<string> =>
      new CompactSign(utf8(JSON.stringify(claims)))
        .setProtectedHeader({ alg: GRANT_ALGORITHM, kid, typ: GRANT_TYPE })
        .sign(key);
    return ok({ publicKey: read.value, sign });
  } catch {
    return err("has a private part that does not fit");
  }
}

/** An id that no other grant has. */
export const makeGrantId = (): string => `grant_${randomBytes(12).toString("hex")}`;

async function sign(claims: GrantClaims, key: SigningKey): Promise<Result<string, Refusal>> {
  const rendered = renderGrantClaims(claims);
  const checked = parseGrantClaims(rendered);
  if (!checked.ok) return checked;
  const token = await key.sign(rendered);
  return token.length > TOKEN_BYTES_MAX
    ? err(refuse("GRANT_INVALID", `the grant would have more than ${TOKEN_BYTES_MAX} bytes`))
    : ok(token);
}

/** Signs a grant that stems from no other. Refused when a node would refuse it for its content or its size. */
export const issueGrant = (grant: Grant, key: SigningKey): Promise<Result<string, Refusal>> => sign({ grant }, key);

/** Signs a grant that is delegated from another, whose token was verified. Refused when it is not within its parent (contract 4.2). */
export async function delegateGrant(
  grant: Grant,
  how: { readonly key: SigningKey; readonly parent: SignedGrant; readonly parentToken: string },
): Promise<Result<string, Refusal>> {
  const { key, parent, parentToken } = how;
  const refusal = findChainFault(grant, [parent.grant, ...parent.chain]) ?? findOutside(grant, parent.grant);
  if (refusal !== undefined) return err(refusal);
  const own = await sign({ grant }, key);
  return own.ok ? sign({ grant, chain: [own.value, ...chainTokensOf(parentToken)] }, key) : own;
}
