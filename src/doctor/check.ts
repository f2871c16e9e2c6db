/** What a check found. `warning`: it runs, but less safely than it should; `skipped`: it could not be looked at, or does not apply. */
export type Verdict = "ok" | "warning" | "failure" | "skipped";

/** One thing that was looked at (contract 5.6). */
export interface Check {
  readonly name: CheckName;
  readonly verdict: Verdict;
  /** A sentence: what was found, and what to do about it. */
  readonly explanation: string;
}

/** Names of all checks; also what `--allow` takes. */
export const checkNames = [
  "servers",
  "server-version",
  "jetstream",
  "max-payload",
  "routes",
  "sync",
  "clock",
  "free-space",
  "format",
  "replicas",
  "atomic-batches",
  "direct-gets",
  "rollup",
  "access",
  "duplicate-window",
  "stream-settings",
  "consumers",
] as const;
export type CheckName = (typeof checkNames)[number];

export const ok = (name: CheckName, explanation: string): Check => ({ name, verdict: "ok", explanation });
export const warning = (name: CheckName, explanation: string): Check => ({ name, verdict: "warning", explanation });
export const failure = (name: CheckName, explanation: string): Check => ({ name, verdict: "failure", explanation });
export const skipped = (name: CheckName, explanation: string): Check => ({ name, verdict: "skipped", explanation });
