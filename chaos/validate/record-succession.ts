import { takeBreaches, type Validator } from "./validator.ts";

/** The model explains every version: by its own rules, see `chaos/model/`. */
export const recordSuccession: Validator = {
  validator: "record-succession",
  guarantee: "every committed version follows from the one before by one command of the rules",
  expectsFacts: (facts) => facts.calls.some(({ kind }) => kind === "acknowledged"),
  validate: (facts, findings) => {
    for (const { versions } of facts.workloads.values()) findings.count(versions.length);
    takeBreaches(facts, "succession", findings);
  },
};
