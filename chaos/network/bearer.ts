import type { Bearer } from "../history.ts";

/** What a token says of itself, without any proof; nothing when it says nothing. */
export function bearerOf(token: string | undefined): Bearer | undefined {
  const [, payload] = token?.split(".") ?? [];
  if (payload === undefined) return undefined;
  try {
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as {
      readonly [name: string]: string;
    };
    const { tenantId = "", applicationId = "", jti: grantId = "", sub: subject = "" } = claims;
    return { tenantId, applicationId, grantId, subject };
  } catch {
    return undefined;
  }
}
