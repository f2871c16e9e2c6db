import { createHash } from "node:crypto";

/** SHA-256 of the UTF-8 bytes of a text, as 64 lower-case hex digits. */
export const sha256Hex = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");

/** A 32-bit FNV-1a hash: for spreading work, never for identity. */
export function spreadHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash ^= text.charCodeAt(index);
    hash = Math.imul(hash, 0x01000193);
  }
  return hash >>> 0;
}
