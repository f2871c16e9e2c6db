/**
 * Goal: what counts as a secret (contract 1.12), where it is looked for, and that no refusal repeats it.
 * Method: the finder itself on values with one secret each.
 */
import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/base/json.ts";
import { defaultRules } from "../../../src/core/workload/rules.ts";
import { findSecret, findSecretText } from "../../../src/core/workload/secrets.ts";

const rules = defaultRules;

describe("secrets in a payload", () => {
  const cases: readonly (readonly [string, Json, string])[] = [
    ["password", { password: 1 }, "input.password"],
    ["secret in any case", { a: [{ SeCrEt: null }] }, "input.a[0].SeCrEt"],
    ["token", { token: {} }, "input.token"],
    ["api_key", { deep: { API_KEY: "x" } }, "input.deep.API_KEY"],
    ["private_key", [[{ private_key: "x" }]], "input[0][0].private_key"],
    ["a key block", { text: "-----BEGIN PRIVATE KEY-----" }, "input.text"],
    ["an RSA key block", ["x BEGIN RSA PRIVATE KEY x"], "input[0]"],
    ["an EC key block", "BEGIN EC PRIVATE KEY", "input"],
    ["an OPENSSH key block", { "a b": "BEGIN OPENSSH PRIVATE KEY" }, 'input["a b"]'],
    ["sk-", { a: "sk-abc" }, "input.a"],
    ["fdb_live_", { a: "fdb_live_abc" }, "input.a"],
    ["the product's own token", { a: "mandate_live_abc" }, "input.a"],
  ];
  for (const [what, value, path] of cases)
    it(`finds ${what} and names the path`, () => {
      expect(findSecret(value, "input", rules)).toMatchObject({
        code: "WORKLOAD_SECRET_REJECTED",
        details: { path },
      });
    });

  it("never tells the value", () => {
    const refusal = findSecret({ a: "sk-hunter2" }, "input", rules);
    expect(JSON.stringify(refusal)).not.toContain("hunter2");
  });

  it("lets similar things pass", () => {
    const value: Json = {
      passwords: 1,
      tokens: ["a sk-abc", "SK-abc", "BEGIN PUBLIC KEY", "begin private key"],
      apiKey: "secret://vault/key",
      "api-key": "password",
    };
    expect(findSecret(value, "input", rules)).toBeUndefined();
  });

  it("can be told of more keys and beginnings", () => {
    const more = { ...rules, secretKeys: [...rules.secretKeys, "pin"], secretPrefixes: ["xoxb-"] };
    expect(findSecret({ PIN: 1 }, "state", more)?.details).toEqual({ path: "state.PIN" });
    expect(findSecret(["xoxb-1"], "state", more)?.details).toEqual({ path: "state[0]" });
    expect(findSecret(["sk-1"], "state", more)).toBeUndefined();
  });

  it("refuses what it can't look through, rather than letting a secret behind it pass", () => {
    const refusal = findSecret([Number.NaN, { password: 1 }], "state", rules);
    expect(refusal).toMatchObject({ code: "WORKLOAD_INVALID", details: { paths: ["state[0]"] } });
    let deep: Json = { password: 1 };
    for (let level = 0; level < 300; level++) deep = [deep];
    expect(findSecret(deep, "state", rules)?.code).toBe("WORKLOAD_INVALID");
  });
});

describe("secrets in a text", () => {
  it("are found by the string rules alone", () => {
    expect(findSecretText("sk-1", "error", rules)?.details).toEqual({ path: "error" });
    expect(findSecretText("x BEGIN EC PRIVATE KEY", "reason", rules)?.details).toEqual({ path: "reason" });
    for (const text of ["password: x", "token", "not sk-1", "", undefined])
      expect(findSecretText(text, "error", rules)).toBeUndefined();
  });
});
