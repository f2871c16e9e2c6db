import type { Validator } from "./validator.ts";

export const noCrashes: Validator = {
  validator: "no-crashes",
  guarantee: "no node ends over a bug of its own",
  expectsFacts: () => true,
  validate: (facts, findings) => {
    findings.count(facts.end?.inspected?.logs ?? 0);
    for (const { node, told } of facts.crashes) findings.violation(`${node} ended: ${told}`);
  },
};
