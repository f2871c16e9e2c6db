import { parseArgs } from "node:util";

/** A flag of a command: `--name value`, or `--name` alone. */
export interface FlagSpec {
  readonly name: string;
  readonly takesValue: boolean;
}

export interface ParsedFlags {
  /** Values of the flags that take one. */
  readonly values: { readonly [name: string]: string | undefined };
  /** Flags that are there and take none. */
  readonly present: ReadonlySet<string>;
}

/** The command line makes no sense. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** @throws UsageError when the flag is no whole number in its bounds. */
export function wholeFlag(
  flags: ParsedFlags,
  name: string,
  rule: { readonly initial: number; readonly min: number; readonly max: number },
): number {
  const text = flags.values[name];
  if (text === undefined) return rule.initial;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= rule.min && value <= rule.max) return value;
  throw new UsageError(`--${name}=${JSON.stringify(text)} must be a whole number from ${rule.min} to ${rule.max}`);
}

/**
 * Reads a command's flags.
 *
 * @throws UsageError naming what is not known or lacks its value.
 */
export function parseFlags(args: readonly string[], specs: readonly FlagSpec[]): ParsedFlags {
  const options = Object.fromEntries(
    specs.map(({ name, takesValue }) => [name, { type: takesValue ? ("string" as const) : ("boolean" as const) }]),
  );
  try {
    const { values } = parseArgs({ args: [...args], options, strict: true, allowPositionals: false });
    const entries = Object.entries(values);
    return {
      values: Object.fromEntries(
        entries.flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : [])),
      ),
      present: new Set(entries.flatMap(([name, value]) => (value === true ? [name] : []))),
    };
  } catch (thrown) {
    throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
  }
}
