import type { CallFact } from "./call-facts.ts";
import type { Facts, Version } from "./facts.ts";
import { findRefusedRegistration } from "./registry-effects.ts";
import type { Validator } from "./validator.ts";

/** The refusal of a repeat that finds its own claim gone says so: something had been claimed. */
const speaksOfEarlierTry = ({ call, code, requestId }: CallFact): boolean =>
  code === "WORKLOAD_CLAIM_INVALID" && requestId !== undefined && (call === "claim" || call === "claimNext");

/** Whether a call may have made a version: it had begun, and it was not refused as definite. */
const mayHaveMade = (call: CallFact, version: Version, clockErrorMs: number): boolean =>
  call.kind !== "refused" && call.startedAt <= version.storedAt + clockErrorMs;

/** An effect that came while or after the call was made, and that no other call can have made. */
function findOwnEffect(call: CallFact, facts: Facts): Version | undefined {
  const { clockErrorMaxMs } = facts.parameters;
  return facts
    .effectsOf(call)
    .find(
      (version) =>
        version.storedAt >= call.startedAt - clockErrorMaxMs &&
        !facts.authorsOf(version).some((author) => mayHaveMade(author, version, clockErrorMaxMs)),
    );
}

/**
 * An effect is recognised by the values that its call gave: result id, error, reason, state, key. It counts against a
 * refused call when no call that was acknowledged, or whose outcome is unknown, asks for the same.
 */
export const refusedEffects: Validator = {
  validator: "refused-effects",
  guarantee: "nothing refused as definite is present",
  expectsFacts: (facts) => facts.calls.some(({ kind }) => kind === "refused"),
  validate: (facts, findings) => {
    for (const call of facts.calls) {
      if (call.kind !== "refused" || speaksOfEarlierTry(call)) continue;
      findings.count();
      const registered = findRefusedRegistration(call, facts);
      if (registered !== undefined)
        findings.violation(
          `${call.call} ${call.id} was refused with ${call.code}, and is there at revision ${registered}`,
          {
            evidence: call,
          },
        );
      const version = findOwnEffect(call, facts);
      if (version === undefined) continue;
      findings.violation(
        `${call.call} ${call.id} was refused with ${call.code}, and is there at revision ${version.revision}`,
        {
          workloadId: version.workloadId,
          evidence: call,
        },
      );
    }
  },
};
