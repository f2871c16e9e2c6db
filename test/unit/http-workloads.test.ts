/**
 * Goal: requesters, approvers and operators do everything of contract 6.2 over HTTP, under their own name only.
 * Method: the application over an authority in this process, asked without a port; workers call the authority.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assert } from "../../src/base/assert.ts";
import type { Authority } from "../../src/testing.ts";
import { admission, alice, bob, membersOf, openHttp, refusalOf, type HttpSetting } from "./http-setting.ts";

let http: HttpSetting;
let node: Authority;

beforeEach(async () => {
  http = await openHttp();
  const [first] = http.cluster.nodes;
  assert(first !== undefined, "a cluster has a node");
  node = first;
});
afterEach(() => http.close());

const asBob = { "X-Mandate-Subject": "human:bob" };

/** Admits as alice; the workload's id. */
async function admit(changes: object = {}): Promise<string> {
  const response = await http.post("/v1/workloads", admission(changes));
  const { workload } = (await response.json()) as { workload: { workloadId: string } };
  return workload.workloadId;
}

async function run(workloadId: string): Promise<{ claimId: string; fencingToken: number }> {
  const claim = await node.claim({ workloadId, workerId: "w1", leaseMs: 1000, start: true });
  return { claimId: claim.claimId, fencingToken: claim.fencingToken };
}

describe("admitting", () => {
  test("creates once, then answers the same, and says where it is and which revision it reflects", async () => {
    const first = await http.post("/v1/workloads", admission());
    const { workload, created } = (await first.json()) as { workload: Record<string, unknown>; created: boolean };
    expect(first.status).toBe(201);
    expect(created).toBe(true);
    expect(workload).toMatchObject({ requestedBy: alice, state: "READY", createdAt: 10_000, input: { size: 3 } });
    expect(first.headers.get("location")).toBe(`/v1/workloads/${String(workload["workloadId"])}`);
    expect(first.headers.get("mandate-revision")).toMatch(/^\d+$/);
    expect(first.headers.get("mandate-mode")).toBe("open");

    const second = await http.post("/v1/workloads", admission());
    expect(second.status).toBe(200);
    expect(await second.json()).toEqual({ workload, created: false });

    const read = await http.get(first.headers.get("location") ?? "");
    expect(await read.json()).toEqual(workload);
  });

  test("takes the requester from the header, and refuses a body that names another", async () => {
    const same = await http.post("/v1/workloads", admission({ requestedBy: alice }));
    expect(same.status).toBe(201);
    const other = await http.post("/v1/workloads", admission({ requestedBy: bob, idempotencyKey: "key-2" }));
    expect(await refusalOf(other)).toEqual([403, "WORKLOAD_UNAUTHORIZED", ["requestedBy"]]);
    expect((await membersOf(await http.get("/v1/workloads")))["workloads"]).toHaveLength(1);
  });

  test("checks a grant that is given, before any replay", async () => {
    const grant = { grantId: "g", issuer: "root", subject: bob, tenantId: "acme", applicationId: "shop" };
    const wrong = await http.post("/v1/workloads", admission({ authorization: grant }));
    expect(await refusalOf(wrong)).toEqual([403, "WORKLOAD_UNAUTHORIZED"]);
    const right = await http.post("/v1/workloads", admission({ authorization: { ...grant, subject: alice } }));
    expect(right.status).toBe(201);
  });

  test("the id of a subject may hold colons, and any text as percent-encoded or raw UTF-8", async () => {
    for (const [header, id] of [
      ["human:a:b", "a:b"],
      ["human:%F0%9F%98%80%20x%25", "😀 x%"],
      [Buffer.from("human:é", "utf8").toString("latin1"), "é"],
    ] as const) {
      const response = await http.post("/v1/workloads", admission(), { "X-Mandate-Subject": header });
      expect(await response.json()).toMatchObject({ workload: { requestedBy: { kind: "human", id } } });
    }
  });

  test("a batch answers each request as the single door would", async () => {
    const requests = [
      admission(),
      admission({ priority: 7 }),
      admission({ requestedBy: bob, idempotencyKey: "key-2" }),
      admission({ idempotencyKey: "key-3", input: { password: "x" } }),
      7,
      admission({ idempotencyKey: "key-4" }),
    ];
    const batch = await http.post("/v1/workloads/batch", requests);
    expect(batch.status).toBe(200);
    const answers = (await batch.json()) as ({ ok: true } | { ok: false; error: { code: string; status: number } })[];
    expect(answers.map((answer) => (answer.ok ? "ok" : answer.error.code))).toEqual([
      "ok",
      "IDEMPOTENCY_KEY_REUSED",
      "WORKLOAD_UNAUTHORIZED",
      "WORKLOAD_SECRET_REJECTED",
      "WORKLOAD_INVALID",
      "ok",
    ]);
    for (const [index, request] of requests.entries()) {
      const single = await membersOf(await http.post("/v1/workloads", request));
      const answer = answers[index];
      assert(answer !== undefined, "one answer per request");
      expect(answer.ok ? { ...answer, created: false } : answer.error).toEqual(
        answer.ok ? { ok: true, ...single } : single,
      );
    }
  });

  test("a batch that is no array, or has more than 1000 requests, is refused as a whole", async () => {
    expect(await refusalOf(await http.post("/v1/workloads/batch", {}))).toEqual([400, "WORKLOAD_INVALID", [""]]);
    const many = await http.post(
      "/v1/workloads/batch",
      Array.from({ length: 1001 }, () => 1),
    );
    expect((await refusalOf(many)).slice(0, 2)).toEqual([400, "WORKLOAD_INVALID"]);
  });
});

