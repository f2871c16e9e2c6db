/**
 * Goal: the rights that are given on NATS are those of contract 4.3, and no identifier widens them or meets another's.
 * Method: rights of awkward identifiers are matched against subjects as a server does it; a real server's word is in
 * test/integration/secure.test.ts.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { authorityProgram } from "../../../cluster/authority-program.ts";
import { renderAccounts } from "../../../cluster/nats-config.ts";
import { applicationAccount, AUTHORITY_ACCOUNT, authorityRights, natsAccounts } from "../../../src/secure/accounts.ts";
import { authorityPermissions, workerPermissions } from "../../../src/secure/permissions.ts";
import { workerInboxPrefix, workerRights } from "../../../src/wire/nats-rights.ts";
import { workSubject } from "../../../src/wire/subjects.ts";

/** Whether a pattern covers a subject or another pattern, by NATS's rules. */
function covers(pattern: string, subject: string): boolean {
  const wanted = pattern.split(".");
  const given = subject.split(".");
  for (const [place, token] of wanted.entries()) {
    if (token === ">") return given.length > place;
    const other = given[place];
    if (other === undefined || other === ">" || (token !== "*" && token !== other)) return false;
  }
  return wanted.length === given.length;
}
const allowed = (patterns: readonly string[], subject: string): boolean =>
  patterns.some((pattern) => covers(pattern, subject));

const long = "x".repeat(512);
const names = ["a", "A", "*", ">", "a.b", "a b", "a*", "=h", "é", "e\u0301", "𝄞", long, `${long.slice(1)}y`];
const scopes = names.flatMap((tenantId) => names.map((applicationId) => ({ tenantId, applicationId })));

describe("a worker's user", () => {
  test("asks for its own application alone, whatever the identifiers", () => {
    for (const scope of scopes) {
      const { publish } = workerRights(scope);
      expect(publish).toHaveLength(1);
      const reached = scopes.filter((other) => allowed(publish, workSubject(other, "work.next")));
      expect(reached).toEqual([scope]);
    }
  });

  test("hears its own answers alone: no two names, applications or tenants share a place to be answered at", () => {
    const places = scopes.flatMap((scope) => names.slice(0, 6).map((name) => workerInboxPrefix({ ...scope, name })));
    expect(new Set(places).size).toBe(places.length);
    for (const place of places) {
      expect(place).toMatch(/^_INBOX(\.[A-Za-z0-9_=-]+){3}$/);
      expect(place.length).toBeLessThan(256);
    }
    const rights = workerRights({ tenantId: "t", applicationId: "a", name: "w" });
    expect(rights.subscribe).toEqual(["_INBOX.t.a.w.>"]);
    for (const subject of ["_INBOX.>", ">", "_INBOX.t.a.>", "_INBOX.t.a.w2.x", "_INBOX.t.a.w", "mandate.>"])
      expect(allowed(rights.subscribe, subject)).toBe(false);
  });

  test("has nothing of the store, of discovery or of the system", () => {
    const { publish, subscribe } = workerRights({ tenantId: "t", applicationId: "a" });
    for (const subject of [
      "$KV.mandate_main_0.w.t.a.x",
      "$JS.API.STREAM.PURGE.KV_mandate_main_0",
      "$JS.API.INFO",
      "$SRV.PING",
      "$SYS.REQ.SERVER.PING",
      "_INBOX.t.b.x",
      "_R_.x",
    ])
      expect([allowed(publish, subject), allowed(subscribe, subject)]).toEqual([false, false]);
  });
});

describe("a node's user", () => {
  const { publish, subscribe } = authorityRights({ epoch: "main", shards: 2 });

  test("writes its own shards and no others", () => {
    expect(allowed(publish, "$KV.mandate_main_1.w.t.a.x")).toBe(true);
    for (const bucket of ["mandate_main_2", "mandate_other_0", "other"])
      expect(allowed(publish, `$KV.${bucket}.w.t.a.x`)).toBe(false);
  });

  test("never purges, deletes or changes a stream, and hears no inbox but of its own account", () => {
    for (const call of ["PURGE", "DELETE", "UPDATE", "MSG.DELETE", "RESTORE", "SNAPSHOT", "LEADER.STEPDOWN"])
      expect(allowed(publish, `$JS.API.STREAM.${call}.KV_mandate_main_0`)).toBe(false);
    expect(allowed(subscribe, workSubject({ tenantId: "t", applicationId: "a" }, "work.next"))).toBe(true);
    expect(allowed(subscribe, "$KV.mandate_main_0.>")).toBe(false);
  });
});

test("each application has an account of its own, which is let into nothing but its requests", () => {
  const acme = { tenantId: "acme", applicationId: "shop" };
  const accounts = natsAccounts({
    epoch: "main",
    shards: 1,
    authorities: [{ publicKey: "UA" }],
    workers: [
      { publicKey: "U1", ...acme },
      { publicKey: "U2", ...acme, name: "w" },
      { publicKey: "U3", tenantId: "other", applicationId: "shop" },
    ],
  });
  const shop = applicationAccount(acme);
  expect(accounts.map(({ name }) => name)).toEqual([AUTHORITY_ACCOUNT, shop, "MANDATE.other.shop"]);
  expect(accounts.map(({ jetstream }) => jetstream === true)).toEqual([true, false, false]);
  expect(accounts[1]?.users.map(({ nkey }) => nkey)).toEqual(["U1", "U2"]);
  expect(accounts[1]?.imports).toEqual([{ service: { account: "MANDATE", subject: "mandate.v1.acme.shop.>" } }]);
  expect(accounts[0]?.exports).toEqual([{ service: "mandate.v1.*.*.>", accounts: [shop, "MANDATE.other.shop"] }]);
  expect(renderAccounts(accounts)).toContain('"jetstream": "enabled"');
  expect(new Set(scopes.map(applicationAccount)).size).toBe(scopes.length);
});

test("what is printed for a platform is what the profile's own accounts have", () => {
  const layout = { epoch: "e", shards: 3 };
  const scope = { tenantId: "a.b", applicationId: "shop", name: "w" };
  const [nodes, workers] = natsAccounts({
    ...layout,
    authorities: [{ publicKey: "UA" }],
    workers: [{ publicKey: "U1", ...scope }],
  });
  const forNode = authorityPermissions(layout);
  expect(forNode).toMatchObject({ account: nodes?.name, permissions: nodes?.users[0]?.permissions, jetstream: true });
  expect(forNode.exports?.map(({ service }) => service)).toEqual(nodes?.exports?.map(({ service }) => service));
  const { inboxPrefix, jetstream, ...forWorker } = workerPermissions(scope);
  expect(forWorker).toEqual({
    account: workers?.name,
    imports: workers?.imports,
    permissions: workers?.users[0]?.permissions,
  });
  expect([jetstream, inboxPrefix]).toEqual([false, workerInboxPrefix(scope)]);
});

test("the command prints it, and names what it lacks", async () => {
  const { program, arguments: args } = authorityProgram();
  const run = (...flags: readonly string[]): Promise<{ readonly stdout: string }> =>
    promisify(execFile)(program, [...args, "nats-permissions", ...flags]);
  const { stdout } = await run("--tenant", "a.b", "--application", "shop");
  expect(JSON.parse(stdout)).toEqual(workerPermissions({ tenantId: "a.b", applicationId: "shop" }));
  await expect(run("--tenant", "a.b")).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--application") as unknown,
  });
  await expect(run("--authority", "--shards", "0")).rejects.toMatchObject({ code: 2 });
});
