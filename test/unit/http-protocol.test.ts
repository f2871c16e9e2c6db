/**
 * Goal: the door keeps the rules of HTTP and its own bounds: methods, paths, subjects, revisions, limits, measures.
 * Method: the application over authorities in this process, asked without a port.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assert } from "../../src/base/assert.ts";
import { OPEN_MODE_HOST, startHttpServer } from "../../src/http/server.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "prom-client";
import { admission, membersOf, openHttp, refusalOf, type HttpSetting } from "./http-setting.ts";

let http: HttpSetting;

beforeEach(async () => {
  http = await openHttp();
});
afterEach(() => http.close());

const ask = async (method: string, path: string, headers: Record<string, string> = {}): Promise<Response> =>
  http.app.request(path, { method, headers: { "X-Mandate-Subject": "human:alice", ...headers } });

describe("routes", () => {
  test.each([
    "/",
    "/v1",
    "/v1/",
    "/v2/workloads",
    "//v1/workloads",
    "/v1//workloads",
    "/v1/workloads/",
    "/V1/workloads",
  ])("%s is none", async (path) => expect(await refusalOf(await ask("GET", path))).toEqual([404, "ROUTE_NOT_FOUND"]));

  test.each([
    ["DELETE", "/v1/workloads/x", "GET, HEAD, OPTIONS"],
    ["PUT", "/v1/workloads", "POST, GET, HEAD, OPTIONS"],
    ["GET", "/v1/workloads/x/decision", "POST, OPTIONS"],
    ["POST", "/readyz", "GET, HEAD, OPTIONS"],
    ["PATCH", "/v1/events", "GET, HEAD, OPTIONS"],
  ])("%s %s is not taken, and the answer says what is", async (method, path, allow) => {
    const response = await ask(method, path);
    expect(response.headers.get("allow")).toBe(allow);
    expect(await refusalOf(response)).toEqual([405, "METHOD_NOT_ALLOWED"]);
    const options = await ask("OPTIONS", path);
    expect([options.status, options.headers.get("allow"), await options.text()]).toEqual([204, allow, ""]);
  });

  test("HEAD answers like GET, without a body, and leaves no event stream open", async () => {
    const get = await ask("GET", "/v1/workloads");
    const head = await ask("HEAD", "/v1/workloads");
    expect([head.status, head.headers.get("content-type"), await head.text()]).toEqual([
      200,
      get.headers.get("content-type"),
      "",
    ]);
    const events = await ask("HEAD", "/v1/events");
    expect([events.status, await events.text()]).toEqual([200, ""]);
    expect(await http.registry.getSingleMetricAsString("mandate_http_event_streams")).toContain(
      "mandate_http_event_streams 0",
    );
  });

  test("an id in the path is unescaped once, and a broken escape is named", async () => {
    for (const id of ["nobody", "a%2Fb", "%F0%9F%98%80", "%2525", "*", "a.b"])
      expect(await refusalOf(await ask("GET", `/v1/workloads/${id}`))).toEqual([404, "WORKLOAD_NOT_FOUND"]);
    for (const id of ["%00", "%0D%0A", "x".repeat(513)])
      expect(await refusalOf(await ask("GET", `/v1/workloads/${id}`))).toEqual([
        400,
        "WORKLOAD_INVALID",
        ["workloadId"],
      ]);
    for (const id of ["%zz", "%ff", "%"])
      expect(await refusalOf(await ask("GET", `/v1/workloads/${id}`))).toEqual([
        400,
        "WORKLOAD_INVALID",
        ["workloadId"],
      ]);
  });

  test("every answer says that the node runs in open mode", async () => {
    for (const path of [
      "/livez",
      "/readyz",
      "/metrics",
      "/openapi.json",
      "/v1/workloads",
      "/nothing",
      "/v1/workloads/x",
    ])
      expect((await ask("GET", path)).headers.get("mandate-mode")).toBe("open");
    expect((await ask("OPTIONS", "/livez")).headers.get("mandate-mode")).toBe("open");
  });
});

describe("the subject", () => {
  test("must be named on every route of the API, and on no other", async () => {
    for (const path of ["/v1/workloads", "/v1/workloads/x", "/v1/approvals", "/v1/events"]) {
      const response = await http.app.request(path);
      expect(response.headers.get("www-authenticate")).toBe("X-Mandate-Subject");
      expect(await refusalOf(response)).toEqual([401, "SUBJECT_REQUIRED"]);
    }
    for (const path of ["/livez", "/readyz", "/metrics", "/openapi.json"])
      expect((await http.app.request(path)).status).toBe(200);
  });

  test.each([
    "alice",
    "human:",
    "robot:r2",
    ":x",
    "Human:alice",
    "human:%zz",
    "human:a%00",
    "human:\u00ff",
    `human:${"x".repeat(513)}`,
  ])("%j is none", async (header) =>
    expect(await refusalOf(await ask("GET", "/v1/workloads", { "X-Mandate-Subject": header }))).toEqual([
      400,
      "WORKLOAD_INVALID",
      ["X-Mandate-Subject"],
    ]),
  );
});

describe("the name that the node is asked by", () => {
  test.each(["example.com", "127.0.0.1.example.com:7700", "a.b:7700", "LOCALHOST.EXAMPLE"])(
    "%s is a public one, by which nobody is believed",
    async (host) =>
      expect(await refusalOf(await ask("GET", "/v1/workloads", { host }))).toEqual([
        403,
        "WORKLOAD_UNAUTHORIZED",
        ["Host"],
      ]),
  );

  test.each(["127.0.0.1", "127.0.0.1:7700", "localhost:7700", "[::1]:7700", "node", "node-1:80", "a.localhost:7700"])(
    "%s is none",
    async (host) => expect((await ask("GET", "/v1/workloads", { host })).status).toBe(200),
  );
});

describe("revisions", () => {
  test("an answer reflects the revision that the request asks for, or there is none", async () => {
    const { cluster } = http;
    const [node] = cluster.nodes;
    assert(node !== undefined, "a cluster has a node");
    await cluster.hold(node);
    const admitted = await http.post("/v1/workloads", admission());
    const revision = admitted.headers.get("mandate-revision") ?? "";
    // A view that is held does not come to it, and says so at once.
    expect((await ask("GET", "/v1/workloads", { "Mandate-Min-Revision": revision })).status).toBe(503);
    await cluster.release(node);
    expect((await ask("GET", "/v1/workloads", { "Mandate-Min-Revision": revision })).status).toBe(200);
  });

  test("a revision that does not come in time is answered with 503 and when to come again", async () => {
    const quick = await openHttp({ config: { minRevisionWaitMs: 20 } });
    try {
      const response = await quick.get("/v1/workloads", { "Mandate-Min-Revision": "999" });
      expect(response.headers.get("retry-after")).toBe("1");
      expect(await refusalOf(response)).toEqual([503, "AUTHORITY_NOT_READY"]);
    } finally {
      await quick.close();
    }
  });

  test.each(["x", "-1", "1.5", "0-1-2", "9".repeat(20), "1-5"])("%j is none", async (header) =>
    expect(await refusalOf(await ask("GET", "/v1/workloads", { "Mandate-Min-Revision": header }))).toEqual([
      400,
      "WORKLOAD_INVALID",
      ["Mandate-Min-Revision"],
    ]),
  );

  test("are told by every answer of every route, refusals too", async () => {
    const admitted = await http.post("/v1/workloads", admission());
    const revision = Number(admitted.headers.get("mandate-revision"));
    const path = admitted.headers.get("location") ?? "";
    const answers = [
      ...(await Promise.all(["", "/explain", "/result"].map((rest) => ask("GET", `${path}${rest}`)))),
      await ask("GET", "/v1/workloads"),
      await ask("GET", "/v1/approvals"),
      await ask("GET", "/v1/workloads/none"),
      await ask("GET", "/readyz"),
      await http.post("/v1/workloads", admission({ input: "other" })),
      await http.post("/v1/workloads/batch", [{}]),
      await http.post(`${path}/retry`),
      await http.send("/v1/workloads", "{"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 404, 200, 409, 200, 409, 400]);
    for (const { headers } of answers) expect(Number(headers.get("mandate-revision"))).toBeGreaterThanOrEqual(revision);
  });

  test("name the shard where there are several", async () => {
    const sharded = await openHttp({ shards: 3 });
    try {
      const admitted = await sharded.post("/v1/workloads", admission());
      const revision = admitted.headers.get("mandate-revision") ?? "";
      expect(revision).toMatch(/^[012]-\d+$/);
      const path = admitted.headers.get("location") ?? "";
      expect((await sharded.get(path, { "Mandate-Min-Revision": revision })).status).toBe(200);
      const all = (await sharded.get("/v1/workloads")).headers.get("mandate-revision") ?? "";
      expect(all).toMatch(/^0-\d+,1-\d+,2-\d+$/);
      expect((await sharded.get(path, { "Mandate-Min-Revision": all })).status).toBe(200);
      const bare = await sharded.get(path, { "Mandate-Min-Revision": "1" });
      expect((await refusalOf(bare))[1]).toBe("WORKLOAD_INVALID");
      const beyond = await sharded.get(path, { "Mandate-Min-Revision": "3-1" });
      expect((await refusalOf(beyond))[1]).toBe("WORKLOAD_INVALID");
    } finally {
      await sharded.close();
    }
  });
});

describe("bounds", () => {
  test("beyond the requests under way a node says so, and long polls have a bound of their own", async () => {
    const small = await openHttp({ config: { inFlightMax: 1, waitersMax: 1 } });
    try {
      const { workload } = (await membersOf(await small.post("/v1/workloads", admission()))) as {
        workload: { workloadId: string };
      };
      const result = `/v1/workloads/${workload.workloadId}/result?waitMs=60000`;
      const polls = [small.get(result), small.get(result)];
      const refused = await Promise.race(polls);
      expect(refused.headers.get("retry-after")).toBe("1");
      expect(await refusalOf(refused)).toEqual([429, "AUTHORITY_OVERLOADED"]);

      const both = await Promise.all([small.get("/v1/workloads"), small.get("/v1/workloads")]);
      expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200, 429]));
      expect((await small.get("/v1/workloads")).status).toBe(200);

      await small.post(`/v1/workloads/${workload.workloadId}/cancel`);
      expect(new Set((await Promise.all(polls)).map(({ status }) => status))).toEqual(new Set([200, 429]));
    } finally {
      await small.close();
    }
  });

  test("measures count requests by route and status, whatever the path says", async () => {
    await ask("GET", "/v1/workloads/x");
    await ask("GET", "/v1/workloads/y");
    await ask("GET", "/some/path");
    const text = await (await ask("GET", "/metrics")).text();
    expect(text).toContain('mandate_http_requests_total{route="GET /v1/workloads/{id}",status="404"} 2');
    expect(text).toContain('mandate_http_requests_total{route="none",status="404"} 1');
    expect(text).not.toContain("/some/path");
  });
});

test.each(["0.0.0.0", "::1", "localhost", "::", "10.0.0.1"])(
  "a node in open mode does not listen on %s",
  async (host) => {
    const [authority] = http.cluster.nodes;
    assert(authority !== undefined, "a cluster has a node");
    await expect(
      startHttpServer({ authority, log: silentLog, metrics: new Registry(), port: 0, host }),
    ).rejects.toMatchObject({ code: "WORKLOAD_INVALID", details: { paths: ["host"] } });
    expect(OPEN_MODE_HOST).toBe("127.0.0.1");
  },
);
