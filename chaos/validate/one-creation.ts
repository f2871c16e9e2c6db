import type { CallFact } from "./call-facts.ts";
import { fieldsOf } from "./fields.ts";
import type { Validator } from "./validator.ts";

const createdBy = ({ answer }: CallFact): boolean => fieldsOf(answer)["created"] === true;

export const oneCreation: Validator = {
  validator: "one-creation",
  guarantee: "a key is admitted at most once, and all its admissions are answered with one workload",
  expectsFacts: (facts) => facts.calls.some(({ call, kind }) => call === "admit" && kind === "acknowledged"),
  validate: (facts, findings) => {
    const byWorkload = new Map<string, CallFact[]>();
    for (const call of facts.calls) {
      if (call.call !== "admit" || call.kind !== "acknowledged" || call.workloadId === undefined) continue;
      findings.count();
      const known = byWorkload.get(call.workloadId);
      if (known === undefined) byWorkload.set(call.workloadId, [call]);
      else known.push(call);
    }
    for (const [workloadId, calls] of byWorkload) {
      const creators = calls.filter(createdBy);
      if (creators.length > 1)
        findings.violation(`${creators.length} admissions were each told that they created it`, {
          workloadId,
          evidence: creators,
        });
      const digests = new Set(calls.map(({ args }) => args["digest"]));
      if (digests.size > 1)
        findings.violation("different requests were admitted under one key", { workloadId, evidence: calls });
      const answers = new Set(
        calls.map(({ answer }) => {
          const { createdAt, digest, inputHash } = fieldsOf(fieldsOf(answer)["workload"]);
          return JSON.stringify([createdAt, digest, inputHash]);
        }),
      );
      if (answers.size > 1)
        findings.violation("admissions of one key were answered with different workloads", {
          workloadId,
          evidence: calls,
        });
    }
    for (const { workloadId, versions } of facts.workloads.values()) {
      findings.count();
      const creations = versions.filter(({ command }) => command === "admit").length;
      if (creations > 1) findings.violation(`it was created ${creations} times`, { workloadId });
    }
  },
};
