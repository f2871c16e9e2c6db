/**
 * Goal: on NATS nobody does, hears or learns what his key does not give him (contract 4.3): a worker lives its whole life
 * with its own application and reaches nothing else, the bucket belongs to the nodes, and nothing is said without TLS.
 * Method: three real nats-servers in the secure profile, a node, the library's workers; beside them connections with the
 * same keys that try by hand whatever a bad worker would. That a refusal is one is told by the server, and by nothing
 * having arrived or changed.
 */
import { randomUUID } from "node:crypto";
import { connect as connectSocket } from "node:net";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { nkeyAuthenticator, nkeys, PermissionViolationError, type NatsConnection } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import { startNatsCluster, type NatsCluster } from "../../cluster/nats-cluster.ts";
import { poll } from "../../cluster/poll.ts";
import { assert } from "../../src/base/assert.ts";
import { silentLog } from "../../src/base/log.ts";
import type { Check } from "../../src/doctor/check.ts";
import { checkStore } from "../../src/doctor/store-checks.ts";
import { connect, type Client } from "../../src/sdk/client.ts";
import { runWorker } from "../../src/sdk/worker.ts";
import { openJetstreamStore } from "../../src/store/jetstream/jetstream-store.ts";
import { acme, globex, SecureSetting } from "./secure-setting.ts";

let setting: SecureSetting;
let client: Client;

beforeAll(async () => {
  setting = await SecureSetting.start();
  const node = await setting.startReadyNode();
  client = connect({ url: node.url, subject: { kind: "service", id: "tester" } });
});
afterAll(() => setting.close());

async function admit(scope: { readonly tenantId: string; readonly applicationId: string }): Promise<string> {
  const { workload } = await client.admit({
    ...scope,
    environment: "test",
    definitionId: "definition",
    definitionRevision: "1",
    trigger: "test",
    input: { secretOf: scope.tenantId },
    idempotencyKey: randomUUID(),
  });
  return workload.workloadId;
}

/** What NATS says to a request: the answer's text, or the subject that it refuses. */
async function ask(connection: NatsConnection, subject: string, payload = "{}"): Promise<string> {
  try {
    return (await connection.request(subject, payload, { timeout: 5_000 })).string();
  } catch (thrown) {
    for (let cause = thrown; cause instanceof Error; cause = cause.cause)
      if (cause instanceof PermissionViolationError) return `forbidden: ${cause.subject}`;
    throw thrown;
  }
}

/** Whether NATS refuses a subscription. */
async function mayHear(connection: NatsConnection, subject: string): Promise<boolean> {
  let refused = false;
  const subscription = connection.subscribe(subject, {
    callback: (error) => {
      refused ||= error instanceof PermissionViolationError;
    },
  });
  await connection.flush();
  await connection.flush();
  subscription.unsubscribe();
  return !refused;
}

