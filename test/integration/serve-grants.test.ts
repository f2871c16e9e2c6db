/**
 * Goal: a node with keys takes nobody without a grant; grants, keys and revocations are handled by the commands as an
 * operator would; keys are rotated without a restart; the log never holds a token.
 * Method: the commands as processes, a node as a process, against a real nats-server.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AuthorityProcess } from "../../cluster/authority-process.ts";
import { authorityProgram } from "../../cluster/authority-program.ts";
import { freePorts } from "../../cluster/free-ports.ts";
import { NatsServer } from "../../cluster/nats-server.ts";
import { poll } from "../../cluster/poll.ts";

let directory: string;
let keys: string;
let nats: NatsServer;
let node: AuthorityProcess;
/** The same without keys. */
let open: AuthorityProcess;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-serve-grants-"));
  keys = join(directory, "keys");
  await mkdir(keys);
  const [clientPort = 0, monitorPort = 0, httpPort = 0] = await freePorts([undefined, undefined, undefined]);
  nats = new NatsServer({ name: "n1", directory: join(directory, "n1"), clientPort, monitorPort, sync: "always" });
  const env = {
    MANDATE_NATS_SERVERS: `127.0.0.1:${clientPort}`,
    MANDATE_NATS_MONITOR_URLS: nats.monitorUrl,
    MANDATE_HTTP_PORT: String(httpPort),
    MANDATE_NODE_ID: "a1",
    MANDATE_REPLICAS: "1",
    MANDATE_LOG_LEVEL: "debug",
  };
  const place = { name: "a1", directory: join(directory, "a1"), url: `http://127.0.0.1:${httpPort}` };
  node = new AuthorityProcess({ ...place, env: { ...env, MANDATE_KEYS: keys } });
  open = new AuthorityProcess({ ...place, env });
});

afterEach(async () => {
  await node.kill();
  await open.kill();
  await nats.kill();
  await rm(directory, { recursive: true, force: true });
});

/** Runs a command to its end; answers what it printed. */
function mandate(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { program, arguments: before } = authorityProgram();
  return new Promise((resolve, reject) => {
    execFile(program, [...before, ...args], { env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout.trim());
      else reject(new Error(`mandate ${args.slice(0, 2).join(" ")}: ${stderr}`));
    });
  });
}

const issue = (key: string, subject: string): Promise<string> =>
  mandate([
    ...["grant", "issue", "--key", key, "--issuer", "service:issuer", "--subject", subject],
    ...["--tenant", "acme", "--application", "shop", "--resource", "APPLICATION=flow://shop"],
    ...["--capability", "workload:create,workload:read,authorization:revoke", "--expires-in", "5m"],
  ]);

async function codeOf(token?: string): Promise<string> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${node.url}/v1/workloads`, { headers });
  const { code } = (await response.json()) as { readonly code?: string };
  return `${response.status} ${code ?? ""}`.trim();
}

const comesTo = async (token: string, expected: string): Promise<void> => {
  const found = await poll(async () => ((await codeOf(token)) === expected ? expected : undefined), {
    timeoutMs: 10_000,
  });
  expect(found ?? (await codeOf(token))).toBe(expected);
};

test("a node with keys, its grants, a revocation and a rotation", async () => {
  const [first, second] = [join(directory, "first.json"), join(directory, "second.json")];
  await mandate(["keys", "new", "--out", first]);
  await mandate(["keys", "new", "--out", second]);
  await writeFile(join(keys, "first.json"), await mandate(["keys", "jwks", first]));
  await Promise.all([nats.start(), node.start()]);
  await node.waitReady(30_000);
  const [orders, ops, fresh] = [
    await issue(first, "service:orders"),
    await issue(first, "human:ops"),
    await issue(second, "service:orders2"),
  ];
  expect(await codeOf()).toBe("401 GRANT_INVALID");
  expect(await codeOf(orders)).toBe("200");
  expect(await codeOf(fresh)).toBe("401 GRANT_INVALID");

  const revoked = await mandate(["grant", "revoke", "--subject", "service:orders", "--url", node.url], {
    MANDATE_TOKEN: ops,
  });
  expect(JSON.parse(revoked)).toMatchObject({ target: { kind: "subject", subject: { id: "orders" } } });
  expect(await codeOf(orders)).toBe("401 GRANT_REVOKED");
  expect(await codeOf(ops)).toBe("200");

  // A node that begins anew knows of it from the store.
  await node.stop();
  await node.start();
  await node.waitReady(30_000);
  expect(await codeOf(orders)).toBe("401 GRANT_REVOKED");
  expect(await codeOf(ops)).toBe("200");

  await writeFile(join(keys, "second.json"), await mandate(["keys", "jwks", second]));
  await comesTo(fresh, "200");
  expect(await codeOf(ops)).toBe("200");
  await rm(join(keys, "first.json"));
  await comesTo(ops, "401 GRANT_INVALID");
  expect(await codeOf(fresh)).toBe("200");
  const published = (await (await fetch(`${node.url}/.well-known/jwks.json`)).json()) as { readonly keys: object[] };
  expect(published.keys).toHaveLength(1);

  await node.stop();
  const log = await readFile(node.logPath ?? "", "utf8");
  const lines = log.split("\n").filter((line) => line.startsWith("{"));
  expect(lines.length).toBeGreaterThan(3);
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ mode: "secure" });
  for (const token of [orders, ops, fresh])
    for (const part of token.split(".").slice(1)) expect(log).not.toContain(part.slice(0, 40));
}, 120_000);

test("a node without keys revokes nothing, and the command says why", async () => {
  const key = join(directory, "key.json");
  await mandate(["keys", "new", "--out", key]);
  await Promise.all([nats.start(), open.start()]);
  await open.waitReady(30_000);
  const revoked = mandate(["grant", "revoke", "--subject", "service:orders", "--url", open.url], {
    MANDATE_TOKEN: await issue(key, "human:ops"),
  });
  await expect(revoked).rejects.toThrow(/SUBJECT_REQUIRED: .*; the node has no keys of grants \(MANDATE_KEYS\)/);
}, 60_000);

test("a node whose keys are not good says which file, and does not start", async () => {
  await writeFile(join(keys, "key.json"), '{"kty":"oct","k":"c2VjcmV0"}');
  await node.start();
  expect((await node.exited)?.code).toBe(1);
  const log = await readFile(node.logPath ?? "", "utf8");
  expect(log).toContain("key.json is no Ed25519 key");
  expect(log).not.toContain("c2VjcmV0");
}, 60_000);
