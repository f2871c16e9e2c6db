import { hashOf, hashOfText } from "../model/identities.ts";
import { fieldsOf, itemsOf, subjectText, type Fields } from "./fields.ts";

/** Contract 1.5. */
const retryDefaults = {
  maxAttempts: 3,
  initialDelayMs: 1000,
  maxDelayMs: 300_000,
  backoff: "exponential",
  retryOn: ["timeout", "worker_failure", "transient_connection"],
};

const setOf = (value: unknown): readonly string[] =>
  [...new Set(itemsOf(value).filter((item) => typeof item === "string"))].sort();

const defined = (value: unknown): Fields =>
  Object.fromEntries(
    Object.entries(fieldsOf(value))
      .filter(([, member]) => member !== undefined)
      .sort(([left], [right]) => (left < right ? -1 : 1)),
  );

function retryPolicyOf(value: unknown): Fields {
  const policy: Fields = { ...retryDefaults, ...defined(value) };
  const { jitter, ...rest } = policy;
  return { ...rest, retryOn: setOf(policy["retryOn"]), ...(jitter === undefined || jitter === 0 ? {} : { jitter }) };
}

const dependenciesOf = (value: unknown): readonly string[] =>
  itemsOf(value)
    .map(fieldsOf)
    .map(({ workloadId, requiredState = "SUCCEEDED" }) => JSON.stringify([workloadId, requiredState]))
    .sort();

/** A request gives the policy alone, a record has it beside the decision. */
function approvalOf(value: unknown): Fields | null {
  if (value === undefined) return null;
  const given = fieldsOf(value);
  const { approverKinds = ["human"], approvers, requiredApprovals = 1 } = fieldsOf(given["policy"] ?? given);
  return { kinds: setOf(approverKinds), approvers: itemsOf(approvers).map(subjectText).sort(), requiredApprovals };
}

/** Absent and empty are the same; the order of labels does not matter. */
function placementOf(value: unknown): readonly unknown[] | null {
  const { requiredLabels, affinity, antiAffinity, poolId = null } = fieldsOf(value);
  const labels = [requiredLabels, affinity, antiAffinity].map(defined);
  return poolId === null && labels.every((given) => Object.keys(given).length === 0) ? null : [...labels, poolId];
}

/**
 * The fields that tell one request of a key from another (contract 1.7), as one text: defaults applied, sets as sets, the
 * input by its hash. A request and the record that it made have the same digest.
 */
export function requestDigest(value: unknown): string {
  const request = fieldsOf(value);
  return hashOfText(
    JSON.stringify([
      request["definitionId"],
      request["definitionRevision"],
      request["environment"],
      request["inputHash"] ?? hashOf(request["input"]),
      setOf(request["capabilities"]),
      setOf(request["connectionScopes"]),
      request["priority"] ?? 0,
      defined(retryPolicyOf(request["retryPolicy"])),
      defined(request["timeouts"]),
      dependenciesOf(request["dependencies"]),
      request["notBefore"] ?? null,
      approvalOf(request["approval"]),
      placementOf(request["placement"]),
    ]),
  );
}
