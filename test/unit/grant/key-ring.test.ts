/**
 * Goal: keys come from files, several at once, and follow them without a restart; a key that is taken away verifies
 * nothing from then on, remembered or not; a private part is never shown.
 * Method: real files in a folder of the test's own; the ring looks at them when it is told to.
 */
import { mkdir, rm } from "node:fs/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLog, type Log } from "../../../src/base/log.ts";
import { GrantVerifier } from "../../../src/grants/grant-verifier.ts";
import { KeyRing, KeyRingError } from "../../../src/grants/key-ring.ts";
import { issueGrant } from "../../../src/grants/sign-token.ts";
import { poll } from "../../../cluster/poll.ts";
import { grantOf } from "./grant-fixtures.ts";
import { codeOf, makeFolder, makeKey, writeKey, type TestKey } from "./token-fixtures.ts";

async function open(path: string, log: Log = silentLog, everyMs = 3_600_000): Promise<KeyRing> {
  const ring = await KeyRing.open({ path, log, everyMs });
  onTestFinished(() => ring.close());
  return ring;
}

async function tokenOf(key: TestKey, id = "grant-1"): Promise<string> {
  const token = await issueGrant(grantOf({ id }), key.signing);
  if (!token.ok) throw new TypeError(token.error.message);
  return token.value;
}

const publicPart = ({ jwk }: TestKey): object => ({ kty: jwk.kty, crv: jwk.crv, x: jwk.x });

