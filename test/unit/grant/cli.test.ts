/**
 * Goal: keys and grants are made, delegated and looked at offline; bad input is refused by name before anything is
 * written, and no key or token shows where it was not asked for.
 * Method: the commands with a terminal of the test's own and real files.
 */
import { readFile, stat } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { UsageError } from "../../../src/cli/arguments.ts";
import type { Terminal } from "../../../src/cli/grant-arguments.ts";
import { runGrant } from "../../../src/cli/grant-commands.ts";
import { runKeys } from "../../../src/cli/key-commands.ts";
import { NOW } from "./grant-fixtures.ts";
import { makeFolder, makeKey, writeKey } from "./token-fixtures.ts";

interface Ran {
  readonly out: string;
  readonly code: number;
}

async function run(command: "keys" | "grant", args: readonly string[], rest: Partial<Terminal> = {}): Promise<Ran> {
  const [verb, ...left] = args;
  let out = "";
  const terminal: Terminal = {
    args: left,
    environment: {},
    readInput: () => Promise.resolve(""),
    write: (text) => (out += text),
    complain: (text) => (out += text),
    now: () => NOW,
    ...rest,
  };
  const code = await (command === "keys" ? runKeys(verb, terminal) : runGrant(verb, terminal));
  return { out, code };
}

const refusal = async (
  command: "keys" | "grant",
  args: readonly string[],
  rest: Partial<Terminal> = {},
): Promise<string> => {
  try {
    await run(command, args, rest);
  } catch (thrown) {
    if (thrown instanceof UsageError) return thrown.message;
    throw thrown;
  }
  return "nothing was refused";
};

async function keyFile(): Promise<{ readonly path: string; readonly folder: string }> {
  const folder = await makeFolder();
  const path = `${folder}/key.json`;
  await run("keys", ["new", "--out", path]);
  return { path, folder };
}

const wanted = [
  ...["--issuer", "service:issuer", "--subject", "human:ada", "--tenant", "acme", "--application", "shop"],
  ...["--capability", "workload:create,workload:read", "--resource", "APPLICATION=flow://shop"],
];

interface Shown {
  readonly signature: string;
  readonly state: string;
  readonly grant: { readonly id: string; readonly capabilities: readonly string[]; readonly expiresAt: number };
  readonly chain: readonly unknown[];
}

const inspect = async (token: string, ...flags: readonly string[]): Promise<Shown> =>
  JSON.parse(
    (await run("grant", ["inspect", "-", ...flags], { readInput: () => Promise.resolve(token) })).out,
  ) as Shown;

