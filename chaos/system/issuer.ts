import { createPrivateKey, randomUUID, sign, type JsonWebKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What a grant is to say; it reaches the whole application. */
export interface Wanted {
  readonly tenantId: string;
  readonly applicationId: string;
  /** `kind:id`. */
  readonly subject: string;
  readonly capabilities: readonly string[];
  /** Default: one that no other grant has. */
  readonly grantId?: string;
}

/** In an issuer's folder: the private key that is signed by now. */
export const CURRENT_KEY = "current.json";
const LENGTH_S = 3_600;

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/**
 * Signs grants by whatever key is the current one in a folder. It is written from the contract alone (4.1): what the
 * product's own command signs, the product would take even if both were wrong.
 */
export class Issuer {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** A grant as a token. */
  issue({ tenantId, applicationId, subject, capabilities, grantId }: Wanted): string {
    const jwk = JSON.parse(readFileSync(join(this.#folder, CURRENT_KEY), "utf8")) as JsonWebKey & { kid: string };
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      contractVersion: 1,
      jti: grantId ?? `grant-${randomUUID()}`,
      iss: "service:issuer",
      sub: subject,
      tenantId,
      applicationId,
      capabilities,
      resources: [{ kind: "APPLICATION", uri: `flow://${applicationId}` }],
      iat: now,
      exp: now + LENGTH_S,
      revision: 1,
    };
    const signed = `${part({ alg: "EdDSA", typ: "mandate-grant+jwt", kid: jwk.kid })}.${part(claims)}`;
    const key = createPrivateKey({ key: jwk, format: "jwk" });
    return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`;
  }
}