describe("a key ring", () => {
  it("reads private and public keys and sets of them, and publishes public parts alone", async () => {
    const folder = await makeFolder();
    const keys = await Promise.all([makeKey(), makeKey(), makeKey(), makeKey()]);
    const [first, second, third, fourth] = keys;
    await writeKey(folder, "a.json", first?.jwk);
    await writeKey(folder, "b.jwk", second === undefined ? {} : publicPart(second));
    await writeKey(folder, "c.jwks", { keys: [third?.jwk, fourth?.jwk] });
    await writeKey(folder, "README.txt", "no key");
    await writeKey(folder, ".hidden.json", "no key");
    const ring = await open(folder);
    const published = JSON.parse(ring.jwks()) as { readonly keys: readonly Record<string, unknown>[] };
    expect(published.keys.map(({ kid }) => kid)).toEqual(keys.map(({ kid }) => kid));
    for (const key of published.keys) expect(Object.keys(key).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x"]);
  });

  it("reads a single file", async () => {
    const key = await makeKey();
    const ring = await open(await writeKey(await makeFolder(), "keys", key.jwk));
    expect(ring.find(key.kid)?.kid).toBe(key.kid);
    expect(ring.find("other")).toBeUndefined();
  });

  it.each<[string, unknown, RegExp]>([
    ["is no JSON", "{", /is not JSON/],
    ["holds no object", "[1]", /is no JWK/],
    ["holds another kind of key", { kty: "RSA", n: "x", e: "AQAB" }, /no Ed25519 key/],
    ["holds a key of another curve", { kty: "OKP", crv: "X25519", x: "A".repeat(43) }, /no Ed25519 key/],
    ["holds half a key", { kty: "OKP", crv: "Ed25519", x: "AAAA" }, /no Ed25519 key/],
    ["holds a key for another algorithm", { kty: "OKP", crv: "Ed25519", x: "A".repeat(43), alg: "HS256" }, /alg/],
    ["holds a key for encryption", { kty: "OKP", crv: "Ed25519", x: "A".repeat(43), use: "enc" }, /use/],
    ["holds a kid that is none", { kty: "OKP", crv: "Ed25519", x: "A".repeat(43), kid: "a b" }, /kid/],
    ["holds no key", { keys: [] }, /holds no key/],
    ["holds keys that are no list", { keys: 1 }, /no list/],
  ])("is not opened on a file that %s", async (_what, content, reason) => {
    const path = await writeKey(await makeFolder(), "key.json", content);
    await expect(open(path)).rejects.toThrow(reason);
    await expect(open(path)).rejects.toBeInstanceOf(KeyRingError);
  });

  it("is not opened on what does not exist, or on one name for two keys", async () => {
    const folder = await makeFolder();
    await expect(open(`${folder}/none`)).rejects.toThrow(/does not exist/);
    const [first, second] = await Promise.all([makeKey(), makeKey()]);
    await writeKey(folder, "a.json", first.jwk);
    await writeKey(folder, "b.json", { ...second.jwk, kid: first.kid });
    await expect(open(folder)).rejects.toThrow(/two different keys/);
  });

  it("follows its files: a new key verifies, and one that is gone does not, though its token was remembered", async () => {
    const folder = await makeFolder();
    const [old, fresh] = await Promise.all([makeKey(), makeKey()]);
    const oldPath = await writeKey(folder, "old.json", old.jwk);
    const ring = await open(folder);
    const verifier = new GrantVerifier(ring);
    const [oldToken, freshToken] = await Promise.all([tokenOf(old), tokenOf(fresh)]);
    expect(codeOf(await verifier.verify(oldToken))).toBe("ok");
    expect(codeOf(await verifier.verify(freshToken))).toBe("GRANT_INVALID");
    await writeKey(folder, "fresh.json", fresh.jwk);
    await ring.reload();
    expect(codeOf(await verifier.verify(oldToken))).toBe("ok");
    expect(codeOf(await verifier.verify(freshToken))).toBe("ok");
    await rm(oldPath);
    await ring.reload();
    expect(codeOf(await verifier.verify(oldToken))).toBe("GRANT_INVALID");
    expect(codeOf(await verifier.verify(freshToken))).toBe("ok");
    await rm(folder, { recursive: true });
    await ring.reload();
    expect(codeOf(await verifier.verify(freshToken))).toBe("GRANT_INVALID");
  });

  it("looks at its files by itself", async () => {
    const folder = await makeFolder();
    const [first, second] = await Promise.all([makeKey(), makeKey()]);
    await writeKey(folder, "first.json", first.jwk);
    const ring = await open(folder, silentLog, 5);
    await writeKey(folder, "second.json", second.jwk);
    expect(await poll(() => ring.find(second.kid)?.kid, { timeoutMs: 5_000 })).toBe(second.kid);
  });

  it("keeps its keys while a file is not good, and says so once, without what the file holds", async () => {
    const folder = await makeFolder();
    const key = await makeKey();
    await writeKey(folder, "key.json", key.jwk);
    const lines: string[] = [];
    const log: Log = { ...silentLog, error: (fields, message) => lines.push(JSON.stringify([fields, message])) };
    const ring = await open(folder, log);
    await writeKey(folder, "key.json", JSON.stringify(key.jwk).slice(0, -5));
    await ring.reload();
    await ring.reload();
    expect(ring.find(key.kid)).toBeDefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("key.json is not JSON");
    expect(lines[0]).not.toContain(key.jwk.d);
  });

  it("tells when a file that was not good is, though its keys are the same", async () => {
    const folder = await makeFolder();
    const key = await makeKey();
    await writeKey(folder, "key.json", key.jwk);
    const lines: string[] = [];
    const ring = await open(folder, { ...silentLog, info: (_fields, message) => lines.push(message) });
    const bad = await writeKey(folder, "other.json", "{");
    await ring.reload();
    await rm(bad);
    await ring.reload();
    await ring.reload();
    expect(lines.slice(1)).toEqual(["the key files are good again: the keys are the same"]);
  });

  it("warns when no key is left", async () => {
    const key = await makeKey();
    const path = await writeKey(await makeFolder(), "key.json", key.jwk);
    const lines: string[] = [];
    const ring = await open(path, { ...silentLog, warn: (_fields, message) => lines.push(message) });
    await rm(path);
    await ring.reload();
    await ring.reload();
    expect(lines).toEqual(["no key is left: every grant is refused"]);
  });

  it("keeps its keys while a file can't be read", async () => {
    const folder = await makeFolder();
    const key = await makeKey();
    const path = await writeKey(folder, "key.json", key.jwk);
    const ring = await open(folder);
    await rm(path);
    await mkdir(path);
    await ring.reload();
    expect(ring.find(key.kid)).toBeDefined();
  });
});

describe("the memory of verified tokens", () => {
  it("is bounded, and forgets first what was used longest ago", async () => {
    const key = await makeKey();
    const ring = await open(await writeKey(await makeFolder(), "key.json", key.jwk));
    const verifier = new GrantVerifier(ring, 2);
    const [one, two, three] = await Promise.all(["1", "2", "3"].map((id) => tokenOf(key, id)));
    const first = await verifier.verify(one ?? "");
    await verifier.verify(two ?? "");
    expect(await verifier.verify(one ?? "")).toBe(first);
    await verifier.verify(three ?? "");
    expect(verifier.remembered).toBe(2);
    expect(await verifier.verify(one ?? "")).toBe(first);
  });

  it("holds nothing that was refused", async () => {
    const key = await makeKey();
    const ring = await open(await writeKey(await makeFolder(), "key.json", key.jwk));
    const verifier = new GrantVerifier(ring);
    for (const text of ["", "a.b.c", `${await tokenOf(key)}x`, "x".repeat(100_000)])
      expect(codeOf(await verifier.verify(text))).toBe("GRANT_INVALID");
    expect(verifier.remembered).toBe(0);
  });
});
