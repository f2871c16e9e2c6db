/**
 * Goal: a revocation takes effect at the next call, at every node, remembered token or not, and is never undone; work is
 * given out only while the grant stands that it was admitted under; a key that is gone ends its grants.
 * Method: two nodes over one store, with real keys and tokens, asked over HTTP.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { poll } from "../../../cluster/poll.ts";
import { utf8 } from "../../../src/base/bytes.ts";
import { NOW } from "./grant-fixtures.ts";
import type { WorkerView } from "../../../src/core/worker/worker-view.ts";
import {
  admittedOf,
  ada,
  allCapabilities,
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

describe("a revocation", () => {
  const revoke = async (target: object, changes: Parameters<SecureHttp["issue"]>[0] = {}): Promise<Response> => {
    const token = await secure.issue({ subject: ada, id: "grant-ops", ...changes });
    return secure.ask("/v1/grants/revocations", { token, body: { target, reason: "lost" } });
  };

  /** What each node says to a token. */
  const everywhere = async (token: string, path = "/v1/workloads"): Promise<readonly string[]> =>
    Promise.all([0, 1].map((node) => verdict(path, { token, node })));

  it.each([
    ["revocation", () => revoke({ kind: "grant", grantId: "grant-1" })],
    ["key that is taken away", () => secure.takeKeyAway()],
  ])("%s counts for a request whose body is still on its way", async (_what, end) => {
    const token = await secure.issue();
    const { workloadId } = await admit(token);
    let rest: () => void = () => undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(utf8('{"reason":'));
        rest = () => {
          controller.enqueue(utf8('"late"}'));
          controller.close();
        };
      },
    });
    const asked = secure.ask(`/v1/workloads/${workloadId}/cancel`, { token, body });
    await new Promise((resolve) => setImmediate(resolve));
    await end();
    rest();
    expect((await asked).status).toBe(401);
  });

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

it("a key that is taken away ends what was opened under it, and no other key's", async () => {
  const token = await secure.issue();
  const { workloadId } = await admit(token);
  const [, node] = secure.cluster.nodes;
  const lookAgain = (grantId: string) =>
    node?.call("revoke", { tenantId: "acme", applicationId: "shop", target: { kind: "grant", grantId } });
  const stream = await secure.ask("/v1/events", { token, node: 1 });
  let isOpen = true;
  const ended = new Response(stream.body).text().finally(() => (isOpen = false));
  await secure.addKey();
  await lookAgain("grant-8");
  await node?.cancel({ workloadId, actor: "ada" });
  expect(isOpen).toBe(true);
  await secure.takeKeyAway();
  await lookAgain("grant-9");
  expect(await ended).toContain("workload.cancelled");
});

describe("what a worker was granted when it registered", () => {
  const gpu = { capabilities: [...allCapabilities, "worker:capability:gpu"], id: "grant-w" };
  const register = async (token: string): Promise<string> => {
    const body = { name: "w1", runtime: "process", version: "1", declaredCapabilities: ["gpu"], concurrency: 3 };
    const response = await secure.ask("/v1/workers", { token, body });
    const { worker } = (await response.json()) as { readonly worker: WorkerView };
    const { workerId, version, capabilityVersion } = worker;
    const beat = { version, capabilityVersion, health: "HEALTHY", timestamp: NOW };
    await secure.ask(`/v1/workers/${workerId}/heartbeat`, { token, body: beat });
    return workerId;
  };
  /** What comes of a claim on work that needs it, at the other node. */
  const claimed = async (workerId: string, key: string, how: Parameters<SecureHttp["issue"]>[0] = {}) => {
    const { workloadId } = await admit(await secure.issue(how), { capabilities: ["gpu"], idempotencyKey: key });
    await secure.cluster.nodes[1]?.caughtUp(5_000);
    const [, node] = secure.cluster.nodes;
    return (
      (await node?.claim({ workloadId, workerId, leaseMs: 1_000 }).then(
        () => "claimed",
        (thrown: { readonly code: string }) => thrown.code,
      )) ?? ""
    );
  };

  it.each([
    ["the grant", { kind: "grant", grantId: "grant-w" }, gpu],
    ["an older revision", { kind: "grant", grantId: "grant-w", belowRevision: 2 }, gpu],
    ["its subject", { kind: "subject", subject: { kind: "service", id: "pool" } }, gpu],
  ])("is gone once %s is revoked, until it registers anew", async (_what, target, grant) => {
    const subject = { kind: "service", id: "pool" } as const;
    const workerId = await register(await secure.issue({ ...grant, subject }));
    expect(await claimed(workerId, "k1")).toBe("claimed");
    const ops = await secure.issue({ subject: ada, id: "grant-ops" });
    expect((await secure.ask("/v1/grants/revocations", { token: ops, body: { target } })).status).toBe(200);
    expect(await claimed(workerId, "k2")).toBe("MESH_PLACEMENT_DENIED");
    await register(await secure.issue({ ...grant, revision: 2, id: "grant-x" }));
    expect(await claimed(workerId, "k3")).toBe("claimed");
  });

  it("stays when its grant expires, and is gone once one is revoked that it was delegated from", async () => {
    const workerId = await register(await secure.delegate(gpu, { id: "grant-child" }));
    secure.cluster.clock.set(NOW + 3_600_000);
    const late = { issuedAt: NOW, expiresAt: NOW + 9_000_000 };
    expect(await claimed(workerId, "k1", late)).toBe("claimed");
    const token = await secure.issue({ subject: ada, id: "grant-ops", ...late });
    const body = { target: { kind: "grant", grantId: "grant-w" } };
    expect((await secure.ask("/v1/grants/revocations", { token, body })).status).toBe(200);
    expect(await claimed(workerId, "k2", late)).toBe("MESH_PLACEMENT_DENIED");
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
