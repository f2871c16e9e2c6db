/**
 * Goal: what a program said can be stored and shown: no secret that it was given, and none that the authority knows by
 * its looks, is in it.
 * Method: texts with secrets at every place; the authority's own rule judges what is left.
 */
import { expect, test } from "vitest";
import { defaultRules } from "../../src/core/workload/rules.ts";
import { isSecretText } from "../../src/core/workload/secrets.ts";
import { redact, secretValuesOf } from "../../src/sdk/runtimes/redaction.ts";

test.each([
  ["a whole key", "a\n-----BEGIN EC PRIVATE KEY-----\nMIIE\n-----END EC PRIVATE KEY-----\nb", "a\n[redacted]\nb"],
  ["a key whose end was cut off", "a\n-----BEGIN PRIVATE KEY-----\nMIIE", "a\n[redacted]"],
  ["a key whose beginning was cut off", "IE\nMIIE\n-----END PRIVATE KEY-----\nb", "[redacted]\nb"],
  ["a token", "using sk-abc_1, mandate_live_x: refused", "using [redacted], [redacted] refused"],
  ["a word that holds a prefix", "task-3 on disk-full", "task-3 on disk-full"],
  ["named values", `{"api_key": "abc"} TOKEN=xyz`, `{"api_key": "[redacted]"} TOKEN=[redacted]`],
  ["escape sequences and controls", "\u001b[31mred\u001b[0m\u0000\r\n\tend", "red\n\tend"],
])("%s", (_what, text, kept) => {
  expect(redact(text, [])).toBe(kept);
  expect(isSecretText(redact(text, []), defaultRules)).toBe(false);
});

test("values that a program was given are cut out, the longest first, and short ones stay", () => {
  const env = {
    BANK_URL: "https://bank/key",
    LONG: "https://bank/key/2",
    DB_PASSWORD: "correct horse",
    MODE: "production",
    PIN: "1234",
  };
  const secrets = secretValuesOf(env, ["BANK_URL", "LONG", "PIN"]);
  expect(secrets).toEqual(["https://bank/key/2", "https://bank/key", "correct horse"]);
  expect(redact("https://bank/key/2 https://bank/key correct horse production 1234", secrets)).toBe(
    "[redacted] [redacted] [redacted] production 1234",
  );
});

test("a flood of what looks like the beginning of a key takes no time", () => {
  const from = performance.now();
  for (const part of ["-", "BEGIN ", "END A", "token ", "sk-"]) redact(part.repeat(16_384 / part.length), []);
  expect(performance.now() - from).toBeLessThan(2_000);
});
