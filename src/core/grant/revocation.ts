import type { Subject } from "../subject.ts";
import type { Grant } from "./grant.ts";

/** What a revocation ends, for good (contract 4.2). */
export type RevocationTarget =
  /** One grant; with a revision, only what was issued under the id before it: those are superseded. */
  | { readonly kind: "grant"; readonly grantId: string; readonly belowRevision?: number | undefined }
  /** Every grant to a subject in the tenant's application. */
  | { readonly kind: "subject"; readonly subject: Subject }
  /** Every grant of the tenant's application. */
  | { readonly kind: "application" }
  /** Every grant of the tenant, in all of its applications. */
  | { readonly kind: "tenant" };

/** A revocation as it is committed. It is never taken back. */
export interface Revocation {
  readonly contractVersion: 1;
  readonly tenantId: string;
  /** The application; for a tenant the one that it was revoked from. */
  readonly applicationId: string;
  readonly target: RevocationTarget;
  readonly revokedBy: Subject;
  /** The grant that it was revoked under. */
  readonly grantId: string;
  /** Epoch ms. */
  readonly revokedAt: number;
  readonly reason?: string;
}

/** What stands for a revocation that can't be read: everything of its application is ended. */
export const revocationOfAll = (scope: { readonly tenantId: string; readonly applicationId: string }): Revocation => ({
  contractVersion: 1,
  ...scope,
  target: { kind: "application" },
  revokedBy: { kind: "service", id: "unreadable" },
  grantId: "unreadable",
  revokedAt: 0,
});

/** What a revocation knows a grant by, within its tenant and application. */
export interface GrantName {
  readonly grantId: string;
  readonly subject: Subject;
  readonly revision: number;
}

/** What is known of a grant beside what it says itself. */
export type GrantFate = "revoked" | "superseded";

/** What a node knows of revocations: asked at every call, so that one takes effect at the next (contract 4.2). */
export interface Revocations {
  fateOf(grant: Pick<Grant, "id" | "subject" | "tenantId" | "applicationId" | "revision">): GrantFate | undefined;
}

/** Nothing is revoked. */
export const noRevocations: Revocations = { fateOf: () => undefined };

/** Names a target within its tenant's application; of a tenant, within all of them. */
export function targetNameOf(target: RevocationTarget): string {
  switch (target.kind) {
    case "grant":
      return JSON.stringify(["grant", target.grantId]);
    case "subject":
      return JSON.stringify(["subject", target.subject.kind, target.subject.id]);
    case "application":
    case "tenant":
      return JSON.stringify([target.kind]);
  }
}

const scopeName = (tenantId: string, rest: readonly string[]): string => JSON.stringify([tenantId, ...rest]);

const nameOf = ({ tenantId, applicationId, target }: Revocation): string =>
  target.kind === "tenant" ? scopeName(tenantId, []) : scopeName(tenantId, [applicationId, targetNameOf(target)]);

/** Revocations by what they end. */
export class RevocationSet implements Revocations {
  /** What is ended → what is superseded below this revision; all of it when there is none. */
  readonly #byName = new Map<string, number>();

  #changes = 0;

  get size(): number {
    return this.#byName.size;
  }

  /** Grows with every revocation: what was found out before may no longer hold. */
  get changes(): number {
    return this.#changes;
  }

  add(revocation: Revocation): void {
    this.#changes += 1;
    const { target } = revocation;
    const name = nameOf(revocation);
    const below = (target.kind === "grant" ? target.belowRevision : undefined) ?? Number.POSITIVE_INFINITY;
    this.#byName.set(name, Math.max(below, this.#byName.get(name) ?? 0));
  }

  fateOf({
    id,
    subject,
    tenantId,
    applicationId,
    revision,
  }: Parameters<Revocations["fateOf"]>[0]): GrantFate | undefined {
    const isRevoked = (target: RevocationTarget): boolean =>
      this.#byName.has(scopeName(tenantId, [applicationId, targetNameOf(target)]));
    if (this.#byName.size === 0) return undefined;
    const below = this.#byName.get(scopeName(tenantId, [applicationId, targetNameOf({ kind: "grant", grantId: id })]));
    const all = below === Number.POSITIVE_INFINITY || this.#byName.has(scopeName(tenantId, []));
    if (all || isRevoked({ kind: "subject", subject }) || isRevoked({ kind: "application" })) return "revoked";
    return below !== undefined && revision < below ? "superseded" : undefined;
  }
}
