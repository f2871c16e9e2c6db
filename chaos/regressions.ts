/**
 * Runs that once broke a rule, kept so that they are run again: `npm run chaos -- --regressions` makes each of them and
 * judges it. The same seed gives the same kind of run, not the same
 * interleaving, so a test of the product stands beside each.
 */
export interface Regression {
  /** A sentence: what went wrong. */
  readonly bug: string;
  /** The validator that found it. */
  readonly foundBy: string;
  readonly scenario: string;
  readonly seed: number;
  /** How long the run is, minutes. */
  readonly minutes: number;
}

export const regressions: readonly Regression[] = [
  {
    bug: "a read of several keys that lost one of its messages on the way passed the missing key for an absent one",
    foundBy: "true-refusals",
    scenario: "drain",
    seed: 12,
    minutes: 0.5,
  },
  {
    bug: "a reconciliation wrote over what was registered while it read, and a superseded process's poll was given work",
    foundBy: "worker-succession",
    scenario: "registry",
    seed: 1,
    minutes: 0.5,
  },
  {
    bug: "a claim was denied by an old record of its worker, because its workload had just been read afresh",
    foundBy: "true-refusals",
    scenario: "registry",
    seed: 6,
    minutes: 0.9,
  },
];
