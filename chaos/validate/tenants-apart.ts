import type { CallFact } from "./call-facts.ts";
import type { Facts } from "./facts.ts";
import { textOf } from "./fields.ts";
import type { Validator } from "./validator.ts";

/** Whose it is what a call names: by itself, or by the workload that it is about. */
const tenantNamedBy = ({ args, workloadId }: CallFact, facts: Facts): string | undefined =>
  textOf(args["tenantId"]) ?? facts.workloads.get(workloadId ?? "")?.record.tenantId;

/** Each tenant has a word that is in everything of its own: it is looked for in all that the others were told. */
export const tenantsApart: Validator = {
  validator: "tenants-apart",
  guarantee: "no tenant is told a byte of another's, or given what it asks for of another's",
  expectsFacts: (facts) => facts.run.parameters["tenantMarks"] !== undefined,
  validate: (facts, findings) => {
    const { searched, atHome, leaks } = facts.grants;
    // A word that nobody was told, not even at home, proves nothing.
    if (atHome > 0) findings.count(searched);
    for (const leak of leaks)
      findings.violation(`${leak.name} ${leak.call} told ${leak.caller} of ${leak.tenantId} what is ${leak.of}'s`, {
        evidence: leak,
      });
    for (const call of facts.calls) {
      const { bearer, workloadId } = call;
      if (bearer === undefined) continue;
      const named = tenantNamedBy(call, facts);
      if (named === undefined || named === bearer.tenantId) continue;
      findings.count();
      if (call.kind !== "acknowledged") continue;
      findings.violation(
        `${call.call} ${call.id} was carried out for ${call.caller} of ${bearer.tenantId}, though it is about what is ${named}'s`,
        { workloadId, evidence: call },
      );
    }
  },
};
