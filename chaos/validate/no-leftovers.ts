import type { Validator } from "./validator.ts";

export const noLeftovers: Validator = {
  validator: "no-leftovers",
  guarantee: "no consumer, process or file is left behind",
  expectsFacts: () => true,
  validate: (facts, findings) => {
    const { consumers = 0, processes = 0, files = 0 } = facts.end?.inspected ?? {};
    findings.count(consumers + processes + files);
    for (const { kind, name } of facts.leftovers) findings.violation(`the ${kind} ${name} is left`);
  },
};
