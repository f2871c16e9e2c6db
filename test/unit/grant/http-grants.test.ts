/**
 * Goal: subject, tenant and application are the grant's and never the message's; nobody sees or changes what is another
 * tenant's; a revocation takes effect at the next call, at every node, remembered token or not; work is given out only
 * while the grant stands that it was admitted under.
 * Method: two nodes over one store, with real keys and tokens, asked over HTTP.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { poll } from "../../../cluster/poll.ts";
import { NOW } from "./grant-fixtures.ts";
import { admittedOf, openSecureHttp, verdictOf, work, type Asked, type SecureHttp } from "./secure-http.ts";

let secure: SecureHttp;
beforeEach(async () => {
  secure = await openSecureHttp();
});
afterEach(() => secure.close());

const orders = { kind: "service", id: "orders" } as const;
const ada = { kind: "human", id: "ada" } as const;
const bank = { tenantId: "bank", resources: [{ kind: "APPLICATION" as const, uri: "flow://shop" }] };

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

describe("a revocation", () => {
  const revoke = async (target: object, changes: Parameters<SecureHttp["issue"]>[0] = {}): Promise<Response> => {
    const token = await secure.issue({ subject: ada, id: "grant-ops", ...changes });
    return secure.ask("/v1/grants/revocations", { token, body: { target, reason: "lost" } });
  };

  /** What each node says to a token. */
  const everywhere = async (token: string, path = "/v1/workloads"): Promise<readonly string[]> =>
    Promise.all([0, 1].map((node) => verdict(path, { token, node })));

  it.each([
    ["grant", { kind: "grant", grantId: "grant-1" }],
    ["subject", { kind: "subject", subject: orders }],
    ["revision", { kind: "grant", grantId: "grant-1", belowRevision: 2 }],
  ])("of a %s takes effect at the next call, at every node", async (_what, target) => {
    const token = await secure.issue();
    expect(await everywhere(token)).toEqual(["200", "200"]);
    const answer = await revoke(target);
    const min = { "Mandate-Min-Revision": answer.headers.get("mandate-revision") ?? "" };
    expect(await answer.json()).toMatchObject({
      target,
      tenantId: "acme",
      applicationId: "shop",
      revokedBy: ada,
      grantId: "grant-ops",
      revokedAt: NOW,
      reason: "lost",
    });
    for (const node of [0, 1])
      expect(await verdict("/v1/workloads", { token, node, headers: min })).toBe("401 GRANT_REVOKED");
    expect(secure.verifier.remembered).toBeGreaterThan(0);
    const other = { id: "grant-2", subject: ada, revision: 2 };
    expect(await everywhere(await secure.issue(other))).toEqual(["200", "200"]);
  });

  it.each([
    [{ kind: "application" }, "200"],
    [{ kind: "tenant" }, "401 GRANT_REVOKED"],
  ])("by %j ends all of it, whoever revoked it included", async (target, elsewhere) => {
    const tokens = [
      await secure.issue(),
      await secure.issue({ subject: ada, id: "grant-ops" }),
      await secure.delegate({ id: "grant-7" }, {}),
    ];
    const other = await secure.issue({
      applicationId: "desk",
      resources: [{ kind: "APPLICATION", uri: "flow://desk" }],
    });
    expect((await revoke(target)).status).toBe(200);
    for (const token of tokens) expect(await verdict("/v1/workloads", { token })).toBe("401 GRANT_REVOKED");
    expect(await verdict("/v1/workloads", { token: other })).toBe(elsewhere);
    expect(await verdict("/v1/workloads", { token: await secure.issue(bank) })).toBe("200");
  });

  it("of a parent ends what was delegated from it", async () => {
    const token = await secure.delegate({ id: "grant-7" }, { id: "grant-8" });
    expect(await verdict("/v1/workloads", { token })).toBe("200");
    await revoke({ kind: "grant", grantId: "grant-7" });
    expect(await verdict("/v1/workloads", { token })).toBe("401 GRANT_REVOKED");
  });

  it("survives a view that is rebuilt from the store", async () => {
    const token = await secure.issue();
    await revoke({ kind: "grant", grantId: "grant-1" });
    for (const node of secure.cluster.nodes) await secure.cluster.restart(node);
    expect(await everywhere(token)).toEqual(["401 GRANT_REVOKED", "401 GRANT_REVOKED"]);
  });

  it("repeated answers what was committed first, and only ever reaches further", async () => {
    const first = await (await revoke({ kind: "grant", grantId: "grant-1", belowRevision: 5 })).json();
    secure.cluster.clock.set(NOW + 1_000);
    expect(await (await revoke({ kind: "grant", grantId: "grant-1", belowRevision: 3 })).json()).toEqual(first);
    const token = await secure.issue({ revision: 9 });
    expect(await verdict("/v1/workloads", { token })).toBe("200");
    expect(await (await revoke({ kind: "grant", grantId: "grant-1" })).json()).toMatchObject({
      revokedAt: NOW + 1_000,
    });
    expect(await verdict("/v1/workloads", { token })).toBe("401 GRANT_REVOKED");
    await revoke({ kind: "grant", grantId: "grant-1", belowRevision: 3 });
    expect(await verdict("/v1/workloads", { token })).toBe("401 GRANT_REVOKED");
  });

  it("of a tenant takes a grant of a whole application that was neither delegated nor constrained", async () => {
    const body = { target: { kind: "tenant" } };
    const path = "/v1/grants/revocations";
    for (const token of [
      await secure.delegate({ id: "grant-7" }, {}),
      await secure.issue({ resources: [{ kind: "RESOURCE", uri: "flow://shop/grants" }] }),
      await secure.issue({ constraints: { contextAttributes: { door: "http" } } }),
    ]) {
      expect(await verdict(path, { token, body })).toBe("403 GRANT_SCOPE_DENIED");
      expect(await verdict(path, { token, body: { target: { kind: "grant", grantId: "x" } } })).toBe("200");
    }
  });

  it.each([
    [{}],
    [{ target: { kind: "planet" } }],
    [{ target: { kind: "grant" } }],
    [{ target: { kind: "grant", grantId: "" } }],
    [{ target: { kind: "grant", grantId: "g", belowRevision: 0 } }],
    [{ target: { kind: "subject", subject: { kind: "robot", id: "x" } } }],
    [{ target: { kind: "tenant", tenantId: "bank" } }],
    [{ target: { kind: "application" }, extra: 1 }],
    [[]],
  ])("%j is refused by name", async (body) => {
    const token = await secure.issue();
    expect(await verdict("/v1/grants/revocations", { token, body })).toBe("400 WORKLOAD_INVALID");
  });

  it("ends event streams and long polls that were opened before", async () => {
    const token = await secure.issue();
    const { workloadId } = await admit(token);
    const stream = await secure.ask("/v1/events", { token, node: 1 });
    const ended = new Response(stream.body).text();
    const waiting = verdict(`/v1/workloads/${workloadId}/result?waitMs=60000`, { token, node: 1 });
    await revoke({ kind: "grant", grantId: "grant-1" });
    expect(await ended).not.toContain("workload.cancelled");
    const cancelled = await secure.ask(`/v1/workloads/${workloadId}/cancel`, {
      token: await secure.issue({ id: "grant-2" }),
      body: {},
    });
    expect(cancelled.status).toBe(200);
    expect(await waiting).toBe("401 GRANT_REVOKED");
  });
});

