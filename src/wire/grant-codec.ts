import { z } from "zod";
import type { Revocation } from "../core/grant/revocation.ts";
import { packValue, unpackValue } from "./codec.ts";
import { identifier, subject, text, whole } from "./shapes.ts";
import { FORMAT_VERSION } from "./version.ts";

/** What is to be revoked (contract 4.2). */
const revocationTarget = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("grant"), grantId: identifier, belowRevision: whole(1).optional() }),
  z.strictObject({ kind: z.literal("subject"), subject }),
  z.strictObject({ kind: z.literal("application") }),
  z.strictObject({ kind: z.literal("tenant") }),
]);

/** Arguments of the call that revokes. */
export const revokeRequest = z.strictObject({
  tenantId: identifier,
  applicationId: identifier,
  target: revocationTarget,
  reason: text.optional(),
  requestId: identifier.optional(),
});

/** Members that a newer program added are ignored: what is revoked stays revoked. */
const storedRevocation = z.object({
  contractVersion: z.literal(1),
  tenantId: identifier,
  applicationId: identifier,
  target: revocationTarget,
  revokedBy: subject,
  grantId: identifier,
  revokedAt: whole(0),
  reason: text.optional(),
});

/** A revocation as the store has it. */
export const encodeRevocation = (revocation: Revocation): Uint8Array => packValue({ v: FORMAT_VERSION, ...revocation });

/** Undoes {@link encodeRevocation}; `undefined` when the bytes hold none that this program understands. */
export function decodeRevocation(bytes: Uint8Array): Revocation | undefined {
  try {
    const parsed = storedRevocation.safeParse(unpackValue(bytes));
    return parsed.success ? (parsed.data as Revocation) : undefined;
  } catch {
    return undefined;
  }
}
