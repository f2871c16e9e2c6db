/**
 * Goal: a worker's call over NATS carries a grant in its header, and each verb asks for its capability on the work or the
 * worker that it is about (contract 4.1, 4.3); a grant that ends while its bearer waits for work ends the waiting.
 * Method: a real nats-server, real tokens; every verb is called with every kind of grant.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { poll } from "../../cluster/poll.ts";
import { assert } from "../../src/base/assert.ts";
import { capabilities, type Capability } from "../../src/core/grant/capabilities.ts";
import type { Grant } from "../../src/core/grant/grant.ts";
import { workerIdOf } from "../../src/core/worker/identity.ts";
import { issueGrant } from "../../src/grants/sign-token.ts";
import { verifyToken } from "../../src/grants/verify-token.ts";
import { servedVerbs, type ServedVerb } from "../../src/nats/verbs.ts";
import { silentLog } from "../../src/base/log.ts";
import { runWorker } from "../../src/sdk/worker.ts";
import { grantOf } from "../unit/grant/grant-fixtures.ts";
import { makeKey, type TestKey } from "../unit/grant/token-fixtures.ts";
import { Signal } from "./sdk-setting.ts";
import { WorkerSetting } from "./worker-setting.ts";

let setting: WorkerSetting;
let key: TestKey;
beforeAll(async () => {
  key = await makeKey();
  const grants = {
    verify: (token: string) => verifyToken(token, (kid) => (kid === key.kid ? key.signing.publicKey : undefined)),
  };
  setting = await WorkerSetting.start(undefined, grants);
}, 60_000);
afterAll(() => setting.close());

const NAME = "w1";
const workerOf = (applicationId: string): string => workerIdOf({ tenantId: "acme", applicationId, name: NAME });

async function issue(applicationId: string, changes: Partial<Grant> = {}): Promise<string> {
  const grant = grantOf({
    applicationId,
    subject: { kind: "service", id: "workers" },
    capabilities: [...capabilities, "worker:capability:gpu"],
    resources: [{ kind: "APPLICATION", uri: `flow://${applicationId}` }],
    issuedAt: Date.now() - 60_000,
    expiresAt: Date.now() + 3_600_000,
    ...changes,
  });
  const token = await issueGrant(grant, key.signing);
  assert(token.ok, token.ok ? "" : token.error.message);
  return token.value;
}

/** Verb → its capability, and what it is about. */
const needs: {
  readonly [Verb in ServedVerb]: readonly [Capability, "workers" | "worker" | "workload" | "workloads/*"];
} = {
  "worker.register": ["worker:register", "workers"],
  "worker.heartbeat": ["worker:heartbeat", "worker"],
  "worker.drain": ["worker:manage", "worker"],
  "worker.reconcile": ["worker:heartbeat", "worker"],
  "work.next": ["workload:claim", "workloads/*"],
  "work.claim": ["workload:claim", "workload"],
  "work.start": ["workload:execute", "workload"],
  "work.heartbeat": ["workload:execute", "workload"],
  "work.context": ["workload:execute", "workload"],
  "work.checkpoint": ["workload:execute", "workload"],
  "work.complete": ["workload:execute", "workload"],
  "work.fail": ["workload:execute", "workload"],
  "work.confirm-cancel": ["workload:execute", "workload"],
  "claim.validate": ["workload:read", "workload"],
};

const isRefusedByGrant = (error: string | undefined): boolean => error?.startsWith("GRANT_") === true;

