/**
 * Goal: the two walls of contract 4.3 stand one behind the other: NATS lets a worker reach its own application alone, and
 * the node asks for a grant behind that; neither does for the other.
 * Method: the secure profile with a node that has keys of grants; workers with every mixture of the right and the wrong
 * key and grant. The log is looked at for the warning about HTTP without TLS, and for secrets.
 */
import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { assert } from "../../src/base/assert.ts";
import { silentLog } from "../../src/base/log.ts";
import { capabilities } from "../../src/core/grant/capabilities.ts";
import { issueGrant } from "../../src/grants/sign-token.ts";
import { connect, type Client } from "../../src/sdk/client.ts";
import { runWorker, type RunningWorker } from "../../src/sdk/worker.ts";
import { grantOf } from "../unit/grant/grant-fixtures.ts";
import { makeKey, type TestKey } from "../unit/grant/token-fixtures.ts";
import { acme, globex, SecureSetting } from "./secure-setting.ts";

type Scope = typeof acme | typeof globex;

let setting: SecureSetting;
let key: TestKey;
let client: Client;
const logged: string[] = [];
const issued: string[] = [];

async function grantFor(scope: Scope): Promise<string> {
  const grant = grantOf({
    ...scope,
    id: `grant-${scope.tenantId}`,
    subject: { kind: "service", id: "worker" },
    capabilities: [...capabilities],
    resources: [{ kind: "APPLICATION", uri: `flow://${scope.applicationId}` }],
    issuedAt: Date.now() - 60_000,
    expiresAt: Date.now() + 3_600_000,
  });
  const token = await issueGrant(grant, key.signing);
  assert(token.ok, token.ok ? "" : token.error.message);
  issued.push(token.value);
  return token.value;
}

beforeAll(async () => {
  setting = await SecureSetting.start();
  key = await makeKey();
  const keys = join(setting.directory, "issuer.json");
  await writeFile(keys, JSON.stringify(key.jwk));
  const note = (fields: object, text: string): void => void logged.push(`${JSON.stringify(fields)} ${text}`);
  const node = await setting.startReadyNode({
    environment: { MANDATE_KEYS: keys },
    log: { ...silentLog, info: note, warn: note, error: note, debug: note },
  });
  client = connect({ url: node.url, token: await grantFor(acme) });
});
afterAll(() => setting.close());

async function work(nats: Scope, options: { readonly grant?: Scope; readonly of: Scope }): Promise<RunningWorker> {
  const { grant, of } = options;
  const worker = await runWorker({
    servers: setting.nats.urls,
    ...of,
    name: `worker-${randomUUID()}`,
    ...{ leaseMs: 1_500, waitMs: 300, handleSignals: false },
    login: {
      nkeySeed: await setting.seedOf(nats),
      tls: { caFile: setting.profile.caFile },
      inboxPrefix: `_INBOX.${nats.tenantId}.shop.any`,
    },
    ...(grant === undefined ? {} : { token: await grantFor(grant) }),
    handler: () => ({ done: true }),
  });
  setting.onClose(() => worker.stop());
  return worker;
}

test("a worker with its key and its grant does its application's work", async () => {
  const { workload } = await client.admit({
    ...acme,
    environment: "test",
    definitionId: "definition",
    definitionRevision: "1",
    trigger: "test",
    input: {},
    idempotencyKey: randomUUID(),
  });
  const worker = await work(acme, { grant: acme, of: acme });
  expect((await client.result(workload.workloadId, { waitMs: 30_000 })).state).toBe("SUCCEEDED");
  await worker.stop();
});

test.each([
  ["a key without a grant", acme, { of: acme }, /^GRANT_INVALID$/],
  ["a key with another application's grant", acme, { of: acme, grant: globex }, /^GRANT_SCOPE_DENIED$/],
  ["a grant with another application's key", acme, { of: globex, grant: globex }, /^WORKLOAD_UNAUTHORIZED$/],
] as const)("%s does not do", async (_name, nats, options, code) => {
  const worker = await work(nats, options);
  await expect(worker.ended).rejects.toMatchObject({ code: expect.stringMatching(code) as unknown });
});

test("grants that travel unencrypted are warned of, and no secret is logged", async () => {
  expect(logged.some((line) => line.includes("grants travel unencrypted"))).toBe(true);
  const secrets = [
    ...issued,
    (await setting.seedOf(acme)).trim(),
    (await readFile(setting.profile.nodeSeedFiles[0] ?? "", "utf8")).trim(),
    String(key.jwk.d),
  ];
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(40);
    expect(logged.filter((line) => line.includes(secret))).toEqual([]);
  }
});
