import { randomUUID } from "node:crypto";
import type { Subject } from "../../../src/core/subject.ts";
import type { Issuer } from "../../system/issuer.ts";
import type { Tenant } from "../../system/tenants.ts";

/** Somebody who calls under a grant. */
export interface Holder {
  readonly subject: Subject;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly grantId: string;
  readonly token: string;
}

/** What each kind of caller is let do. */
const rights = {
  requester: ["workload:create", "workload:read", "workload:cancel", "workload:retry"],
  approver: ["workload:read", "workload:approve"],
  warden: ["authorization:revoke"],
  worker: ["workload:claim", "workload:execute", "worker:capability:raw"],
} as const;

/** Work that is known to be there. */
export interface Admitted {
  readonly workloadId: string;
  readonly applicationId: string;
  readonly inputHash: string;
  /** At which it was there, as the answer said. */
  readonly revision: string | undefined;
}

/** One of the two tenants: whom it lets do what, and what it has admitted lately. */
export class Party {
  readonly tenantId: string;
  readonly mark: string;
  readonly #issuer: Issuer;
  readonly #admitted: Admitted[] = [];
  #keys = 0;

  constructor({ tenantId, mark }: Tenant, issuer: Issuer) {
    this.tenantId = tenantId;
    this.mark = mark;
    this.#issuer = issuer;
  }

  /** A key that the other tenant uses, too. */
  key(): string {
    return `key-${++this.#keys}`;
  }

  /** Somebody with a grant of his own, by the key of now. */
  holder(role: keyof typeof rights, subject: Subject, applicationId: string): Holder {
    const grantId = `grant-${randomUUID()}`;
    const { tenantId } = this;
    const token = this.#issuer.issue({
      ...{ tenantId, applicationId, grantId },
      subject: `${subject.kind}:${subject.id}`,
      capabilities: rights[role],
    });
    return { subject, tenantId, applicationId, grantId, token };
  }

  remember(admitted: Admitted): void {
    this.#admitted.push(admitted);
    if (this.#admitted.length > 50) this.#admitted.shift();
  }

  get admitted(): readonly Admitted[] {
    return this.#admitted;
  }
}