describe.each(servedVerbs)("%s", (verb) => {
  const [capability, about] = needs[verb];

  async function prepare() {
    const { workloadId, prefix } = await setting.admit();
    const applicationId = prefix.split(".").at(-1) ?? "";
    const workerId = workerOf(applicationId);
    const members = { workloadId, workerId, name: NAME, leaseMs: 1_000 };
    const value =
      verb === "work.next" ? { workerId, leaseMs: 1_000 } : verb === "worker.register" ? { name: NAME } : members;
    const ask = async (changes: Partial<Grant>) =>
      (await setting.askWith(await issue(applicationId, changes), `${prefix}.${verb}`, value)).error;
    const path = { worker: `workers/${workerId}`, workload: `workloads/${workloadId}` }[about as string] ?? about;
    return { applicationId, ask, path, prefix, value };
  }

  it("needs a valid grant", async () => {
    const { applicationId, ask, prefix, value } = await prepare();
    const subject = `${prefix}.${verb}`;
    expect((await setting.ask(subject, value)).error).toBe("GRANT_INVALID");
    expect((await setting.askWith("a.b.c", subject, value)).error).toBe("GRANT_INVALID");
    expect(await ask({ expiresAt: Date.now() - 10_000 })).toBe("GRANT_EXPIRED");
    const foreign = await issue("other", { resources: [{ kind: "APPLICATION", uri: "flow://other" }] });
    expect((await setting.askWith(foreign, subject, value)).error).toBe("GRANT_SCOPE_DENIED");
    const tenant = await issue(applicationId, { tenantId: "bank" });
    expect((await setting.askWith(tenant, subject, value)).error).toBe("GRANT_SCOPE_DENIED");
  });

  it(`lets ${capability} on the ${about} in, and nothing else`, async () => {
    const { applicationId, ask, path } = await prepare();
    const uri = `flow://${applicationId}/${path}`;
    const kind = uri.endsWith("/*") ? "COLLECTION" : "RESOURCE";
    expect(await ask({ capabilities: capabilities.filter((name) => name !== capability) })).toBe("GRANT_SCOPE_DENIED");
    expect(await ask({ resources: [{ kind: "RESOURCE", uri: `flow://${applicationId}/other` }] })).toBe(
      "GRANT_SCOPE_DENIED",
    );
    expect(await ask({ constraints: { contextAttributes: { door: "http" } } })).toBe("GRANT_SCOPE_DENIED");
    const near: Partial<Grant> = { capabilities: [capability], resources: [{ kind, uri }] };
    expect(isRefusedByGrant(await ask({ ...near, constraints: { contextAttributes: { operation: verb } } }))).toBe(
      false,
    );
  });

  it.skipIf(verb === "claim.validate")("lets a worker's grant be used for that worker alone", async () => {
    const { ask } = await prepare();
    expect(await ask({ subject: { kind: "worker", id: "w2" } })).toBe("GRANT_SCOPE_DENIED");
    expect(isRefusedByGrant(await ask({ subject: { kind: "worker", id: NAME } }))).toBe(false);
  });
});

describe("a batch of heartbeats", () => {
  it("is asked of each workload in it", async () => {
    const [one, two] = [await setting.admit(), await setting.admit()];
    const applicationId = one.prefix.split(".").at(-1) ?? "";
    const resources = [{ kind: "WORKLOAD" as const, uri: `flow://${applicationId}/workloads/${one.workloadId}` }];
    const token = await issue(applicationId, { resources });
    const claim = ({ workloadId }: { readonly workloadId: string }) => ({
      ...{ workloadId, workerId: "w1", claimId: "c", fencingToken: 1, extendMs: 1_000 },
    });
    const ask = (claims: readonly object[]) => setting.askWith(token, `${one.prefix}.work.heartbeat`, { claims });
    expect((await ask([claim(one)])).error).toBeUndefined();
    expect((await ask([claim(one), claim(two)])).error).toBe("GRANT_SCOPE_DENIED");
    const own = await issue(applicationId, { subject: { kind: "worker", id: "w1" } });
    const others = { ...claim(one), workerId: "w2" };
    const batch = await setting.askWith(own, `${one.prefix}.work.heartbeat`, { claims: [others, claim(one)] });
    expect(batch.error).toBe("GRANT_SCOPE_DENIED");
    const many = Array.from({ length: 1001 }, (_, index) => ({ ...claim(two), workloadId: `w${index}` }));
    expect((await ask(many)).error).toBe("WORKLOAD_INVALID");
  });
});