describe("mandate keys", () => {
  it("makes a key that only its owner may read, and never over another file", async () => {
    const { path } = await keyFile();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const before = await readFile(path, "utf8");
    expect(await refusal("keys", ["new", "--out", path])).toContain("exists already");
    expect(await readFile(path, "utf8")).toBe(before);
    expect(JSON.parse(before)).toMatchObject({ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig" });
    expect(JSON.parse((await run("keys", ["new"])).out)).toMatchObject({ kty: "OKP" });
  });

  it("publishes public parts alone", async () => {
    const [one, two] = await Promise.all([keyFile(), keyFile()]);
    const { keys } = JSON.parse((await run("keys", ["jwks", one.path, two.path])).out) as {
      readonly keys: readonly object[];
    };
    expect(keys).toHaveLength(2);
    for (const key of keys) expect(key).not.toHaveProperty("d");
  });

  it.each([
    [["nothing"], "there is no command mandate keys nothing"],
    [["jwks"], "needs the key files"],
    [["jwks", "/nowhere/key.json"], "/nowhere/key.json can't be read (ENOENT)"],
    [["new", "key.json"], "takes no arguments"],
    [["new", "--out"], "--out"],
    [["new", "--out", "/nowhere/key.json"], "can't be written (ENOENT)"],
    [["new", "--size", "4096"], "--size"],
  ])("%j is refused: %s", async (args, expected) => {
    expect(await refusal("keys", args)).toContain(expected);
  });
});

describe("mandate grant", () => {
  it("issues a grant that inspect shows, verified or not", async () => {
    const { path } = await keyFile();
    const token = (await run("grant", ["issue", "--key", path, ...wanted, "--expires-in", "90s"])).out.trim();
    const shown = await inspect(token);
    expect(shown).toMatchObject({
      state: "active",
      grant: { capabilities: ["workload:create", "workload:read"], expiresAt: NOW + 90_000 },
      chain: [],
    });
    expect(shown.signature).toContain("not checked");
    expect(JSON.stringify(shown)).not.toContain(token.split(".")[2]);
    expect((await inspect(token, "--keys", path)).signature).toBe("verified");
    const other = await keyFile();
    const refused = await refusal("grant", ["inspect", "-", "--keys", other.path], {
      readInput: () => Promise.resolve(token),
    });
    expect(refused).toContain("GRANT_INVALID");
    expect(
      (await run("grant", ["inspect"], { environment: { MANDATE_TOKEN: token }, now: () => NOW + 90_000 })).out,
    ).toContain('"state": "expired"');
  });

  it("delegates within the parent, and not beyond it", async () => {
    const { path, folder } = await keyFile();
    const parent = `${folder}/parent.jwt`;
    await run("grant", ["issue", "--key", path, ...wanted, "--out", parent]);
    expect((await stat(parent)).mode & 0o777).toBe(0o600);
    const base = ["delegate", "--key", path, "--parent", parent, "--subject", "agent:helper"];
    const token = (await run("grant", [...base, "--capability", "workload:read", "--keys", path])).out.trim();
    const shown = await inspect(token, "--keys", path);
    expect(shown.grant).toMatchObject({
      issuer: { kind: "human", id: "ada" },
      capabilities: ["workload:read"],
      expiresAt: NOW + 3_600_000,
    });
    expect(shown.chain).toHaveLength(1);
    const beyond = "GRANT_DELEGATION_INVALID";
    expect(await refusal("grant", [...base, "--capability", "worker:manage"])).toContain(beyond);
    expect(await refusal("grant", [...base, "--expires-in", "2h"])).toContain(beyond);
    expect(await refusal("grant", [...base, "--resource", "APPLICATION=flow://bank"])).toContain(beyond);
    expect(await refusal("grant", [...base, "--id", shown.grant.id, "--constraints", "{}"])).toBe(
      "nothing was refused",
    );
    expect(await refusal("grant", ["delegate", "--key", path, "--subject", "agent:helper"])).toContain(
      "there is no grant",
    );
    expect(await refusal("grant", base, { now: () => NOW + 3_600_000 })).toBe("the parent has expired");
  });

  it.each<[readonly string[], string]>([
    [["--capability", "workload:raed"], 'there is no capability "workload:raed"'],
    [["--resource", "flow://shop"], "--resource must be KIND=URI"],
    [["--resource", "PLANET=flow://shop"], "GRANT_INVALID"],
    [["--resource", "RESOURCE=flow://shop/../bank"], "GRANT_INVALID"],
    [["--constraints", "{"], "--constraints must be a JSON object"],
    [["--constraints", "[]"], "--constraints must be a JSON object"],
    [["--constraints", '{"moon":"full"}'], "moon"],
    [["--expires-in", "0s"], "--expires-in must be like"],
    [["--expires-in", "forever"], "--expires-in must be like"],
    [["--subject", "ada"], "--subject must be kind:id"],
    [["--subject", "robot:ada"], "GRANT_INVALID"],
    [["--revision", "-1"], "--revision"],
    [["--revision=x"], "--revision must be a whole number"],
    [["--id", "x".repeat(600)], "GRANT_INVALID"],
    [["stray"], '"stray" belongs to no flag'],
    [["--tenant", ""], "--tenant is missing"],
  ])("issue with %j is refused: %s", async (flags, expected) => {
    const { path } = await keyFile();
    expect(await refusal("grant", ["issue", "--key", path, ...wanted, ...flags])).toContain(expected);
  });

  it.each(["--key", "--issuer", "--subject", "--tenant", "--application", "--capability", "--resource"])(
    "issue without %s is refused by that name",
    async (flag) => {
      const { path } = await keyFile();
      const all = ["--key", path, ...wanted];
      const at = all.indexOf(flag);
      expect(await refusal("grant", ["issue", ...all.slice(0, at), ...all.slice(at + 2)])).toContain(
        `${flag} is missing`,
      );
    },
  );

  it("refuses key files that are none, without showing them", async () => {
    const folder = await makeFolder();
    const key = await makeKey();
    const { d, ...publicPart } = key.jwk;
    const cases: [unknown, string][] = [
      ["no json", "is not JSON"],
      [{}, "is no Ed25519 key"],
      [publicPart, "has no private part"],
      [{ ...publicPart, d: "AAAA" }, "has a private part that does not fit"],
      [{ ...publicPart, d: (await makeKey()).jwk.d }, "has a private part that does not fit"],
    ];
    for (const [index, [content, expected]] of cases.entries()) {
      const path = await writeKey(folder, `${index}.json`, content);
      const message = await refusal("grant", ["issue", "--key", path, ...wanted]);
      expect(message).toContain(expected);
      expect(message).not.toContain(d);
    }
  });

  it.each<[readonly string[], string]>([
    [["inspect"], "there is no grant"],
    [["inspect", "/nowhere"], "/nowhere can't be read"],
    [["inspect", "a", "b"], "takes one file"],
    [["revoke"], "name one of"],
    [["revoke", "--tenant", "--application"], "name one of"],
    [["revoke", "--tenant", "--below-revision", "2"], "--below-revision"],
    [["revoke", "--grant", "g", "--below-revision", "0"], "--below-revision"],
    [["revoke", "--grant", "g"], "there is no grant"],
    [["revoke", "--subject", "ada"], "kind:id"],
    [["forge"], "there is no command mandate grant forge"],
  ])("%j is refused: %s", async (args, expected) => {
    expect(await refusal("grant", args)).toContain(expected);
  });
});
