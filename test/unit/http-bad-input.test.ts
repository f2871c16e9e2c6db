/**
 * Goal: whatever is sent, the answer is a problem document with a code of the registry that names the place, or the
 * content is accepted and comes back exactly; what is refused leaves nothing behind.
 * Method: hand-made bad values through every route that takes a body; random bodies; afterwards the store is looked at.
 */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { problem } from "../../src/http/schemas.ts";
import { admission, membersOf, openHttp, refusalOf, type HttpSetting } from "./http-setting.ts";

let http: HttpSetting;

beforeEach(async () => {
  http = await openHttp();
});
afterEach(() => http.close());

const stored = async (): Promise<unknown> => (await membersOf(await http.get("/v1/workloads")))["workloads"];

/** A request to admit with a member's JSON put in as text. */
const withText = (member: string, json: string): string =>
  JSON.stringify(admission({ [member]: "@@" })).replace('"@@"', () => json);

describe("an input that JSON can't carry exactly", () => {
  test.each([
    ["1e400", "input"],
    ["-1e400", "input"],
    ["-0", "input"],
    ["9007199254740993", "input"],
    ["[1,[2,-0]]", "input[1][1]"],
    ['{"a":{"b":1e999}}', "input.a.b"],
    ['"\\ud800"', "input"],
    ['{"\\udc00":1}', "input"],
  ])("%s is refused at its place", async (json, path) => {
    const [status, code, paths] = await refusalOf(await http.send("/v1/workloads", withText("input", json)));
    expect([status, code]).toEqual([400, "WORKLOAD_INVALID"]);
    expect(String((paths as string[])[0])).toContain(path);
    expect(await stored()).toEqual([]);
  });

  test("nesting of 10,000 levels is refused, and of 200 comes back", async () => {
    const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
    for (const member of ["input", "trigger", "retryPolicy", "authorization", "surplus"]) {
      const [status, code] = await refusalOf(await http.send("/v1/workloads", withText(member, nested(10_000))));
      expect([status, code]).toEqual([400, "WORKLOAD_INVALID"]);
    }
    const whole = await http.send("/v1/workloads", nested(4_000_000));
    expect((await refusalOf(whole)).slice(0, 2)).toEqual([400, "WORKLOAD_INVALID"]);
    expect(await stored()).toEqual([]);
    const accepted = await http.send("/v1/workloads", withText("input", nested(200)));
    expect(JSON.stringify(((await membersOf(accepted))["workload"] as { input: unknown }).input)).toBe(nested(200));
  });
});

