/**
 * Runs that once broke a rule, kept so that they are run again: `npm run chaos -- --regressions` makes each of them and
 * judges it. A bug that needs its timing to the millisecond is a script; most are a scenario and a seed.
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

export const regressions: readonly Regression[] = [];