describe("reading", () => {
  test("lists by every filter, in pages that a cursor continues", async () => {
    const ids = [];
    for (const [index, definitionId] of ["a", "a", "b"].entries())
      ids.push(await admit({ idempotencyKey: `k${index}`, definitionId, priority: -index }));
    await http.post("/v1/workloads", admission({ tenantId: "other" }), asBob);
    const idsOf = async (query: string): Promise<unknown> => {
      const { workloads } = (await (await http.get(`/v1/workloads?${query}`)).json()) as {
        workloads: { workloadId: string }[];
      };
      return workloads.map(({ workloadId }) => workloadId);
    };
    expect(await idsOf("tenantId=acme")).toEqual(ids);
    expect(await idsOf("tenantId=acme&applicationId=none")).toEqual([]);
    expect(await idsOf("definitionId=a")).toEqual(ids.slice(0, 2));
    expect(await idsOf("requestedBy=human:alice")).toEqual(ids);
    expect(await idsOf("state=CLAIMED&state=RUNNING")).toEqual([]);
    await node.claim({ workloadId: ids[1], workerId: "w1", leaseMs: 1000 });
    expect(await idsOf("state=CLAIMED&state=RUNNING")).toEqual([ids[1]]);
    expect(await idsOf("workerId=w1")).toEqual([ids[1]]);
    expect(await idsOf("createdFrom=10001")).toEqual([]);
    expect(await idsOf("createdTo=10001&tenantId=acme")).toEqual(ids);

    const first = await membersOf(await http.get("/v1/workloads?limit=2&tenantId=acme"));
    expect(first["workloads"]).toHaveLength(2);
    const cursor = encodeURIComponent(String(first["cursor"]));
    expect(await idsOf(`limit=2&tenantId=acme&cursor=${cursor}`)).toEqual(ids.slice(2));
  });

  test.each([
    ["limit=0", "limit"],
    ["limit=1001", "limit"],
    ["limit=1e2", "limit"],
    ["limit=2&limit=3", "limit"],
    ["createdFrom=-1", "createdFrom"],
    ["createdTo=99999999999999999999", "createdTo"],
    ["state=DONE", "state"],
    ["requestedBy=alice", "requestedBy"],
    ["requestedBy=robot:r", "requestedBy"],
    ["cursor=nonsense", "cursor"],
    ["color=red", "color"],
    ["__proto__=1", "__proto__"],
    ["tenantId=", "tenantId"],
    ["tenantId=%00", "tenantId"],
    ["tenantId=%ff", "query"],
    ["tenantId=%", "query"],
  ])("refuses the query %s and names %s", async (query, path) => {
    expect(await refusalOf(await http.get(`/v1/workloads?${query}`))).toEqual([400, "WORKLOAD_INVALID", [path]]);
  });

  test("shows nothing of another tenant or application to who asks within one", async () => {
    const id = await admit();
    expect((await http.get(`/v1/workloads/${id}?tenantId=acme&applicationId=shop`)).status).toBe(200);
    const elsewhere = await http.get(`/v1/workloads/${id}?tenantId=acme&applicationId=other`);
    expect(await refusalOf(elsewhere)).toEqual([404, "WORKLOAD_NOT_FOUND"]);
    const half = await http.get(`/v1/workloads/${id}?tenantId=acme`);
    expect(await refusalOf(half)).toEqual([400, "WORKLOAD_INVALID", ["applicationId"]]);
  });

  test("explains what keeps a workload from running", async () => {
    const id = await admit({ notBefore: 50_000, approval: {} });
    const { workloadId, reasons } = await membersOf(await http.get(`/v1/workloads/${id}/explain`));
    expect(workloadId).toBe(id);
    expect(reasons).toEqual([
      expect.objectContaining({ reason: "approval" }),
      expect.objectContaining({ reason: "time", nextAttemptAt: 50_000 }),
    ]);
  });

  test("waits for a result until it is there, and not at all when it need not", async () => {
    const id = await admit();
    expect(await membersOf(await http.get(`/v1/workloads/${id}/result`))).toEqual({
      workloadId: id,
      state: "READY",
      settled: false,
    });
    const fence = { workloadId: id, workerId: "w1", ...(await run(id)) };
    const waiting = http.get(`/v1/workloads/${id}/result?waitMs=30000`);
    await node.complete({ ...fence, output: { done: true } });
    const response = await waiting;
    expect(await response.json()).toMatchObject({
      workloadId: id,
      state: "SUCCEEDED",
      settled: true,
      result: { output: { done: true } },
    });
    expect(response.headers.get("mandate-revision")).toMatch(/^\d+$/);
    for (const waitMs of ["60001", "-1", "x", "1.5"])
      expect(await refusalOf(await http.get(`/v1/workloads/${id}/result?waitMs=${waitMs}`))).toEqual([
        400,
        "WORKLOAD_INVALID",
        ["waitMs"],
      ]);
  });

  test("a wait for a result ends when the server stops", async () => {
    const stopping = new AbortController();
    const other = await openHttp({ stopping: stopping.signal });
    try {
      const admitted = (await membersOf(await other.post("/v1/workloads", admission())))["workload"];
      const { workloadId } = admitted as { workloadId: string };
      const waiting = other.get(`/v1/workloads/${workloadId}/result?waitMs=60000`);
      stopping.abort();
      expect(await membersOf(await waiting)).toMatchObject({ settled: false });
    } finally {
      await other.close();
    }
  });
});

