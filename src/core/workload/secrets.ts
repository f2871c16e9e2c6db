import { walkJson, type Json } from "../../base/json.ts";
import { refuse, type Refusal } from "../errors.ts";
import type { WorkloadRules } from "./rules.ts";

const keyBlock = /BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY/;

/** Whether a text holds what looks like a secret (contract 1.12, the string rules). */
export const isSecretText = (text: string, rules: WorkloadRules): boolean =>
  keyBlock.test(text) || rules.secretPrefixes.some((prefix) => text.startsWith(prefix));

const refusal = (path: string): Refusal =>
  refuse("WORKLOAD_SECRET_REJECTED", `${path} holds what looks like a secret; pass a secret:// reference instead`, {
    path,
  });

/**
 * Refuses a payload with a secret in it; names the path, never the value (contract 1.12). What is no exact JSON can't be
 * looked through to its end, and is refused as well.
 */
export function findSecret(value: Json, root: string, rules: WorkloadRules): Refusal | undefined {
  const { problem, stoppedAt } = walkJson(value, root, {
    key: (key) => rules.secretKeys.includes(key.toLowerCase()),
    text: (text) => isSecretText(text, rules),
  });
  if (problem !== undefined)
    return refuse("WORKLOAD_INVALID", `${problem.path} ${problem.rule}`, {
      paths: [problem.path],
      issues: [{ path: problem.path, message: problem.rule }],
    });
  return stoppedAt === undefined ? undefined : refusal(stoppedAt);
}

/** Refuses an error text or a reason with a secret in it (contract 1.12). */
export const findSecretText = (text: string | undefined, path: string, rules: WorkloadRules): Refusal | undefined =>
  text !== undefined && isSecretText(text, rules) ? refusal(path) : undefined;