describe("a request for any work", () => {
  it.each([
    [{ environments: ["test"] }, { environment: "live" }],
    [{ connectionEnabled: false }, { connectionScopes: ["mail"] }],
    [{ resourceAttributes: { definitionId: "resize" } }, { definitionId: "refund" }],
  ])("under %j is answered with the work that it lets through, and waits for no other", async (constraints, other) => {
    const applicationId = `lanes-${Object.keys(constraints).join("-")}`;
    const token = await issue(applicationId, { constraints });
    const kept = await setting.admit({ applicationId, priority: 9, ...other });
    const subject = `${kept.prefix.split(".").slice(0, -1).join(".")}.${applicationId}.work.next`;
    const asked = { workerId: "w1", leaseMs: 60_000, max: 5 };
    expect((await setting.askWith(token, subject, asked)).body).toEqual([]);
    const waiting = setting.askWith(token, subject, { ...asked, waitMs: 20_000 });
    const given = await setting.admit({ applicationId, idempotencyKey: "k2" });
    expect((await waiting).body).toMatchObject([{ workloadId: given.workloadId }]);
    const all = await setting.askWith(await issue(applicationId), subject, asked);
    expect(all.body).toMatchObject([{ workloadId: kept.workloadId }]);
  });

  it.each([
    { workloadId: "w" },
    { network: "10.0.0.0/8" },
    { minimumSchemaVersion: 3, resourceAttributes: { trigger: "test" } },
    { workerClass: "container" },
  ])("under %j is refused: it could not be told which work it may have", async (constraints) => {
    const { prefix } = await setting.admit();
    const applicationId = prefix.split(".").at(-1) ?? "";
    const token = await issue(applicationId, { constraints });
    expect((await setting.askWith(token, `${prefix}.work.next`, { workerId: "w1", leaseMs: 1_000 })).error).toBe(
      "GRANT_SCOPE_DENIED",
    );
  });

  it("ends, empty, when its grant is revoked while it waits", async () => {
    const { prefix, workloadId } = await setting.admit();
    const applicationId = prefix.split(".").at(-1) ?? "";
    const token = await issue(applicationId, { id: "grant-waiting" });
    const subject = `${prefix}.work.next`;
    const asked = { workerId: "w1", leaseMs: 60_000 };
    const first = await setting.askWith(token, subject, asked);
    expect(first.body).toMatchObject([{ workloadId }]);
    const waiting = setting.askWith(token, subject, { ...asked, waitMs: 60_000 });
    // Requests of one connection come in order: when this one is answered, the one before it waits.
    expect((await setting.askWith(token, subject, { ...asked, workerId: "w2" })).body).toEqual([]);
    const target = { kind: "grant", grantId: "grant-waiting" };
    await setting.authority.call("revoke", { tenantId: "acme", applicationId, target });
    expect((await waiting).body).toEqual([]);
    expect((await setting.askWith(token, subject, asked)).error).toBe("GRANT_REVOKED");
  });
});

describe("a worker that is not in the registry", () => {
  it("can do what its grant says that it can, whatever it says itself", async () => {
    const { workloadId, prefix } = await setting.admit({ capabilities: ["gpu"] });
    const applicationId = prefix.split(".").at(-1) ?? "";
    const asked = { workerId: "w1", capabilities: ["gpu"], leaseMs: 1_000 };
    const plain = await issue(applicationId, { capabilities });
    expect((await setting.askWith(plain, `${prefix}.work.claim`, { ...asked, workloadId })).error).toBe(
      "WORKLOAD_CAPABILITY_DENIED",
    );
    expect((await setting.askWith(plain, `${prefix}.work.next`, asked)).body).toEqual([]);
    const granted = await issue(applicationId);
    expect((await setting.askWith(granted, `${prefix}.work.next`, asked)).body).toMatchObject([{ workloadId }]);
  });
});

