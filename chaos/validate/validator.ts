import type { Verdict } from "../history.ts";
import type { Rule } from "../model/step.ts";
import type { Facts } from "./facts.ts";

/** Judges one guarantee. */
export interface Validator {
  /** The guarantee, in words of the contract. */
  readonly guarantee: string;
  readonly validator: string;
  /** Whether the run should have given it facts: then to have seen none is a violation too. */
  readonly expectsFacts: (facts: Facts) => boolean;
  readonly validate: (facts: Facts, findings: Findings) => void;
}

type Violation = Verdict["violations"][number];

/** How many violations of one validator are kept: a broken product breaks everything everywhere. */
const KEPT_MAX = 500;

/** What a validator has looked at and found. */
export class Findings {
  #checked = 0;
  #unkept = 0;
  readonly #violations: Violation[] = [];

  get checked(): number {
    return this.#checked;
  }

  get violations(): readonly Violation[] {
    if (this.#unkept === 0) return this.#violations;
    return [...this.#violations, { message: `and ${this.#unkept} more, which are not kept` }];
  }

  /** Facts were looked at. */
  count(facts = 1): void {
    this.#checked += facts;
  }

  violation(
    message: string,
    where: { readonly workloadId?: string | undefined; readonly evidence?: unknown } = {},
  ): void {
    const { workloadId, evidence } = where;
    if (this.#violations.length >= KEPT_MAX) {
      this.#unkept += 1;
      return;
    }
    this.#violations.push({
      message,
      ...(workloadId === undefined ? {} : { workloadId }),
      ...(evidence === undefined ? {} : { evidence }),
    });
  }
}

/** Takes over what the model found against one rule. */
export function takeBreaches(facts: Facts, rule: Rule, findings: Findings): void {
  for (const { workloadId, breaches } of facts.workloads.values())
    for (const breach of breaches)
      if (breach.rule === rule)
        findings.violation(`revision ${breach.revision}, ${breach.command}: ${breach.message}`, {
          workloadId,
          evidence: { revision: breach.revision, command: breach.command },
        });
}