describe("a worker with its key", () => {
  test.each([
    ["of an application", acme, { ...acme, name: "any" }],
    ["of another tenant's application", globex, { ...globex, name: "any" }],
  ])("%s does its whole life, and gets its own work alone", async (_name, scope, worker) => {
    const [own, foreign] = await Promise.all([admit(scope), admit(scope === acme ? globex : acme)]);
    const seen: unknown[] = [];
    const running = await runWorker({
      servers: setting.nats.urls,
      ...worker,
      leaseMs: 1_500,
      waitMs: 300,
      handleSignals: false,
      login: { nkeySeed: await setting.seedOf(scope), tls: { caFile: setting.profile.caFile } },
      handler: async (work) => {
        seen.push(work.input);
        await work.checkpoint({ at: 1 });
        await work.heartbeat();
        return { done: true };
      },
    });
    try {
      const outcome = await client.result(own, { waitMs: 30_000 });
      expect(outcome.state).toBe("SUCCEEDED");
      expect(seen).toEqual([{ secretOf: scope.tenantId }]);
      expect((await client.get(foreign)).state).toBe("READY");
    } finally {
      await running.stop();
    }
    await client.cancel(foreign, { reason: "not wanted" });
  });

  test("can't ask for, answer for or listen to another application", async () => {
    const bad = await setting.connectAs(acme);
    const id = await admit(globex);
    for (const verb of ["work.next", "work.claim", "work.complete", "work.end-next"])
      expect(await ask(bad, `mandate.v1.globex.shop.${verb}`)).toMatch(/^forbidden/);
    // By its own subject it does not get there either.
    const claim = await ask(
      bad,
      "mandate.v1.acme.shop.work.claim",
      JSON.stringify({ workloadId: id, workerId: "w", leaseMs: 1_000 }),
    );
    expect(claim).not.toContain("globex");
    expect(JSON.parse(claim)).toMatchObject({ code: "WORKLOAD_NOT_FOUND" });
    for (const subject of [
      ">",
      "*.>",
      "mandate.>",
      "mandate.v1.*.*.>",
      "mandate.v1.acme.shop.work.next",
      "mandate.v1.globex.shop.>",
      "_INBOX.>",
      "_INBOX.globex.>",
      "_INBOX.*.shop.>",
      "_R_.>",
      "$KV.>",
      "$JS.>",
      "$SRV.>",
      "$SYS.>",
    ])
      expect([subject, await mayHear(bad, subject)]).toEqual([subject, false]);
    expect(await mayHear(bad, "_INBOX.acme.shop.x.*")).toBe(true);
    expect((await client.get(id)).state).toBe("READY");
    await client.cancel(id, { reason: "not wanted" });
  });

  test("of one name does not hear the other workers of its application", async () => {
    const named = await setting.connectAs(setting.namedWorker);
    expect(await mayHear(named, "_INBOX.acme.shop.named.*")).toBe(true);
    for (const subject of ["_INBOX.acme.shop.>", "_INBOX.acme.shop.other.*"])
      expect([subject, await mayHear(named, subject)]).toEqual([subject, false]);
  });

  test("reads, writes, purges and follows nothing of the store", async () => {
    const bad = await setting.connectAs(acme);
    const node = await setting.connectAsNode();
    const stream = "KV_mandate_main_0";
    const before = (await (await jetstreamManager(node, { checkAPI: false })).streams.info(stream)).state;
    for (const [subject, payload] of [
      ["$KV.mandate_main_0.w.acme.shop.x", "junk"],
      [`$JS.API.STREAM.MSG.GET.${stream}`, '{"seq":1}'],
      [`$JS.API.DIRECT.GET.${stream}`, '{"seq":1}'],
      [`$JS.API.STREAM.INFO.${stream}`, ""],
      ["$JS.API.STREAM.NAMES", ""],
      [`$JS.API.STREAM.PURGE.${stream}`, ""],
      [`$JS.API.STREAM.DELETE.${stream}`, ""],
      ["$JS.API.STREAM.CREATE.mine", '{"name":"mine","subjects":["mandate.>"]}'],
      [`$JS.API.CONSUMER.CREATE.${stream}.mine`, "{}"],
      ["$JS.API.INFO", ""],
      ["$SYS.REQ.SERVER.PING", ""],
    ] as const)
      expect([subject, await ask(bad, subject, payload)]).toEqual([subject, `forbidden: ${subject}`]);
    const after = (await (await jetstreamManager(node, { checkAPI: false })).streams.info(stream)).state;
    expect(after.first_seq).toBeLessThanOrEqual(before.last_seq);
    expect(after.last_seq).toBeGreaterThanOrEqual(before.last_seq);
    expect(after.consumer_count).toBe(before.consumer_count);
  });

  test("has no node write to the store or to a stranger's inbox on its behalf", async () => {
    const [bad, victim, node] = await Promise.all([
      setting.connectAs(acme),
      setting.connectAs(globex),
      setting.connectAsNode(),
    ]);
    const heard: string[] = [];
    victim.subscribe("_INBOX.globex.shop.victim.*", {
      callback: (_error, message) => void heard.push(message.string()),
    });
    await victim.flush();
    const manager = await jetstreamManager(node, { checkAPI: false });
    for (const reply of [
      "$KV.mandate_main_0.w.acme.shop.x",
      "$KV.mandate_main_1.w.acme.shop.x",
      "$JS.API.CONSUMER.CREATE.KV_mandate_main_0.bad",
      "mandate.v1.globex.shop.work.next",
      "_INBOX.globex.shop.victim.1",
    ])
      bad.publish("mandate.v1.acme.shop.work.next", '{"workerId":"w","leaseMs":1000}', { reply });
    // The node has answered all of them when it answers this.
    await ask(bad, "mandate.v1.acme.shop.work.next", '{"workerId":"w","leaseMs":1000}');
    await node.flush();
    await victim.flush();
    for (const shard of [0, 1]) {
      const subject = `$KV.mandate_main_${shard}.w.acme.shop.x`;
      const { state } = await manager.streams.info(`KV_mandate_main_${shard}`, { subjects_filter: subject });
      expect(state.subjects ?? {}).toEqual({});
    }
    expect(heard).toEqual([]);
  });

  test("is told nothing by discovery, which nodes and operators have", async () => {
    const bad = await setting.connectAs(acme);
    for (const subject of ["$SRV.PING", "$SRV.INFO", "$SRV.STATS.mandate"])
      expect(await ask(bad, subject, "")).toBe(`forbidden: ${subject}`);
    expect(await ask(await setting.connectAsNode(), "$SRV.PING", "")).toContain('"name":"mandate"');
  });

  test("that asks for what it may not is told so by the library, and does not try for ever", async () => {
    const running = await runWorker({
      servers: setting.nats.urls,
      ...globex,
      name: "impostor",
      handleSignals: false,
      login: {
        nkeySeed: await setting.seedOf(acme),
        tls: { caFile: setting.profile.caFile },
        inboxPrefix: "_INBOX.acme.shop.impostor",
      },
      handler: () => null,
    });
    await expect(running.ended).rejects.toMatchObject({ code: "WORKLOAD_UNAUTHORIZED" });
  });
});

