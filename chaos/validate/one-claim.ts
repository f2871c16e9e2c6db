import { claimsIn } from "./effects.ts";
import { takeBreaches, type Findings, type Validator } from "./validator.ts";

/** One holder for each token, whoever was told. */
class Holders {
  readonly #holders = new Map<string, string>();
  readonly #findings: Findings;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  told(claim: {
    readonly workloadId: string;
    readonly claimId: string;
    readonly workerId: string;
    readonly fencingToken: number;
  }): void {
    const { workloadId, fencingToken, claimId, workerId } = claim;
    this.#findings.count();
    const key = `${workloadId}:${fencingToken}`;
    const holder = `${claimId} of ${workerId}`;
    const known = this.#holders.get(key);
    if (known === undefined) this.#holders.set(key, holder);
    else if (known !== holder)
      this.#findings.violation(`token ${fencingToken} was given twice: as ${known} and as ${holder}`, { workloadId });
  }
}

export const oneClaim: Validator = {
  validator: "one-claim",
  guarantee: "a workload has at most one live claim, and its fencing tokens strictly grow",
  expectsFacts: (facts) =>
    facts.calls.some(({ call, kind }) => kind === "acknowledged" && (call === "claim" || call === "start")),
  validate: (facts, findings) => {
    const holders = new Holders(findings);
    for (const { versions } of facts.workloads.values())
      for (const { command, claim } of versions) if (command === "claim" && claim !== undefined) holders.told(claim);
    for (const { call, kind, answer } of facts.calls)
      if (kind === "acknowledged") for (const claim of claimsIn(call, answer)) holders.told(claim);
    for (const line of facts.work) if (line.event === "handed") holders.told(line);
    takeBreaches(facts, "tokens", findings);
  },
};
