import canonicalizeLibrary from "canonicalize";

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** How deep a JSON value may nest before it is refused. */
export const JSON_DEPTH_MAX = 256;

/** What keeps a value from being JSON that every reader gets back exactly, and where it stands. */
export interface JsonProblem {
  /** Path from the root that was given, such as `input.items[3].size`. */
  readonly path: string;
  readonly rule: string;
}

const step = (path: string, key: string | number): string => {
  if (typeof key === "number") return `${path}[${key}]`;
  if (/^[A-Za-z_$][\w$]*$/.test(key) && key.length <= 128) return `${path}.${key}`;
  return `${path}[${JSON.stringify(key.length > 128 ? `${key.slice(0, 128)}…` : key)}]`;
};

function numberProblem(value: number): string | undefined {
  if (!Number.isFinite(value)) return "is not a finite number";
  if (Object.is(value, -0)) return "is negative zero, which canonical JSON can't carry";
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    return "is an integer beyond ±(2^53 − 1), which readers would round; send it as a string";
  return undefined;
}

function primitiveProblem(value: unknown): string | undefined {
  if (value === null || typeof value === "boolean") return undefined;
  if (typeof value === "string")
    return value.isWellFormed() ? undefined : "has a lone surrogate, which UTF-8 can't carry";
  if (typeof value === "number") return numberProblem(value);
  return `is ${value === undefined ? "undefined" : `a ${typeof value}`}, which is not JSON`;
}

/**
 * Walks a value without recursion and calls `visit` for each string, and for each key with its value's path.
 * Answers the first problem that keeps the value from being exact JSON: a number that is not finite, negative zero,
 * an integer beyond 2^53 − 1, a lone surrogate, a value that is no JSON at all, or nesting beyond {@link JSON_DEPTH_MAX}.
 */
export function walkJson(
  root: unknown,
  rootPath: string,
  visit?: { key?(key: string, path: string): boolean; text?(text: string, path: string): boolean },
): { readonly problem?: JsonProblem; readonly stoppedAt?: string } {
  const stack: { value: unknown; path: string; depth: number }[] = [{ value: root, path: rootPath, depth: 0 }];
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    const { value, path, depth } = item;
    if (typeof value !== "object" || value === null) {
      const rule = primitiveProblem(value);
      if (rule !== undefined) return { problem: { path, rule } };
      if (typeof value === "string" && visit?.text?.(value, path) === true) return { stoppedAt: path };
      continue;
    }
    if (depth >= JSON_DEPTH_MAX)
      return {
        problem: { path: path.slice(0, 200), rule: `nests deeper than ${JSON_DEPTH_MAX} levels` },
      };
    if (Array.isArray(value)) {
      for (let index = value.length - 1; index >= 0; index--)
        stack.push({ value: value[index], path: step(path, index), depth: depth + 1 });
      continue;
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null)
      return { problem: { path, rule: "is not a plain object" } };
    const keys = Object.keys(value);
    for (let index = keys.length - 1; index >= 0; index--) {
      const key = keys[index];
      if (key === undefined) continue;
      const childPath = step(path, key);
      if (!key.isWellFormed()) return { problem: { path: childPath, rule: "has a key with a lone surrogate" } };
      if (visit?.key?.(key, childPath) === true) return { stoppedAt: childPath };
      stack.push({
        value: (value as Record<string, unknown>)[key],
        path: childPath,
        depth: depth + 1,
      });
    }
  }
  return {};
}

/**
 * RFC 8785 canonical form. The value must have passed {@link walkJson}.
 */
export function canonicalJson(value: Json): string {
  return canonicalizeLibrary(value) ?? "null";
}
