import type { RuntimeClaim, RuntimePolicy } from "./runtime.ts";

/** Where a program writes its checkpoints. */
export const CHECKPOINT_DESCRIPTOR = 3;

/** What programs need to run at all; none of it is secret. */
const common = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LANGUAGE",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "TMPDIR",
  "TERM",
] as const;

/**
 * The environment of a program: what every program needs, the worker's variables that the policy names, those that are
 * given, and what the work and its policy are. Nothing else of the worker's own, such as its token, gets there.
 */
export function childEnvironment(
  claim: RuntimeClaim,
  policy: RuntimePolicy,
  given: { readonly [name: string]: string },
): { readonly [name: string]: string } {
  const { variables } = policy.secretPolicy;
  const names = variables === "all" ? Object.keys(process.env) : [...common, ...variables];
  const shared = names.flatMap((name): [string, string][] => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    ...Object.fromEntries(shared),
    ...given,
    MANDATE_WORKLOAD_ID: claim.workloadId,
    MANDATE_ATTEMPT_ID: claim.attemptId,
    MANDATE_FENCING_TOKEN: String(claim.fencingToken),
    MANDATE_CHECKPOINT_FD: String(CHECKPOINT_DESCRIPTOR),
    MANDATE_NETWORK_POLICY: JSON.stringify(policy.networkPolicy.allow),
    MANDATE_FILESYSTEM_POLICY: JSON.stringify(policy.filesystemPolicy.allow),
  };
}