describe("a constraint on the worker", () => {
  it.each([
    [{ workerClass: "container" }, true],
    [{ workerClass: "process" }, false],
    [{ subjectAttributes: { "label.zone": "eu" } }, true],
    [{ subjectAttributes: { "label.zone": "us" } }, false],
  ])("%j holds by what the registry knows of it: %s", async (constraints, holds) => {
    const { prefix, workloadId } = await setting.admit();
    const applicationId = prefix.split(".").at(-1) ?? "";
    const described = { name: NAME, runtime: "container", version: "1", labels: { zone: "eu" }, concurrency: 1 };
    const registered = await setting.askWith(await issue(applicationId), `${prefix}.worker.register`, described);
    expect(registered.error).toBeUndefined();
    const token = await issue(applicationId, { constraints });
    const asked = { workloadId, workerId: workerOf(applicationId), leaseMs: 1_000 };
    const { error } = await setting.askWith(token, `${prefix}.work.claim`, asked);
    expect(isRefusedByGrant(error)).toBe(!holds);
    const unknown = await setting.askWith(token, `${prefix}.work.claim`, { ...asked, workerId: "w9" });
    expect(unknown.error).toBe("GRANT_SCOPE_DENIED");
  });
});

describe("a worker of the library", () => {
  it("does its work under its grant, and is refused without one", async () => {
    const { workloadId, prefix } = await setting.admit({ capabilities: ["gpu"] });
    const applicationId = prefix.split(".").at(-1) ?? "";
    const options = {
      ...{ servers: setting.urls, tenantId: "acme", applicationId, name: NAME, capabilities: ["gpu"] },
      handler: () => Promise.resolve({ done: true }),
      handleSignals: false,
    };
    const stranger = await runWorker(options);
    await expect(stranger.ended).rejects.toMatchObject({ code: "GRANT_INVALID" });
    const token = await issue(applicationId, { subject: { kind: "worker", id: NAME } });
    const worker = await runWorker({ ...options, token });
    const { answer } = await setting.authority.waitForSettled(workloadId, 20_000);
    await worker.stop();
    expect(answer).toMatchObject({
      state: "SUCCEEDED",
      result: { producedBy: worker.workerId, output: { done: true } },
    });
  });

  it("takes another grant before the first is over, and keeps the lease of what it runs", async () => {
    const { workloadId, prefix } = await setting.admit();
    const applicationId = prefix.split(".").at(-1) ?? "";
    const subject = { kind: "worker", id: NAME } as const;
    const stranger = await issueGrant(grantOf({ applicationId, subject }), (await makeKey()).signing);
    assert(stranger.ok, "it is a grant, of a key that no node knows");
    const next = await issue(applicationId, { subject, id: "grant-next" });
    const [unknown, taken] = [new Signal(), new Signal()];
    const worker = await runWorker({
      ...{ servers: setting.urls, tenantId: "acme", applicationId, name: NAME, leaseMs: 1_500, handleSignals: false },
      token: await issue(applicationId, { subject, id: "grant-first" }),
      log: {
        ...silentLog,
        warn: (_fields, text) => void (text.includes("not taken yet") && unknown.give()),
        info: (_fields, text) => void (text.includes("another grant") && taken.give()),
      },
      handler: async (work) => {
        expect(() => worker.useToken("no grant\n")).toThrow(/token is no grant/);
        worker.useToken(stranger.value);
        await unknown.seen;
        worker.useToken(next);
        await taken.seen;
        const target = { kind: "grant", grantId: "grant-first" };
        await setting.authority.call("revoke", { tenantId: "acme", applicationId, target });
        // The lease of before is over by then.
        const from = performance.now();
        await poll(() => (performance.now() - from > 2_000 ? true : undefined), { timeoutMs: 20_000 });
        await work.heartbeat();
        return { done: true };
      },
    });
    const { answer } = await setting.authority.waitForSettled(workloadId, 60_000);
    expect(answer).toMatchObject({ state: "SUCCEEDED", fencingToken: 1 });
    const asked = { tenantId: "acme", applicationId, workerId: worker.workerId };
    expect((await setting.authority.getWorker(asked)).grantId).toBe("grant-next");
    await worker.stop();
  }, 90_000);
});