describe("without the right key", () => {
  const login = (): { readonly tls: { readonly caFile: string } } => ({ tls: { caFile: setting.profile.caFile } });
  const options = { ...acme, name: "stranger", handleSignals: false, handler: () => null };

  test("nobody is let in: no key, or one that nobody gave", async () => {
    const servers = setting.nats.urls;
    const stranger = new TextDecoder().decode(nkeys.createUser().getSeed());
    await expect(runWorker({ ...options, servers, login: login() })).rejects.toMatchObject({
      code: "WORKLOAD_UNAUTHORIZED",
    });
    await expect(runWorker({ ...options, servers, login: { ...login(), nkeySeed: stranger } })).rejects.toMatchObject({
      code: "WORKLOAD_UNAUTHORIZED",
    });
    await expect(setting.connect({ authenticator: nkeyAuthenticator(nkeys.createUser().getSeed()) })).rejects.toThrow(
      /Authorization/,
    );
  });

  test("nothing is said without TLS, and not to a server that nobody vouches for", async () => {
    const nkeySeed = await setting.seedOf(acme);
    await expect(runWorker({ ...options, servers: setting.nats.urls, login: { nkeySeed } })).rejects.toThrow(
      /not trusted/,
    );
    const { port } = new URL(setting.nats.urls[0] ?? "");
    const socket = connectSocket({ host: "127.0.0.1", port: Number(port) });
    setting.onClose(() => Promise.resolve(socket.destroy()));
    await once(socket, "data");
    const ended = once(socket, "close");
    socket.on("error", () => undefined);
    socket.write('CONNECT {"verbose":false,"tls_required":false}\r\nPING\r\n');
    socket.resume();
    await ended;
  });

  test("a server that is none of the deployment's can't join it by its route port", async () => {
    const routes = await setting.nats.servers[0]?.monitor("/routez");
    assert(typeof routes === "object" && routes !== null && "num_routes" in routes, "the server tells its routes");
    const first = await setting.nats.servers[0]?.monitor("/varz");
    const port = (first as { cluster: { cluster_port: number } }).cluster.cluster_port;
    const socket = connectSocket({ host: "127.0.0.1", port });
    setting.onClose(() => Promise.resolve(socket.destroy()));
    socket.on("error", () => undefined);
    const ended = once(socket, "close");
    socket.write('INFO {"server_id":"X","name":"x","cluster":"mandate"}\r\nCONNECT {"name":"x"}\r\nPING\r\n');
    socket.resume();
    await ended;
    expect(await setting.nats.servers[0]?.monitor("/routez")).toMatchObject({ num_routes: routes.num_routes });
  });
});

test("a node's key gives it the right to follow more than fits into one breath", async () => {
  const store = await openJetstreamStore({
    ...{ servers: setting.nats.urls, epoch: "main", shards: 2, replicas: 3, storage: "memory", create: false },
    ...{ clientId: "follower", connection: setting.nodeConnection() },
  });
  setting.onClose(() => store.close());
  const node = await setting.connectAsNode();
  // A family of keys that no node follows. So many bytes are sent in portions, each asked for by the follower.
  const records = 3_000;
  for (let record = 0; record < records; record++)
    node.publish(`$KV.mandate_main_0.z.t.a.${record}`, new Uint8Array(2_000));
  await node.flush();
  let seen = 0;
  const follower = store.shards[0]?.follow({
    families: ["z"],
    onEntry: () => (seen += 1),
    onState: () => undefined,
  });
  const all = await poll(() => (seen === records ? true : undefined), { timeoutMs: 20_000 });
  await follower?.stop();
  expect([all, seen]).toEqual([true, records]);
});