describe("deciding", () => {
  const gated = { approval: { approverKinds: ["human"], approvers: [] } };
  const inputHash = async (id: string): Promise<unknown> =>
    (await membersOf(await http.get(`/v1/workloads/${id}`)))["inputHash"];

  test("is the subject's own, counts once, and binds the input", async () => {
    const id = await admit(gated);
    const path = `/v1/workloads/${id}/decision`;
    const verdict = { outcome: "approved", inputHash: await inputHash(id) };
    expect(await refusalOf(await http.post(path, verdict))).toEqual([403, "WORKLOAD_APPROVER_NOT_PERMITTED"]);
    expect(await refusalOf(await http.post(path, { ...verdict, decider: bob }))).toEqual([
      403,
      "WORKLOAD_UNAUTHORIZED",
      ["decider"],
    ]);
    expect(await refusalOf(await http.post(path, { ...verdict, inputHash: "0" }, asBob))).toEqual([
      409,
      "WORKLOAD_APPROVAL_STALE",
    ]);
    const decided = await http.post(path, verdict, asBob);
    expect(await decided.json()).toMatchObject({
      decision: { outcome: "approved", decidedBy: bob, grantId: "open", decidedAt: 10_000 },
      replayed: false,
    });
    expect(await membersOf(await http.post(path, verdict, asBob))).toMatchObject({ replayed: true });
    const opposite = await http.post(path, { ...verdict, outcome: "rejected", reason: "no" }, asBob);
    expect(await refusalOf(opposite)).toEqual([409, "WORKLOAD_APPROVAL_DECIDED"]);
  });

  test("refuses members that it does not know, and another workload than the path's", async () => {
    const id = await admit(gated);
    const path = `/v1/workloads/${id}/decision`;
    const verdict = { outcome: "approved", inputHash: await inputHash(id) };
    expect(await refusalOf(await http.post(path, { ...verdict, outcom: 1 }, asBob))).toEqual([
      400,
      "WORKLOAD_INVALID",
      ["outcom"],
    ]);
    expect(await refusalOf(await http.post(path, { ...verdict, workloadId: "x" }, asBob))).toEqual([
      400,
      "WORKLOAD_INVALID",
      ["workloadId"],
    ]);
    expect(await refusalOf(await http.post(path, [], asBob))).toEqual([400, "WORKLOAD_INVALID", [""]]);
  });

  test("approvals lists what the subject may decide, and nothing else", async () => {
    const open = await admit({ ...gated, idempotencyKey: "open" });
    const bobs = await admit({ approval: { approvers: [bob] }, idempotencyKey: "bobs" });
    await admit({ approval: { approverKinds: ["service"] }, idempotencyKey: "services" });
    const carols = await admit({
      approval: { approvers: [{ kind: "human", id: "carol" }] },
      idempotencyKey: "carols",
    });
    const idsFor = async (subject: string, query = ""): Promise<readonly string[]> => {
      const { workloads } = (await (
        await http.get(`/v1/approvals${query}`, { "X-Mandate-Subject": subject })
      ).json()) as { workloads: { workloadId: string }[] };
      return workloads.map(({ workloadId }) => workloadId).sort();
    };
    expect(await idsFor("human:bob")).toEqual([open, bobs].sort());
    expect(await idsFor("human:carol")).toEqual([open, carols].sort());
    expect(await idsFor("human:alice")).toEqual([]);
    expect(await idsFor("agent:bob")).toEqual([]);
    expect(await idsFor("human:bob", "?tenantId=acme&applicationId=other")).toEqual([]);
    expect(await idsFor("human:bob", "?limit=1")).toHaveLength(1);
    await http.post(`/v1/workloads/${open}/decision`, { outcome: "approved", inputHash: await inputHash(open) }, asBob);
    expect(await idsFor("human:bob")).toEqual([bobs]);
  });

  test("approvals can be gone through page by page", async () => {
    const wanted = [];
    for (let index = 0; index < 7; index++) wanted.push(await admit({ ...gated, idempotencyKey: `k${index}` }));
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const query = cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const page = (await (await http.get(`/v1/approvals?limit=3${query}`, asBob)).json()) as {
        workloads: { workloadId: string }[];
        cursor?: string;
      };
      found.push(...page.workloads.map(({ workloadId }) => workloadId));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found.sort()).toEqual(wanted.sort());
  });
});

