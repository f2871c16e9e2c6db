/**
 * Goal: a token is a grant only if a known key signed exactly it; anything else is a typed refusal that says nothing of
 * the token.
 * Method: real keys; each rule of the format broken in a token that is signed all the same; random bytes, random edits
 * and random JSON.
 */
import fc from "fast-check";
import { CompactSign, importJWK, SignJWT } from "jose";
import { createHmac } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { CHAIN_LENGTH_MAX, type Grant } from "../../../src/core/grant/grant.ts";
import { hasDuplicateMember } from "../../../src/grants/duplicate-members.ts";
import { delegateGrant, issueGrant } from "../../../src/grants/sign-token.ts";
import { GRANT_TYPE, TOKEN_BYTES_MAX } from "../../../src/grants/token-format.ts";
import { verifyToken, type SignedGrant } from "../../../src/grants/verify-token.ts";
import { renderGrantClaims } from "../../../src/wire/grant-claims.ts";
import { childOf, grantOf, NOW } from "./grant-fixtures.ts";
import { codeOf, makeKey, type TestKey } from "./token-fixtures.ts";

let key: TestKey;
let other: TestKey;
beforeAll(async () => {
  [key, other] = await Promise.all([makeKey(), makeKey()]);
});

const find = (kid: string) => [key, other].find((each) => each.kid === kid)?.signing.publicKey;
const verify = (token: string) => verifyToken(token, find);

async function issued(grant: Grant = grantOf()): Promise<string> {
  const token = await issueGrant(grant, key.signing);
  if (!token.ok) throw new TypeError(token.error.message);
  return token.value;
}

/** Signs anything, as an issuer would that does not know the rules. */
async function signed(
  payload: unknown,
  how: { readonly header?: { readonly [name: string]: unknown }; readonly by?: TestKey } = {},
): Promise<string> {
  const by = how.by ?? key;
  const bytes = new TextEncoder().encode(typeof payload === "string" ? payload : JSON.stringify(payload));
  const header = { alg: "EdDSA", kid: by.kid, typ: GRANT_TYPE, ...how.header };
  return new CompactSign(bytes).setProtectedHeader(header).sign(await importJWK(by.jwk, "EdDSA"));
}

const claims = (changes: object = {}): object => ({ ...renderGrantClaims({ grant: grantOf() }), ...changes });
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

async function refusedAs(token: string): Promise<unknown> {
  const result = await verify(token);
  if (!result.ok && token.length > 40) {
    const said = JSON.stringify(result.error);
    for (const part of token.split(".")) if (part.length > 20) expect(said).not.toContain(part);
  }
  return codeOf(result);
}

