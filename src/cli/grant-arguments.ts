import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import type { Subject } from "../core/subject.ts";
import { UsageError } from "./arguments.ts";

/** What a command works with, so that a test can stand in for the terminal. */
export interface Terminal {
  /** What is left of the command line. */
  readonly args: readonly string[];
  readonly environment: { readonly [variable: string]: string | undefined };
  /** Standard input to its end. */
  readonly readInput: () => Promise<string>;
  readonly write: (text: string) => void;
  /** To standard error. */
  readonly complain: (text: string) => void;
  /** Epoch ms. */
  readonly now: () => number;
}

/** Flags of a command: `text` takes a value, `list` takes one and may come again, `yes` takes none. */
export type FlagKinds = { readonly [name: string]: "text" | "list" | "yes" };

export interface CommandLine {
  readonly positionals: readonly string[];
  text(name: string): string | undefined;
  /** @throws UsageError when it is not given. */
  required(name: string): string;
  list(name: string): readonly string[];
  has(name: string): boolean;
}

/**
 * Reads the flags of a command.
 *
 * @throws UsageError naming what is not known or lacks its value.
 */
export function readCommandLine(args: readonly string[], kinds: FlagKinds): CommandLine {
  const options = Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [
      name,
      { type: kind === "yes" ? ("boolean" as const) : ("string" as const), multiple: kind === "list" },
    ]),
  );
  let parsed: { readonly values: { readonly [name: string]: unknown }; readonly positionals: readonly string[] };
  try {
    parsed = parseArgs({ args: [...args], options, strict: true, allowPositionals: true });
  } catch (thrown) {
    throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
  }
  const text = (name: string): string | undefined => {
    const value = parsed.values[name];
    return typeof value === "string" ? value : undefined;
  };
  return {
    positionals: parsed.positionals,
    text,
    required: (name) => {
      const value = text(name);
      if (value === undefined || value === "") throw new UsageError(`--${name} is missing`);
      return value;
    },
    list: (name) => {
      const value = parsed.values[name];
      return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
    },
    has: (name) => parsed.values[name] === true,
  };
}

/** `kind:id`; whether the kind exists is checked with the rest. */
export function parseSubjectText(name: string, text: string): Subject {
  const colon = text.indexOf(":");
  if (colon < 1 || colon === text.length - 1) throw new UsageError(`--${name} must be kind:id, such as human:ada`);
  return { kind: text.slice(0, colon) as Subject["kind"], id: text.slice(colon + 1) };
}

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `90s`, `15m`, `8h`, `30d` as ms. */
export function parseLength(name: string, text: string): number {
  const [, count, unit] = /^([1-9]\d{0,6})([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) throw new UsageError(`--${name} must be like 90s, 15m, 8h or 30d`);
  return Number(count) * unitMs[unit as keyof typeof unitMs];
}

/** A JSON object of constraints; what is in it is checked with the rest. */
export function parseConstraints(text: string | undefined): { readonly [name: string]: unknown } {
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as { readonly [name: string]: unknown };
  } catch {
    // Said below, like any other value that is no object.
  }
  throw new UsageError('--constraints must be a JSON object, such as {"environments":["test"]}');
}

/** The bytes of a file that a flag names. @throws UsageError when it can't be read. */
export async function readNamedFile(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
    throw new UsageError(`${path} can't be read (${code})`, { cause: thrown });
  }
}

/** A token from a file, from standard input (`-`), or else from MANDATE_TOKEN: never from the command line, which others can see. */
export async function readToken(path: string | undefined, terminal: Terminal): Promise<string> {
  const text =
    path === undefined
      ? terminal.environment["MANDATE_TOKEN"]
      : path === "-"
        ? await terminal.readInput()
        : await readNamedFile(path);
  if (text === undefined || text.trim() === "")
    throw new UsageError("there is no grant: name a file, - for standard input, or set MANDATE_TOKEN");
  return text.trim();
}
