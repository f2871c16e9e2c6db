/**
 * Goal: subject, tenant and application are the grant's and never the message's; constraints hold or refuse; nobody sees
 * or changes what is another tenant's.
 * Method: two nodes over one store, with real keys and tokens, asked over HTTP.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NOW } from "./grant-fixtures.ts";
import {
  admittedOf,
  ada,
  bank,
  openSecureHttp,
  orders,
  verdictOf,
  work,
  type Asked,
  type SecureHttp,
} from "./secure-http.ts";

let secure: SecureHttp;
beforeEach(async () => {
  secure = await openSecureHttp();
});
afterEach(() => secure.close());

const verdict = async (path: string, how: Asked): Promise<string> => verdictOf(await secure.ask(path, how));
const admit = async (token: string, changes: object = {}) =>
  admittedOf(await secure.ask("/v1/workloads", { token, body: work(changes) }));

async function listed(token: string, path = "/v1/workloads"): Promise<readonly string[]> {
  const body = (await (await secure.ask(path, { token })).json()) as {
    readonly workloads: readonly { readonly workloadId: string }[];
  };
  return body.workloads.map(({ workloadId }) => workloadId).sort();
}

describe("admitted work", () => {
  it("is the grant's subject's, tenant's and application's, under the verified grant", async () => {
    const token = await secure.issue({ constraints: { environments: ["test"] } });
    const workload = await admit(token);
    expect(workload).toMatchObject({
      tenantId: "acme",
      applicationId: "shop",
      requestedBy: orders,
      authorization: {
        grantId: "grant-1",
        issuer: { kind: "service", id: "issuer" },
        subject: orders,
        constraints: { environments: ["test"] },
        expiresAt: NOW + 3_600_000,
      },
    });
    expect(JSON.stringify(workload)).not.toContain(token.split(".")[2]);
    expect(workload["authorization"]).not.toHaveProperty("token");
  });

  it.each([
    ["another requester", { requestedBy: ada }, "403 WORKLOAD_UNAUTHORIZED"],
    ["another tenant", { tenantId: "bank" }, "403 GRANT_SCOPE_DENIED"],
    ["another application", { applicationId: "bank" }, "403 GRANT_SCOPE_DENIED"],
    ["another grant", { authorization: { grantId: "grant-9" } }, "403 WORKLOAD_UNAUTHORIZED"],
    ["no grant at all", { authorization: null }, "403 WORKLOAD_UNAUTHORIZED"],
  ])("can't name %s", async (_what, changes, expected) => {
    const token = await secure.issue();
    expect(await verdict("/v1/workloads", { token, body: work(changes) })).toBe(expected);
    const batch = await secure.ask("/v1/workloads/batch", { token, body: [work(changes), work()] });
    const [first, second] = (await batch.json()) as {
      readonly ok: boolean;
      readonly error?: { readonly code: string };
    }[];
    expect(first?.error?.code).toBe(expected.slice(4));
    expect(second?.ok).toBe(true);
  });

  it("in a batch of more than 1,000 requests is refused before any of them is looked at", async () => {
    const token = await secure.issue();
    const body = Array.from({ length: 1001 }, () => ({ tenantId: "bank" }));
    expect(await verdict("/v1/workloads/batch", { token, body })).toBe("400 WORKLOAD_INVALID");
  });

  it("may repeat what the grant says", async () => {
    const token = await secure.issue();
    const same = {
      ...{ tenantId: "acme", applicationId: "shop", requestedBy: orders },
      authorization: { grantId: "grant-1", capabilities: ["everything"] },
    };
    const workload = await admit(token, same);
    expect(workload).toMatchObject({ authorization: { grantId: "grant-1" } });
    expect(JSON.stringify(workload)).not.toContain("everything");
  });

  it("does not take a grant for content", async () => {
    const token = await secure.issue();
    const leaked = await secure.delegate({ id: "grant-7" }, {});
    for (const body of [work({ input: { note: token } }), work({ input: [leaked] })]) {
      const refused = await secure.ask("/v1/workloads", { token, body });
      expect(refused.status).toBe(422);
      expect(await refused.text()).not.toContain(token.slice(0, 60));
    }
  });

  it("replays under another grant of the same subject", async () => {
    const { workloadId } = await admit(await secure.issue());
    const again = await secure.ask("/v1/workloads", { token: await secure.issue({ id: "grant-2" }), body: work() });
    expect(again.status).toBe(200);
    expect(await again.json()).toMatchObject({ workload: { workloadId }, created: false });
  });
});

describe("a constraint", () => {
  it.each<[object, object, object]>([
    [{ environments: ["test"] }, {}, { environment: "production" }],
    [{ connectionEnabled: false }, {}, { connectionScopes: ["mail"] }],
    [{ resourceAttributes: { definitionId: "resize" } }, {}, { definitionId: "refund" }],
    [{ minimumSchemaVersion: 2, contextAttributes: { door: "http" } }, {}, {}],
    [{ subjectAttributes: { kind: "service" } }, {}, {}],
  ])("%j holds for what is admitted and read, or refuses it", async (constraints, good, bad) => {
    const token = await secure.issue({ constraints });
    const { workloadId } = await admit(token, good);
    expect(await verdict(`/v1/workloads/${workloadId}`, { token })).toBe("200");
    if (Object.keys(bad).length === 0) return;
    expect(await verdict("/v1/workloads", { token, body: work({ ...bad, idempotencyKey: "k2" }) })).toBe(
      "403 GRANT_SCOPE_DENIED",
    );
    const other = await admit(await secure.issue(), { ...bad, idempotencyKey: "k2" });
    expect(await verdict(`/v1/workloads/${other.workloadId}`, { token })).toBe("403 GRANT_SCOPE_DENIED");
    expect(await listed(token)).toEqual([workloadId]);
  });

  it.each<[object]>([
    [{ workerClass: "container" }],
    [{ network: "10.0.0.0/8" }],
    [{ minimumSchemaVersion: 3 }],
    [{ contextAttributes: { door: "nats" } }],
    [{ subjectAttributes: { kind: "human" } }],
  ])("%j that can't be known to hold refuses everything", async (constraints) => {
    const { workloadId } = await admit(await secure.issue());
    const token = await secure.issue({ constraints });
    expect(await verdict(`/v1/workloads/${workloadId}`, { token })).toBe("403 GRANT_SCOPE_DENIED");
    expect(await listed(token)).toEqual([]);
  });

  it.each([
    ["a constraint", { constraints: { environments: ["test"] } }],
    ["a resource", {}],
  ])("keeps events away that %s does not let through, live ones and missed ones", async (what, changes) => {
    const wide = await secure.issue();
    const before = (await secure.ask("/v1/workloads", { token: wide })).headers.get("mandate-revision") ?? "";
    const [shown, hidden] = [await admit(wide), await admit(wide, { environment: "live", idempotencyKey: "k2" })];
    const uri = `flow://shop/workloads/${shown.workloadId}`;
    const narrow = what === "a resource" ? { resources: [{ kind: "WORKLOAD" as const, uri }] } : changes;
    const token = await secure.issue(narrow);
    const stream = await secure.ask("/v1/events", { token, headers: { "Last-Event-ID": before } });
    const reader = (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    for (const { workloadId } of [hidden, shown])
      expect(await verdict(`/v1/workloads/${workloadId}/cancel`, { token: wide, body: {} })).toBe("200");
    let seen = "";
    while (!seen.includes("workload.cancelled")) seen += (await reader.read()).value ?? "";
    await reader.cancel();
    expect(seen).toContain(shown.workloadId);
    expect(seen).not.toContain(hidden.workloadId);
  });

  it("on a workload lets that one be read, and no other be known of", async () => {
    const wide = await secure.issue();
    const [one, two] = [await admit(wide), await admit(wide, { idempotencyKey: "k2" })];
    const token = await secure.issue({ constraints: { workloadId: one.workloadId } });
    expect(await verdict(`/v1/workloads/${one.workloadId}`, { token })).toBe("200");
    for (const other of [two.workloadId, "workload_0123456789abcdef01234567"])
      expect(await verdict(`/v1/workloads/${other}`, { token })).toBe("403 GRANT_SCOPE_DENIED");
  });
});

describe("another tenant's work", () => {
  const routes = ["", "/result", "/explain", "/placement", "/decision", "/cancel", "/retry", "/timeout"];

  it("does not exist, by any route, under the same names", async () => {
    const [mine, theirs] = [await secure.issue(), await secure.issue(bank)];
    const own = await admit(mine);
    const foreign = await admit(theirs);
    expect(foreign.workloadId).not.toBe(own.workloadId);
    for (const rest of routes) {
      const isWrite = ["/decision", "/cancel", "/retry", "/timeout"].includes(rest);
      const inputHash = String(foreign["inputHash"]);
      const body = rest === "/decision" ? { outcome: "approved", inputHash } : {};
      const how = { token: mine, ...(isWrite ? { body } : {}) };
      const real = await verdict(`/v1/workloads/${foreign.workloadId}${rest}`, how);
      const unreal = await verdict(`/v1/workloads/workload_0123456789abcdef01234567${rest}`, how);
      expect([rest, real]).toEqual([rest, "404 WORKLOAD_NOT_FOUND"]);
      expect([rest, unreal]).toEqual([rest, real]);
    }
    expect(await listed(mine)).toEqual([own.workloadId]);
    expect(await listed(theirs)).toEqual([foreign.workloadId]);
    expect(await listed(mine, "/v1/workloads?tenantId=acme&applicationId=shop")).toEqual([own.workloadId]);
    for (const query of ["tenantId=bank&applicationId=shop", "tenantId=bank", "applicationId=bank"])
      for (const path of ["/v1/workloads", "/v1/approvals", "/v1/events", `/v1/workloads/${foreign.workloadId}`])
        if (path === "/v1/workloads" || !query.startsWith("applicationId"))
          expect(await verdict(`${path}?${query}`, { token: mine })).toBe("403 GRANT_SCOPE_DENIED");
  });

  it("is not a dependency, and not in the events", async () => {
    const [mine, theirs] = [await secure.issue(), await secure.issue(bank)];
    const stream = await secure.ask("/v1/events", { token: mine });
    const reader = (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    const foreign = await admit(theirs, { input: { secretName: "of the bank" } });
    const own = await admit(mine, { dependencies: [{ workloadId: foreign.workloadId }] });
    let seen = "";
    while (!seen.includes(own.workloadId)) seen += (await reader.read()).value ?? "";
    await reader.cancel();
    expect(seen).not.toContain("bank");
    expect(seen.replaceAll(own.workloadId, "")).not.toContain(foreign.workloadId);
    const explained = await (await secure.ask(`/v1/workloads/${own.workloadId}/explain`, { token: mine })).text();
    expect(explained).not.toContain("READY");
  });
});

describe("a worker", () => {
  const register = async (token: string): Promise<Record<string, unknown>> => {
    const body = { name: "w1", runtime: "process", version: "1", declaredCapabilities: ["cpu", "gpu"], concurrency: 1 };
    const response = await secure.ask("/v1/workers", { token, body });
    expect(response.status).toBe(201);
    return ((await response.json()) as { readonly worker: Record<string, unknown> }).worker;
  };

  it("is given the capabilities that its registration grant has, and belongs to the grant's application", async () => {
    const token = await secure.issue({ capabilities: ["worker:register", "worker:read", "worker:capability:gpu"] });
    expect(await register(token)).toMatchObject({
      ...{ tenantId: "acme", applicationId: "shop", grantId: "grant-1" },
      ...{ declaredCapabilities: ["cpu", "gpu"], grantedCapabilities: ["gpu"] },
    });
  });

  it("of another tenant does not exist, under the same name", async () => {
    const [mine, theirs] = [await secure.issue(), await secure.issue(bank)];
    const [own, foreign] = [await register(mine), await register(theirs)];
    const path = `/v1/workers/${String(foreign["workerId"])}`;
    const unreal = "/v1/workers/worker_0123456789abcdef01234567";
    for (const [rest, body] of [
      ["", undefined],
      ["/drain", {}],
      ["/remove", {}],
    ] as const)
      for (const asked of [path, unreal])
        expect(await verdict(`${asked}${rest}`, { token: mine, body })).toBe("404 WORKER_NOT_FOUND");
    expect(await verdict(`${path}?tenantId=bank&applicationId=shop`, { token: mine })).toBe("403 GRANT_SCOPE_DENIED");
    const listing = (await (await secure.ask("/v1/workers", { token: mine })).json()) as { readonly workers: object[] };
    expect(listing.workers).toMatchObject([{ workerId: own["workerId"], tenantId: "acme" }]);
    expect(JSON.stringify(listing)).not.toContain("bank");
  });

  it("registers and speaks for itself alone, when the grant is its own", async () => {
    const subject = { kind: "worker", id: "w1" } as const;
    const token = await secure.issue({ subject });
    const { workerId } = await register(token);
    const other = { name: "w2", runtime: "process", version: "1", declaredCapabilities: [], concurrency: 1 };
    expect(await verdict("/v1/workers", { token, body: other })).toBe("403 GRANT_SCOPE_DENIED");
    expect(await verdict(`/v1/workers/${String(workerId)}`, { token })).toBe("200");
    expect(await verdict("/v1/workers/worker_0123456789abcdef01234567", { token })).toBe("403 GRANT_SCOPE_DENIED");
  });

  it("is bound to the worker whose grant its own was delegated from", async () => {
    const subject = { kind: "worker", id: "w1" } as const;
    const { workerId } = await register(await secure.issue({ subject }));
    const token = await secure.delegate({ subject }, {});
    const other = { name: "w2", runtime: "process", version: "1", declaredCapabilities: [], concurrency: 1 };
    expect(await verdict("/v1/workers", { token, body: other })).toBe("403 GRANT_SCOPE_DENIED");
    expect(await verdict("/v1/workers", { token, body: { ...other, name: "w1" } })).toBe("200");
    expect(await verdict(`/v1/workers/${String(workerId)}`, { token })).toBe("200");
    expect(await verdict("/v1/workers/worker_0123456789abcdef01234567", { token })).toBe("403 GRANT_SCOPE_DENIED");
  });
});

describe("a refusal by a constraint", () => {
  it("says the same of work that there is and of work that there is not", async () => {
    const { workloadId } = await admit(await secure.issue());
    const constraints = { environments: ["test"], resourceAttributes: { definitionId: "refund" } };
    const told = async (token: string): Promise<readonly string[]> =>
      Promise.all(
        [workloadId, "workload_0123456789abcdef"].map(async (id) =>
          (await (await secure.ask(`/v1/workloads/${id}`, { token })).text()).replaceAll(id, "ID"),
        ),
      );
    for (const token of [
      await secure.issue({ constraints }),
      await secure.delegate({ constraints }, { constraints }),
    ]) {
      const [there, absent] = await told(token);
      expect(there).toContain("GRANT_SCOPE_DENIED");
      expect(there).toBe(absent);
    }
  });
});

describe("a pool of the whole tenant", () => {
  it("is not shown to a grant of one application, nor changed by it", async () => {
    const [node] = secure.cluster.nodes;
    const { answer } = (await node?.call("createPool", { tenantId: "acme", name: "all" })) ?? {};
    const token = await secure.issue();
    const own = await secure.ask("/v1/pools", { token, body: { name: "mine" } });
    expect(await own.json()).toMatchObject({ applicationId: "shop", name: "mine" });
    const listing = (await (await secure.ask("/v1/pools", { token })).json()) as { readonly pools: object[] };
    expect(listing.pools).toMatchObject([{ name: "mine" }]);
    for (const [rest, body] of [
      ["", undefined],
      ["/members", { add: [] }],
      ["/remove", {}],
    ] as const)
      expect(await verdict(`/v1/pools/${answer?.poolId ?? ""}${rest}`, { token, body })).toMatch(/^40[04] WORKER_/);
  });
});

describe("a decision", () => {
  it("takes workload:approve on top of the policy, and bears the grant", async () => {
    const approval = { approverKinds: ["human"] };
    const { workloadId, ...record } = await admit(await secure.issue(), { approval });
    const body = { outcome: "approved", inputHash: record["inputHash"] };
    const path = `/v1/workloads/${workloadId}/decision`;
    const approver = { subject: ada, id: "grant-ada" };
    const reader = await secure.issue({ ...approver, capabilities: ["workload:read"] });
    expect(await verdict(path, { token: reader, body })).toBe("403 GRANT_SCOPE_DENIED");
    // A grant alone is not enough either: the policy wants a human, and not the requester.
    expect(await verdict(path, { token: await secure.issue(), body })).toBe("403 WORKLOAD_APPROVER_NOT_PERMITTED");
    const token = await secure.issue({ ...approver, capabilities: ["workload:approve", "workload:read"] });
    expect(await listed(token, "/v1/approvals")).toEqual([workloadId]);
    expect(await listed(await secure.issue(), "/v1/approvals")).toEqual([]);
    for (const wrong of [{ grantId: "grant-1" }, { decider: orders }])
      expect(await verdict(path, { token, body: { ...body, ...wrong } })).toBe("403 WORKLOAD_UNAUTHORIZED");
    const decided = await secure.ask(path, { token, body });
    expect(await decided.json()).toMatchObject({ decision: { decidedBy: ada, grantId: "grant-ada" }, replayed: false });
  });
});