describe("a token", () => {
  it("brings back the grant that was signed, to the millisecond", async () => {
    const grant = grantOf({
      issuedAt: NOW - 1,
      expiresAt: NOW + 123,
      capabilities: ["a", "b"],
      constraints: { environments: ["test"], network: "10.0.0.0/8", subjectAttributes: { team: "blue" } },
      subject: { kind: "human", id: "Ada: the first, Gräfin" },
      status: "SUPERSEDED",
    });
    expect(await verify(await issued(grant))).toEqual({ ok: true, value: { grant, chain: [] } });
  });

  it("is a JWT that any library reads", async () => {
    const [head = "", body = ""] = (await issued()).split(".");
    expect(JSON.parse(Buffer.from(head, "base64url").toString())).toEqual({
      alg: "EdDSA",
      kid: key.kid,
      typ: "mandate-grant+jwt",
    });
    expect(JSON.parse(Buffer.from(body, "base64url").toString())).toMatchObject({
      jti: "grant-1",
      iss: "service:issuer",
      sub: "service:orders",
      iat: (NOW - 60_000) / 1000,
      exp: (NOW + 3_600_000) / 1000,
    });
  });

  it.each<[string, () => Promise<string> | string]>([
    ["nothing", () => ""],
    ["no token", () => "Bearer"],
    ["two parts", async () => (await issued()).split(".").slice(0, 2).join(".")],
    ["four parts", async () => `${await issued()}.x`],
    ["an empty signature", async () => `${(await issued()).split(".").slice(0, 2).join(".")}.`],
    ["a space around it", async () => ` ${await issued()}`],
    ["padding", async () => `${await issued()}==`],
    ["a key that nobody knows", async () => signed(claims(), { by: await makeKey() })],
    ["the kid of another key", () => signed(claims(), { by: other, header: { kid: key.kid } })],
    ["no kid", () => signed(claims(), { header: { kid: undefined } })],
    ["a kid that is no text", () => signed(claims(), { header: { kid: 1 } })],
    ["another typ", () => signed(claims(), { header: { typ: "JWT" } })],
    ["no typ", () => signed(claims(), { header: { typ: undefined } })],
    ["a jwk of its own", () => signed(claims(), { header: { jwk: other.signing.publicKey.jwk } })],
    ["alg none", async () => `${base64({ alg: "none", kid: key.kid, typ: GRANT_TYPE })}.${base64(claims())}.`],
    [
      "alg none, signed",
      async () => `${base64({ alg: "none", kid: key.kid, typ: GRANT_TYPE })}.${base64(claims())}.AA`,
    ],
    ["a payload that is no object", () => signed([1])],
    ["a payload that is null", () => signed("null")],
    ["a payload that is no JSON", () => signed("{")],
    ["no payload", () => signed("")],
    ["a payload that is no UTF-8", async () => signed(Buffer.from([0x7b, 0xff, 0x7d]).toString("latin1"))],
    ["a member twice", () => signed(JSON.stringify(claims()).replace("{", '{"jti":"grant-0",'))],
    ["a member twice, escaped", () => signed(JSON.stringify(claims()).replace("{", '{"\\u006ati":"grant-0",'))],
    [
      "a member twice, deep",
      () =>
        signed(claims({ constraints: 1 })).then(() =>
          signed(
            JSON.stringify(claims()).replace('"constraints":{}', '"constraints":{"workloadId":"a","workloadId":"b"}'),
          ),
        ),
    ],
    ["deep nesting", () => signed(`${"[".repeat(4000)}${"]".repeat(4000)}`)],
    [
      "deep nesting in a claim",
      () =>
        signed(
          JSON.stringify(claims()).replace('"constraints":{}', `"constraints":${"[".repeat(3000)}${"]".repeat(3000)}`),
        ),
    ],
    ["a claim that is not known", () => signed(claims({ nbf: 1 }))],
    ["a constraint that is not known", () => signed(claims({ constraints: { moon: "full" } }))],
    ["a constraint of the wrong type", () => signed(claims({ constraints: { environments: "test" } }))],
    ["a network that is none", () => signed(claims({ constraints: { network: "home" } }))],
    [
      "a member named __proto__",
      () => signed(JSON.stringify(claims()).replace("{", '{"__proto__":{"status":"ACTIVE"},')),
    ],
    ["another contract version", () => signed(claims({ contractVersion: 2 }))],
    ["no id", () => signed(claims({ jti: undefined }))],
    ["an id with a line end", () => signed(claims({ jti: "a\nb" }))],
    ["a lone surrogate", () => signed(JSON.stringify(claims()).replace("grant-1", "\\ud800"))],
    ["a subject without a kind", () => signed(claims({ sub: "orders" }))],
    ["a subject of no kind", () => signed(claims({ sub: "robot:orders" }))],
    ["a resource of no kind", () => signed(claims({ resources: [{ kind: "PLANET", uri: "flow://shop" }] }))],
    ["a malformed resource", () => signed(claims({ resources: [{ kind: "RESOURCE", uri: "flow://shop/../x" }] }))],
    ["times as text", () => signed(claims({ iat: "1" }))],
    ["a negative time", () => signed(claims({ iat: -1 }))],
    ["a time beyond all", () => signed(claims({ exp: 1e300 }))],
    ["an expiry before its issue", () => signed(claims({ exp: 1 }))],
    ["a chain and no parent", async () => signed(claims({ chain: [await issued(), await issued()] }))],
    ["a chain of one", async () => signed(claims({ parentGrant: "p", chain: [await issued()] }))],
    ["a chain of too many", async () => signed(claims({ parentGrant: "p", chain: Array(9).fill(await issued()) }))],
    ["a chain that is no token's", () => signed(claims({ parentGrant: "p", chain: ["x.y.z", "x.y.z"] }))],
    [
      "a chain that begins with another",
      async () => signed(claims({ parentGrant: "p", chain: [await issued(), await issued()] })),
    ],
    ["a status that is none", () => signed(claims({ status: "FINE" }))],
    ["a revision that is no whole number", () => signed(claims({ revision: 1.5 }))],
    ["too many capabilities", () => signed(claims({ capabilities: Array.from({ length: 257 }, (_, n) => `c${n}`) }))],
    ["an id that is too long", () => signed(claims({ jti: "x".repeat(513) }))],
    [
      "too many bytes",
      () =>
        signed(
          claims({
            constraints: {
              contextAttributes: Object.fromEntries(
                Array.from({ length: 200 }, (_, n) => [`name${n}`, "x".repeat(80)]),
              ),
            },
          }),
        ),
    ],
  ])("with %s is refused as GRANT_INVALID", async (_what, make) => {
    expect(await refusedAs(await make())).toBe("GRANT_INVALID");
  });

  it("signed with a secret that is the public key is refused", async () => {
    const secret = Buffer.from(key.jwk.x ?? "", "base64url");
    const head = base64({ alg: "HS256", kid: key.kid, typ: GRANT_TYPE });
    const body = base64(claims());
    const mac = createHmac("sha256", secret).update(`${head}.${body}`).digest("base64url");
    expect(await refusedAs(`${head}.${body}.${mac}`)).toBe("GRANT_INVALID");
    const jwt = await new SignJWT({}).setProtectedHeader({ alg: "HS256", kid: key.kid, typ: GRANT_TYPE }).sign(secret);
    expect(await refusedAs(jwt)).toBe("GRANT_INVALID");
  });

  it("is one text for one grant: another spelling of its bytes is refused", async () => {
    const token = await issued();
    const [head = "", body = "", signature = ""] = token.split(".");
    // 64 bytes leave four bits of the last character unused.
    const last = signature.at(-1) ?? "";
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const twin = alphabet.charAt((alphabet.indexOf(last) & ~15) | ((alphabet.indexOf(last) + 1) & 15));
    const respelled = signature.slice(0, -1) + twin;
    expect(Buffer.from(respelled, "base64url")).toEqual(Buffer.from(signature, "base64url"));
    expect(await refusedAs(`${head}.${body}.${respelled}`)).toBe("GRANT_INVALID");
    expect(await refusedAs(token)).toBe("ok");
  });

  it("with any one character changed is refused", async () => {
    const token = await issued();
    await fc.assert(
      fc.asyncProperty(
        fc.nat(token.length - 1),
        fc.constantFrom("A", "Z", "a", "z", "0", "9", "-", "_", ".", "=", "é"),
        async (at, character) => {
          if (token[at] === character) return;
          expect(await refusedAs(token.slice(0, at) + character + token.slice(at + 1))).toBe("GRANT_INVALID");
        },
      ),
      { numRuns: 400 },
    );
  });

  it("made of anything at all is refused, and never more than that", async () => {
    const part = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.json().map((json) => Buffer.from(json).toString("base64url")),
      fc.uint8Array().map((bytes) => Buffer.from(bytes).toString("base64url")),
    );
    const token = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(part, { maxLength: 5 }).map((parts) => parts.join(".")),
    );
    await fc.assert(
      fc.asyncProperty(token, async (text) => {
        expect(await refusedAs(text)).toBe("GRANT_INVALID");
      }),
      { numRuns: 500 },
    );
  });

  it("with any content that is signed is a grant or refused", async () => {
    const known = Object.keys(claims());
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...known, "parentGrant", "chain", "extra"),
        fc.jsonValue(),
        async (name, value) => {
          expect(["ok", "GRANT_INVALID"]).toContain(await refusedAs(await signed(claims({ [name]: value }))));
        },
      ),
      { numRuns: 200 },
    );
  });

  it("of a tenth of the world's size is refused without being read", async () => {
    const huge = `${"A".repeat(8_000_000)}.${"A".repeat(8_000_000)}.AA`;
    expect(await refusedAs(huge)).toBe("GRANT_INVALID");
  });
});