describe("work whose requester's grant has ended", () => {
  const claim = (workloadId: string) => secure.cluster.nodes[1]?.claim({ workloadId, workerId: "w1", leaseMs: 1_000 });

  it.each([
    ["is dead-lettered when it is claimed", "claim", "DEAD_LETTER"],
    ["is given out when it was admitted so", "never", "CLAIMED"],
  ])("%s", async (_what, reauthorize, state) => {
    const { workloadId } = await admit(await secure.issue(), { reauthorize });
    const ops = await secure.issue({ subject: ada, id: "grant-ops" });
    const body = { target: { kind: "subject", subject: orders } };
    await secure.ask("/v1/grants/revocations", { token: ops, body });
    await secure.cluster.nodes[1]?.caughtUp(5_000);
    const code = await claim(workloadId)?.then(
      () => "given out",
      (thrown: { readonly code: string }) => thrown.code,
    );
    expect(code).toBe(state === "CLAIMED" ? "given out" : "WORKLOAD_UNAUTHORIZED");
    const read = await secure.ask(`/v1/workloads/${workloadId}`, { token: ops });
    expect(await read.json()).toMatchObject({ state });
  });

  it("is dead-lettered by whoever asks for any work, who gets none", async () => {
    const { workloadId } = await admit(await secure.issue({ expiresAt: NOW + 1_000 }));
    secure.cluster.clock.set(NOW + 1_000);
    const [node] = secure.cluster.nodes;
    const asked = { tenantId: "acme", applicationId: "shop", workerId: "w1", max: 5, waitMs: 0, leaseMs: 1_000 };
    expect(await node?.claimNext(asked)).toEqual([]);
    const read = await poll(
      async () => {
        const workload = await node?.get(workloadId);
        return workload?.state === "DEAD_LETTER" ? workload : undefined;
      },
      { timeoutMs: 5_000 },
    );
    expect(read?.history.at(-1)?.evidence).toMatchObject({ decision: "authorization_lost", reason: "expired" });
  });
});

it("a key that is taken away ends its grants at the next call, and expiry those that last", async () => {
  const token = await secure.issue();
  expect(await verdict("/v1/workloads", { token })).toBe("200");
  secure.cluster.clock.set(NOW + 3_600_000);
  expect(await verdict("/v1/workloads", { token })).toBe("401 GRANT_EXPIRED");
  await secure.takeKeyAway();
  expect(await verdict("/v1/workloads", { token })).toBe("401 GRANT_INVALID");
  expect(await (await secure.ask("/.well-known/jwks.json")).json()).toEqual({ keys: [] });
});