describe("operating", () => {
  test("cancel, retry and time out are the subject's own, with or without a body", async () => {
    const id = await admit({ retryPolicy: { maxAttempts: 1, initialDelayMs: 0 } });
    const timedOut = await http.post(`/v1/workloads/${id}/timeout`, { reason: "late" });
    expect(await membersOf(timedOut)).toEqual({ state: "READY" });
    await run(id);
    const again = await http.app.request(`/v1/workloads/${id}/timeout`, {
      method: "POST",
      headers: { "X-Mandate-Subject": "human:alice" },
    });
    expect(await membersOf(again)).toEqual({ state: "DEAD_LETTER" });
    const retried = await http.post(`/v1/workloads/${id}/retry`, { actor: "alice" });
    expect(await membersOf(retried)).toEqual({ state: "READY" });
    const others = await http.post(`/v1/workloads/${id}/cancel`, { actor: "bob" });
    expect(await refusalOf(others)).toEqual([403, "WORKLOAD_UNAUTHORIZED", ["actor"]]);
    const cancelled = await http.post(`/v1/workloads/${id}/cancel`, { actor: bob }, asBob);
    expect(await membersOf(cancelled)).toEqual({ state: "CANCELLED" });
    const { history } = (await membersOf(await http.get(`/v1/workloads/${id}`))) as { history: { actor: string }[] };
    expect(history.at(-1)?.actor).toBe("bob");
  });

  test("a requestId, in the body or the header, makes a repeat answer as before", async () => {
    const id = await admit({ retryPolicy: { maxAttempts: 1 } });
    await run(id);
    await node.timeout({ workloadId: id, actor: "x" });
    const first = await http.post(`/v1/workloads/${id}/retry`, {}, { "Mandate-Request-Id": "r1" });
    expect(await membersOf(first)).toEqual({ state: "READY" });
    const repeat = await http.post(`/v1/workloads/${id}/retry`, { requestId: "r1" });
    expect(await membersOf(repeat)).toEqual({ state: "READY" });
    const fresh = await http.post(`/v1/workloads/${id}/retry`, { requestId: "r2" });
    expect(await refusalOf(fresh)).toEqual([409, "WORKLOAD_TRANSITION_DENIED"]);
    const both = await http.post(`/v1/workloads/${id}/retry`, { requestId: "r1" }, { "Mandate-Request-Id": "r2" });
    expect(await refusalOf(both)).toEqual([400, "WORKLOAD_INVALID", ["requestId"]]);
  });
});