describe("content that is odd and exact comes back as it was", () => {
  test.each([
    ["NUL and control characters", { text: "a\u0000b\u001f" }],
    ["a member called __proto__", JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":2}}')],
    ["emoji and unusual spaces", { "😀": "\u2028\u2029\ufeff" }],
    ["numbers at their edges", [9_007_199_254_740_991, -9_007_199_254_740_991, 5e-324, 1.5e-300, 0.1, -123.456]],
    ["nothing", null],
    ["an empty name", { "": {} }],
    ["words that other formats know", { $ref: "#", "@type": "x", hasOwnProperty: 1, toJSON: 2 }],
  ])("%s", async (_, input) => {
    const response = await http.post("/v1/workloads", admission({ input: input as unknown }));
    expect(response.status).toBe(201);
    const location = response.headers.get("location") ?? "";
    const read = await membersOf(await http.get(location));
    expect(JSON.stringify(read["input"])).toBe(JSON.stringify(input));
  });

  test.each(["a.b", "*", ">", "a b", "😀", "x".repeat(300), "ключ", "a/b?c#d%e", "=41"])(
    "the identifier %j",
    async (name) => {
      const request = admission({ tenantId: name, applicationId: name, definitionId: name, idempotencyKey: name });
      const response = await http.post("/v1/workloads", request);
      expect(response.status).toBe(201);
      const query = new URLSearchParams({ tenantId: name, applicationId: name, definitionId: name });
      const { workloads } = (await (await http.get(`/v1/workloads?${query.toString()}`)).json()) as {
        workloads: object[];
      };
      expect(workloads).toEqual([
        expect.objectContaining({ tenantId: name, applicationId: name, idempotencyKey: name }),
      ]);
    },
  );
});

describe("wrong members are named, all of them", () => {
  test.each<[Record<string, unknown>, readonly string[]]>([
    [{ tenantId: 7 }, ["tenantId"]],
    [{ tenantId: "" }, ["tenantId"]],
    [{ tenantId: "a\r\nb" }, ["tenantId"]],
    [{ tenantId: "a\u0000" }, ["tenantId"]],
    [{ tenantId: "x".repeat(513) }, ["tenantId"]],
    [{ tenantId: undefined, definitionId: undefined }, ["tenantId", "definitionId"]],
    [{ priority: 1.5 }, ["priority"]],
    [{ priority: 2_147_483_648 }, ["priority"]],
    [{ priority: "1" }, ["priority"]],
    [{ notBefore: -1 }, ["notBefore"]],
    [{ capabilities: ["a", 1] }, ["capabilities[1]"]],
    [{ retryPolicy: { maxAttempts: 0, color: 1 } }, ["retryPolicy.maxAttempts", "retryPolicy.color"]],
    [{ timeouts: { queueMs: 0 } }, ["timeouts.queueMs"]],
    [{ idempotencyKey: " " }, ["idempotencyKey"]],
    [{ requestedBy: "alice" }, ["requestedBy"]],
    [{ requestedBy: { kind: "robot", id: "r" } }, ["requestedBy.kind"]],
    [{ authorization: null }, ["authorization"]],
    [{ surplus: 1 }, ["surplus"]],
    [{ workloadId: "workload_1", state: "SUCCEEDED" }, ["workloadId", "state"]],
  ])("%j", async (changes, paths) => {
    expect(await refusalOf(await http.post("/v1/workloads", admission(changes)))).toEqual([
      400,
      "WORKLOAD_INVALID",
      paths,
    ]);
    expect(await stored()).toEqual([]);
  });

  test("a member called __proto__ beside the others is one that the request does not have", async () => {
    const body = JSON.stringify(admission()).replace("{", '{"__proto__":{"admin":true},');
    expect(await refusalOf(await http.send("/v1/workloads", body))).toEqual([400, "WORKLOAD_INVALID", ["__proto__"]]);
    expect(({} as { admin?: unknown }).admin).toBeUndefined();
  });

  test("a million surplus members cost little and are not all listed", async () => {
    const body = `{${Array.from({ length: 1_000_000 }, (_, index) => `"${index}":1`)
      .join(",")
      .slice(0, 8_000_000)}`;
    const cut = `${body.slice(0, body.lastIndexOf(","))}}`;
    const response = await http.send("/v1/workloads", cut);
    const [status, code, paths] = await refusalOf(response);
    expect([status, code]).toEqual([400, "WORKLOAD_INVALID"]);
    expect((paths as unknown[]).length).toBeLessThanOrEqual(50);
  });
});

describe("a body", () => {
  test.each([
    ["cut short", '{"a":', 400, "WORKLOAD_INVALID"],
    ["empty", "", 400, "WORKLOAD_INVALID"],
    ["an array", "[]", 400, "WORKLOAD_INVALID"],
    ["a text", '"x"', 400, "WORKLOAD_INVALID"],
    ["null", "null", 400, "WORKLOAD_INVALID"],
    ["not UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d), 400, "WORKLOAD_INVALID"],
    ["larger than 8 MiB", new Uint8Array(8 * 1024 * 1024 + 1).fill(0x20), 413, "WORKLOAD_TOO_LARGE"],
  ] as const)("that is %s is refused", async (_, body, status, code) => {
    for (const path of ["/v1/workloads", "/v1/workloads/batch", "/v1/workloads/x/decision"]) {
      if (path.endsWith("batch") && body === "[]") continue;
      expect((await refusalOf(await http.send(path, body))).slice(0, 2)).toEqual([status, code]);
    }
    expect(await stored()).toEqual([]);
  });

  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/json; charset=latin1",
    "application/jsonp",
    "",
  ])("of the type %j is refused", async (type) => {
    const response = await http.post("/v1/workloads", admission(), { "content-type": type });
    expect(await refusalOf(response)).toEqual([400, "WORKLOAD_INVALID", ["Content-Type"]]);
  });

  test.each(["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"'])(
    "of the type %j is taken",
    async (type) => {
      expect((await http.post("/v1/workloads", admission(), { "content-type": type })).status).toBe(201);
    },
  );

  test("that is compressed is refused", async () => {
    const response = await http.post("/v1/workloads", admission(), { "content-encoding": "gzip" });
    expect(await refusalOf(response)).toEqual([400, "WORKLOAD_INVALID", ["Content-Encoding"]]);
  });

  test("of any kind gets a problem document or an answer, on every route that takes one", async () => {
    const value = fc.oneof(
      fc.jsonValue().map((json) => JSON.stringify(json)),
      fc
        .record(
          {
            outcome: fc.jsonValue(),
            reason: fc.jsonValue(),
            actor: fc.jsonValue(),
            inputHash: fc.jsonValue(),
            requestedBy: fc.jsonValue(),
            tenantId: fc.jsonValue(),
            input: fc.jsonValue(),
            requestId: fc.jsonValue(),
          },
          { requiredKeys: [] },
        )
        .map((members) => JSON.stringify(admission(members))),
      fc.string(),
    );
    const path = fc.constantFrom(
      "/v1/workloads",
      "/v1/workloads/batch",
      "/v1/workloads/workload_1/decision",
      "/v1/workloads/workload_1/cancel",
      "/v1/workloads/workload_1/retry",
      "/v1/workloads/workload_1/timeout",
    );
    await fc.assert(
      fc.asyncProperty(path, value, async (route, body) => {
        const response = await http.send(route, body);
        if (response.ok) return;
        expect(response.status).toBeLessThan(500);
        expect(response.headers.get("content-type")).toBe("application/problem+json");
        problem.parse(await response.json());
      }),
      { numRuns: 1500 },
    );
  });
});