describe("a delegated token", () => {
  async function delegated(grant: Grant, parentToken: string): Promise<string> {
    const parent = await verify(parentToken);
    if (!parent.ok) throw new TypeError(parent.error.message);
    const token = await delegateGrant(grant, { key: other.signing, parent: parent.value, parentToken });
    if (!token.ok) throw new TypeError(token.error.message);
    return token.value;
  }

  it("carries its ancestors, each verified by its own signature", async () => {
    const first = await issued();
    const child = childOf(grantOf());
    const token = await delegated(child, first);
    const expected: SignedGrant = { grant: child, chain: [grantOf()] };
    expect(await verify(token)).toEqual({ ok: true, value: expected });
    expect(codeOf(await verifyToken(token, (kid) => (kid === key.kid ? undefined : find(kid))))).toBe("GRANT_INVALID");
    expect(codeOf(await verifyToken(token, (kid) => (kid === other.kid ? undefined : find(kid))))).toBe(
      "GRANT_INVALID",
    );
  });

  it("says nothing without its chain, and not more than its own token says", async () => {
    const token = await delegated(childOf(grantOf()), await issued());
    const body = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as {
      readonly chain: readonly string[];
    };
    const [own = "", parent = ""] = body.chain;
    expect(await verify(own)).toEqual({ ok: true, value: { grant: childOf(grantOf()), chain: [] } });
    const forged = { ...body, capabilities: ["workload:read"] };
    expect(await refusedAs(await signed(forged))).toBe("GRANT_INVALID");
    expect(await refusedAs(await signed({ ...body, chain: [own, token] }))).toBe("GRANT_INVALID");
    expect(await refusedAs(await signed({ ...body, chain: [own, parent] }))).toBe("ok");
  });

  it("is not signed outside its parent", async () => {
    const parentToken = await issued();
    const parent = { grant: grantOf(), chain: [] };
    const wider = childOf(grantOf(), { capabilities: ["workload:create", "worker:manage"] });
    const refused = await delegateGrant(wider, { key: key.signing, parent, parentToken });
    expect(codeOf(refused)).toBe("GRANT_DELEGATION_INVALID");
  });

  it("may be the last of a chain of full length, and no longer", async () => {
    const small = { capabilities: ["workload:read"], constraints: {} };
    let grant = grantOf({ ...small, id: "g1", subject: { kind: "agent", id: "a1" } });
    let token = await issued(grant);
    for (let length = 2; length <= CHAIN_LENGTH_MAX; length++) {
      grant = childOf(grant, { id: `g${length}`, subject: { kind: "agent", id: `a${length}` } });
      token = await delegated(grant, token);
    }
    expect(token.length).toBeLessThanOrEqual(TOKEN_BYTES_MAX);
    const verified = await verify(token);
    expect(verified.ok && verified.value.chain).toHaveLength(CHAIN_LENGTH_MAX - 1);
    const parent = verified.ok ? verified.value : { grant, chain: [] };
    const next = childOf(grant, { id: "g9", subject: { kind: "agent", id: "a9" } });
    expect(codeOf(await delegateGrant(next, { key: key.signing, parent, parentToken: token }))).toBe(
      "GRANT_DELEGATION_INVALID",
    );
  });
});

describe("a member that comes twice", () => {
  it.each([
    ['{"a":1,"a":2}', true],
    ['{"a":{"b":1},"c":{"b":2}}', false],
    ['{"a":[{"b":1},{"b":2}],"b":3}', false],
    ['{"a":[1,{"b":1,"b":2}]}', true],
    ['{"a":"{\\"a\\":1","b":"a"}', false],
    ['{"a":"x","\\u0061":1}', true],
    ['{"a":["a","a"],"b":["a",["a"]]}', false],
    ['{"a":{},"a":{}}', true],
    ['{"a,":1,"a":1}', false],
  ])("in %s: %s", (json, expected) => {
    expect(hasDuplicateMember(json)).toBe(expected);
  });

  it("is found wherever it is put, and nowhere else", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value);
        expect(hasDuplicateMember(json)).toBe(false);
        expect(hasDuplicateMember(`[${json},{"k":${json},"x":1,"k":${json}}]`)).toBe(true);
      }),
    );
  });
});
