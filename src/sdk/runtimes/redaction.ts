import { stripVTControlCharacters } from "node:util";
import { defaultRules } from "../../core/workload/rules.ts";

const REDACTED = "[redacted]";
/** A value shorter than this is no secret worth the name, and its characters would be found everywhere. */
const SECRET_LENGTH_MIN = 8;
const secretName = /password|passwd|secret|token|api_?key|private_?key|credential/i;

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\-]/g, String.raw`\$&`);

const keyBlock = /-{0,5}BEGIN [A-Z ]{0,40}PRIVATE KEY[\s\S]*?(?:END [A-Z ]{0,40}PRIVATE KEY-{0,5}|$)/g;
/** The end of a key whose beginning was cut off. */
const keyEnd = /^[\s\S]*END [A-Z ]{0,40}PRIVATE KEY-{0,5}/;
const prefixed = new RegExp(
  `(?<![A-Za-z0-9])(?:${defaultRules.secretPrefixes.map(escaped).join("|")})[^\\s"',;]*`,
  "g",
);
const named = new RegExp(
  `((?:${defaultRules.secretKeys.map(escaped).join("|")})["']?\\s*[=:]\\s*["']?)[^\\s"',;]+`,
  "gi",
);

/** Values of variables that a program was given and that nobody else is to read. */
export const secretValuesOf = (
  env: { readonly [name: string]: string },
  shared: readonly string[],
): readonly string[] => {
  const names = Object.keys(env).filter((name) => shared.includes(name) || secretName.test(name));
  const values = names.map((name) => env[name] ?? "").filter((value) => value.length >= SECRET_LENGTH_MIN);
  // The longest first: one may be the beginning of another.
  return [...new Set(values)].toSorted((left, right) => right.length - left.length);
};

/**
 * What a program wrote for people, as it may be stored: without the secrets that it was given, without what the authority
 * would refuse as one (contract 1.12), without escape sequences.
 */
export function redact(text: string, secrets: readonly string[]): string {
  let kept = stripVTControlCharacters(text).replaceAll(/[^\P{Cc}\n\t]/gu, "");
  for (const secret of secrets) kept = kept.replaceAll(secret, REDACTED);
  return kept
    .replaceAll(keyBlock, REDACTED)
    .replace(keyEnd, REDACTED)
    .replaceAll(prefixed, REDACTED)
    .replaceAll(named, `$1${REDACTED}`);
}
