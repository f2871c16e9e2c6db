import type { Revocation } from "../../src/core/grant/revocation.ts";
import type { Bearer, CallLine, EntryLine } from "../history.ts";
import { subjectText, type Fields } from "./fields.ts";

/** Whose a thing is, as its grant says. */
export type Holding = Pick<Bearer, "tenantId" | "applicationId" | "grantId" | "subject">;

/** One commit that somebody made under a grant. */
export interface GrantedCommit extends Holding {
  readonly shard: number;
  readonly revision: number;
  readonly key: string;
  /** The store's clock when it was written, epoch ms. */
  readonly storedAt: number;
}

/** What a revocation ended, and since when. */
export interface Ended {
  readonly revocation: Revocation;
  readonly revision: number;
  readonly storedAt: number;
}

/** Something that a caller was told that bears another tenant's mark. */
export interface Leak {
  readonly call: number;
  readonly caller: string;
  readonly name: string;
  readonly tenantId: string;
  /** Whose mark it is. */
  readonly of: string;
}

/** What a run in secure mode leaves for its own guarantees. */
export interface GrantFacts {
  readonly ended: readonly Ended[];
  readonly commits: readonly GrantedCommit[];
  /** How many answers and refusals were searched for marks, and in how many stood the caller's own. */
  readonly searched: number;
  readonly atHome: number;
  readonly leaks: readonly Leak[];
}

/** Whether a revocation ends a grant. A grant below a revision alone is not looked at: the traffic issues none anew. */
export function isEndedBy({ revocation }: Pick<Ended, "revocation">, holding: Holding): boolean {
  const { tenantId, applicationId, target } = revocation;
  if (tenantId !== holding.tenantId) return false;
  if (target.kind === "tenant") return true;
  if (applicationId !== holding.applicationId) return false;
  switch (target.kind) {
    case "application":
      return true;
    case "grant":
      return target.belowRevision === undefined && target.grantId === holding.grantId;
    case "subject":
      return `${target.subject.kind}:${target.subject.id}` === holding.subject;
  }
}

/** Names what a target ends, to be compared. */
export const targetText = (target: Fields): string =>
  JSON.stringify([target["kind"], target["grantId"], subjectText(target["subject"])]);

/** Takes in what was done under grants, line by line. */
export class GrantBook implements GrantFacts {
  readonly ended: Ended[] = [];
  readonly commits: GrantedCommit[] = [];
  readonly leaks: Leak[] = [];
  searched = 0;
  atHome = 0;
  /** The marks of the tenants, once they are known. */
  marks: readonly (readonly [tenantId: string, mark: string])[] = [];

  addEntry({ shard, revision, key, at, provenance, revocation }: EntryLine): void {
    if (revocation !== undefined) this.ended.push({ revocation, revision, storedAt: at });
    const { grant, subject, tenant, application } = provenance;
    if (grant === undefined || subject === undefined || tenant === undefined || application === undefined) return;
    const holding = { tenantId: tenant, applicationId: application, grantId: grant, subject };
    this.commits.push({ ...holding, shard, revision, key, storedAt: at });
  }

  addCall({ id, caller, call, bearer, outcome }: CallLine): void {
    if (bearer === undefined || this.marks.length === 0) return;
    this.searched += 1;
    const { tenantId } = bearer;
    const told = JSON.stringify(outcome);
    for (const [of, mark] of this.marks) {
      if (!told.includes(mark)) continue;
      if (of === tenantId) this.atHome += 1;
      else this.leaks.push({ call: id, caller, name: call, tenantId, of });
    }
  }
}
