import { spreadHash } from "../../src/base/hash.ts";
import { fieldsOf, itemsOf, type Fields } from "./fields.ts";

/** A number that two JSON values share when they are equal, whatever the order of their members. */
function hashOfTree(value: unknown, path: string): number {
  if (value === undefined) return 0;
  if (typeof value !== "object" || value === null) return spreadHash(`${path}=${JSON.stringify(value)}`);
  let sum = spreadHash(path);
  for (const name in value) sum = (sum + hashOfTree((value as Fields)[name], `${path}.${name}`)) % 4_294_967_296;
  return sum;
}

/**
 * What a record and a workload that was shown have in common when one is the other: everything but the payloads, which
 * their hashes stand for, and the grant, whose token is not shown.
 */
export function workloadFingerprint(value: unknown): number {
  const { input: _input, authorization: _grant, checkpoints, result, ...rest } = fieldsOf(value);
  const { output: _output, ...produced } = fieldsOf(result);
  const progress = itemsOf(checkpoints)
    .map(fieldsOf)
    .map(({ state: _state, ...checkpoint }) => checkpoint);
  return hashOfTree({ ...rest, progress, produced }, "");
}
