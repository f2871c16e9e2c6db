import { JSON_DEPTH_MAX, walkJson, type Json, type JsonProblem } from "../base/json.ts";
import { err, ok, type Result } from "../base/result.ts";
import { MandateError } from "../core/errors.ts";

/** Thrown within this file alone, to leave the recursion. */
class TooDeep extends Error {}

/** The value without members that are `undefined`; the value itself when it has none. Bounded: a cycle ends it too. */
function withoutUndefined(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > JSON_DEPTH_MAX) throw new TooDeep();
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => withoutUndefined(item, depth + 1));
    return items.every((item, index) => Object.is(item, value[index])) ? value : items;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const members = Object.entries(value);
  const kept: [string, unknown][] = [];
  let changed = false;
  for (const [key, member] of members) {
    const copy = member === undefined ? undefined : withoutUndefined(member, depth + 1);
    changed ||= !Object.is(copy, member) || copy === undefined;
    if (copy !== undefined) kept.push([key, copy]);
  }
  return changed ? Object.fromEntries(kept) : value;
}

/**
 * A value as JSON that arrives exactly as it was given. Members that are `undefined` count as absent; anything else that
 * JSON would drop, round or change (NaN, −0, integers beyond 2^53 − 1, class instances, lone surrogates …) is a problem
 * and is named by its path.
 */
export function exactJson(value: unknown, path: string): Result<Json, JsonProblem> {
  let plain: unknown;
  try {
    plain = withoutUndefined(value, 0);
  } catch (thrown) {
    if (!(thrown instanceof TooDeep)) throw thrown;
    return err({ path, rule: `nests deeper than ${JSON_DEPTH_MAX} levels, or contains itself` });
  }
  const { problem } = walkJson(plain, path);
  return problem === undefined ? ok(plain as Json) : err(problem);
}

/**
 * Like {@link exactJson} for what is about to be sent.
 *
 * @throws MandateError `WORKLOAD_INVALID`; details name the path. Nothing was sent.
 */
export function requireExactJson(value: unknown, path = ""): Json {
  const checked = exactJson(value, path);
  if (checked.ok) return checked.value;
  const at = checked.error.path.replace(/^\./, "");
  const message = checked.error.rule;
  throw new MandateError("WORKLOAD_INVALID", `${at === "" ? "the request" : at}: ${message}`.toWellFormed(), {
    details: { paths: [at], issues: [{ path: at, message }] },
  });
}
