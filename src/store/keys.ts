import { sha256Hex, spreadHash } from "../base/hash.ts";

/**
 * Key layout (contract 5.2). Tokens are encoded injectively into `[A-Za-z0-9_-]` and `=XX` for any other UTF-8 byte, so
 * that no identifier can widen a subject or meet another.
 */
const plain = /^[A-Za-z0-9_-]+$/;

/** Encodes one token: the same text always gives the same token, different texts never do. The text is not empty. */
export function encodeToken(text: string): string {
  if (plain.test(text)) return text;
  let token = "";
  for (const byte of new TextEncoder().encode(text)) {
    const character = String.fromCharCode(byte);
    token += plain.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return token;
}

/** Undoes {@link encodeToken}; `undefined` when the token is not one that it makes. */
export function decodeToken(token: string): string | undefined {
  if (plain.test(token)) return token;
  const bytes: number[] = [];
  for (let index = 0; index < token.length; index++) {
    const character = token.charAt(index);
    if (plain.test(character)) bytes.push(character.charCodeAt(0));
    else {
      const digits = token.slice(index + 1, index + 3);
      if (character !== "=" || !/^[0-9A-F]{2}$/.test(digits)) return undefined;
      bytes.push(Number.parseInt(digits, 16));
      index += 2;
    }
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
    return text.length > 0 && encodeToken(text) === token ? text : undefined;
  } catch {
    return undefined;
  }
}

export interface Scope {
  readonly tenantId: string;
  readonly applicationId: string;
}

const scoped = (family: string, scope: Scope, ...rest: string[]): string =>
  [family, encodeToken(scope.tenantId), encodeToken(scope.applicationId), ...rest].join(".");

/** The record of a workload. */
export const workloadKey = (scope: Scope, workloadId: string): string => scoped("w", scope, encodeToken(workloadId));

/** Matches a workload whatever its tenant and application: for callers that know the id alone. */
export const workloadPattern = (workloadId: string): string => `w.*.*.${encodeToken(workloadId)}`;

/** A payload kept beside a record: `slot` tells which one. */
export const payloadKey = (scope: Scope, workloadId: string, slot: string): string =>
  scoped("b", scope, encodeToken(workloadId), encodeToken(slot));

/** The reservation of a caller's result id. Hashed, since three long identifiers would not fit a subject. */
export const resultKey = (scope: Scope, resultId: string): string => scoped("x", scope, sha256Hex(resultId));

/** What one claimNext request took, so that its repeat gets the same. Vanishes by itself. */
export const claimRequestKey = (scope: Scope, operationId: string): string =>
  scoped("q", scope, encodeToken(operationId));

/** The heartbeat of an authority node. */
export const nodeKey = (nodeId: string): string => `n.${encodeToken(nodeId)}`;

/** Format version, minimum reader and writer, number of shards. */
export const META_KEY = "m.meta";

/** Which shard holds all records of a tenant's application. */
export const shardOf = (scope: Scope, shards: number): number =>
  shards === 1 ? 0 : spreadHash(JSON.stringify([scope.tenantId, scope.applicationId])) % shards;
