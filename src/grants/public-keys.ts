import { isMembers } from "../base/members.ts";
import { calculateJwkThumbprint, importJWK, type CryptoKey, type JWK } from "jose";
import { isUtf8 } from "node:buffer";
import { err, ok, type Result } from "../base/result.ts";
import { GRANT_ALGORITHM } from "./token-format.ts";

/** A key that verifies grants. */
export interface PublicKey {
  readonly kid: string;
  /** As it is published: never with the private part. */
  readonly jwk: JWK;
  readonly key: CryptoKey;
}

const KEY_BYTES = 32;

/** Whether a member holds the 32 bytes of an Ed25519 key. */
const isKeyText = (value: unknown): value is string =>
  typeof value === "string" && /^[\w-]{43}$/.test(value) && Buffer.from(value, "base64url").length === KEY_BYTES;

/** Reads one Ed25519 key of a JWK, private or public. A reason never holds what the file holds. */
export async function readPublicJwk(value: unknown): Promise<Result<PublicKey, string>> {
  if (!isMembers(value)) return err("is no JWK");
  const { kty, crv, x, kid, alg, use } = value;
  if (kty !== "OKP" || crv !== "Ed25519" || !isKeyText(x)) return err("is no Ed25519 key (kty OKP, crv Ed25519, x)");
  if (alg !== undefined && alg !== GRANT_ALGORITHM) return err(`has another alg than ${GRANT_ALGORITHM}`);
  if (use !== undefined && use !== "sig") return err("has another use than sig");
  if (kid !== undefined && (typeof kid !== "string" || !/^[\w.:@-]{1,128}$/.test(kid)))
    return err("has a kid that is not 1 to 128 of A-Z a-z 0-9 _ . : @ -");
  try {
    const name = kid ?? (await calculateJwkThumbprint({ kty, crv, x }));
    const jwk = { kty, crv, x, kid: name, alg: GRANT_ALGORITHM, use: "sig" };
    const key = await importJWK(jwk, GRANT_ALGORITHM);
    return "type" in key ? ok({ kid: name, jwk, key }) : err("is no Ed25519 key");
  } catch {
    return err("is no Ed25519 key that can be used");
  }
}

/** Reads a key file: one JWK, or a JWKS with any number of them. */
export async function readKeyFile(bytes: Uint8Array): Promise<Result<readonly PublicKey[], string>> {
  let value: unknown;
  try {
    if (!isUtf8(bytes)) return err("is not UTF-8");
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return err("is not JSON");
  }
  const listed: unknown = isMembers(value) && "keys" in value ? value["keys"] : [value];
  if (!Array.isArray(listed)) return err("has keys that are no list");
  const keys: PublicKey[] = [];
  for (const each of listed as readonly unknown[]) {
    const read = await readPublicJwk(each);
    if (!read.ok) return read;
    keys.push(read.value);
  }
  return ok(keys);
}

/** The keys as they are published (RFC 7517). */
export const renderJwks = (keys: readonly PublicKey[]): string => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });

/** The same keys by their kid; the kid that stands for two different ones is refused. */
export function keysByKid(keys: readonly PublicKey[]): Result<ReadonlyMap<string, PublicKey>, string> {
  const byKid = new Map<string, PublicKey>();
  for (const key of keys) {
    const known = byKid.get(key.kid);
    if (known !== undefined && known.jwk.x !== key.jwk.x) return err(`the kid ${key.kid} names two different keys`);
    byKid.set(key.kid, key);
  }
  return ok(byKid);
}