describe("a node whose key does not give it what it needs", () => {
  test("says which right it lacks, in one line, and does not start", async () => {
    const seedFile = setting.profile.workerSeedFiles[0] ?? "";
    const node = await setting.startNode({ seedFile });
    await expect(node.run()).rejects.toThrow(
      /NATS does not let this user (publish|subscribe) to (\$JS\.API\.STREAM\.INFO\.KV_mandate_main_0|_INBOX\.)/,
    );
    expect((await fetch(`${node.url}/readyz`)).status).toBe(503);
  });

  test("waits, and says why, while NATS does not know its key", async () => {
    const seedFile = join(setting.directory, "unknown.seed");
    await writeFile(seedFile, nkeys.createUser().getSeed());
    const causes: string[] = [];
    const log = { ...silentLog, warn: (fields: object) => void causes.push(JSON.stringify(fields)) };
    const node = await setting.startNode({ seedFile, log });
    const running = node.run().catch(() => undefined);
    const told = await poll(() => causes.find((cause) => cause.includes("Authorization Violation")), {
      timeoutMs: 20_000,
    });
    expect(told).toContain("no NATS server can be reached");
    expect((await fetch(`${node.url}/readyz`)).status).toBe(503);
    await node.stop();
    await running;
  });
});

describe("doctor", () => {
  const look = async (nats: NatsCluster, connection: NodeConnectionOptions): Promise<readonly Check[]> =>
    checkStore({
      servers: nats.urls,
      connection,
      ...{ epoch: "main", shards: 2, storage: "memory", replicas: nats.servers.length === 1 ? 1 : 3 },
    });

  test("finds a store that only the nodes see", async () => {
    const checks = await look(setting.nats, setting.nodeConnection());
    expect(checks.filter(({ verdict }) => verdict !== "ok")).toEqual([]);
    expect(checks.map(({ name }) => name)).toContain("access");
  });

  test("finds a store that anybody sees, though the node shows who it is", async () => {
    const nats = await startNatsCluster({ servers: 1, directory: join(setting.directory, "open") });
    setting.onClose(() => nats.killAll());
    const where = { servers: nats.urls, epoch: "main", shards: 2, replicas: 1, storage: "memory" } as const;
    const store = await openJetstreamStore({ ...where, create: true, clientId: "test" });
    setting.onClose(() => store.close());
    const verdict = async (connection: NodeConnectionOptions): Promise<string | undefined> =>
      (await look(nats, connection)).find(({ name }) => name === "access")?.verdict;
    expect(await verdict({ token: "of no use" })).toBe("failure");
    expect(await verdict({})).toBe("skipped");
  });
});

describe("a key that is taken away", () => {
  test("ends its connections as soon as the servers read their configuration again, and touches no others", async () => {
    const [gone, stays] = await Promise.all([setting.connectAs(setting.namedWorker), setting.connectAs(acme)]);
    const seed = new TextEncoder().encode((await setting.seedOf(setting.namedWorker)).trim());
    const publicKey = nkeys.fromSeed(seed).getPublicKey();
    for (const server of setting.nats.servers) {
      const file = join(server.directory, "nats-server.conf");
      const text = await readFile(file, "utf8");
      expect(text).toContain(publicKey);
      await writeFile(file, text.replaceAll(publicKey, nkeys.createUser().getPublicKey()));
      process.kill(server.pid ?? 0, "SIGHUP");
    }
    await gone.closed();
    const again = (): Promise<string> =>
      setting.connectAs(setting.namedWorker).then(
        () => "let in",
        (thrown: unknown) => String(thrown),
      );
    // The three servers read at their own pace, and any of them may be asked.
    const refused = await poll(async () => (/Authorization/.test(await again()) ? true : undefined), {
      timeoutMs: 10_000,
    });
    expect(refused).toBe(true);
    expect(await ask(stays, "mandate.v1.acme.shop.work.next", '{"workerId":"w","leaseMs":1000}')).toBe("[]");
  });
});
