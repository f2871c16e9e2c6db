/**
 * Goal: whatever is sent to the worker calls is answered, within bounds, by exactly one node, and a stop loses nothing;
 * discovery finds the service and sees how it does.
 * Method: a real nats-server with the store on it and one or two authorities; bad messages by hand, and random bytes at
 * every verb.
 */
import fc from "fast-check";
import { Packr, Unpackr } from "msgpackr";
import * as legacy from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { assert } from "../../src/base/assert.ts";
import { errorRegistry, isErrorCode } from "../../src/core/errors.ts";
import { servedVerbs } from "../../src/nats/verbs.ts";
import { refusalOf, replyOf, WorkerSetting, type Reply } from "./worker-setting.ts";

let setting: WorkerSetting;
const registry = new Registry();

beforeAll(async () => {
  setting = await WorkerSetting.start(registry);
});
afterAll(() => setting.close());

describe("bad messages", () => {
  const send = async (payload: string | Uint8Array, contentType?: string): Promise<Reply> =>
    replyOf(await setting.send("mandate.v1.acme.app.work.claim", payload, contentType));

  test.each<[string, string | Uint8Array, readonly string[]]>([
    ["nothing", "", ["workloadId", "workerId", "leaseMs"]],
    ["no JSON", "{x", [""]],
    ["no UTF-8", Uint8Array.of(0xff), [""]],
    ["a number", "7", [""]],
    ["null", "null", [""]],
    ["an array", "[]", [""]],
    ["depth 10,000", "[".repeat(10_000), [""]],
    ["a __proto__", '{"workloadId":"x","workerId":"w","leaseMs":1,"__proto__":{"a":1}}', ["__proto__"]],
    ["1e400", '{"workloadId":"x","workerId":"w","leaseMs":1e400}', ["leaseMs"]],
    ["-0", '{"workloadId":"x","workerId":"w","leaseMs":-0}', ["leaseMs"]],
    ["2^53 + 1", '{"workloadId":"x","workerId":"w","leaseMs":9007199254740993}', ["leaseMs"]],
    ["a lone surrogate", '{"workloadId":"\\ud800","workerId":"w","leaseMs":1}', ["workloadId"]],
    ["CRLF", '{"workloadId":"a\\r\\nb","workerId":"w","leaseMs":1}', ["workloadId"]],
    ["513 characters", `{"workloadId":"x","workerId":"${"w".repeat(513)}","leaseMs":1}`, ["workerId"]],
  ])("%s is refused by its place", async (_, payload, paths) => {
    const [code, named] = await refusalOf(send(payload));
    // A value may break several rules, each of which names it.
    expect([code, [...new Set(named as string[])]]).toEqual(["WORKLOAD_INVALID", paths]);
  });

  test("of another content type, and msgpack that is none, are refused readably", async () => {
    expect(await refusalOf(send("{}", "text/plain"))).toEqual(["WORKLOAD_INVALID", ["Content-Type"]]);
    const message = await setting.send(
      "mandate.v1.acme.app.work.claim",
      Uint8Array.of(0xc1),
      "application/msgpack; charset=binary",
    );
    expect(message.headers?.get("Nats-Service-Error-Code")).toBe("400");
    expect(new Unpackr({ useRecords: false }).unpack(message.data)).toMatchObject({ code: "WORKLOAD_INVALID" });
  });

  test("of any bytes, at every verb and in both notations, are answered with a refusal of the registry", async () => {
    const verb = fc.constantFrom(
      "next",
      "claim",
      "start",
      "heartbeat",
      "context",
      "checkpoint",
      "complete",
      "fail",
      "confirm-cancel",
    );
    const payload = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.jsonValue().map((value) => new TextEncoder().encode(JSON.stringify(value))),
      fc.jsonValue().map((value) => new Packr({ useRecords: false }).pack(value)),
    );
    await fc.assert(
      fc.asyncProperty(verb, payload, fc.boolean(), async (name, bytes, packed) => {
        const type = packed ? "application/msgpack" : undefined;
        const message = await setting.send(`mandate.v1.acme.fuzz.work.${name}`, bytes, type);
        const code = message.headers?.get("Nats-Service-Error") ?? "";
        assert(isErrorCode(code), `${code} is a code`);
        expect(errorRegistry[code].httpStatus).toBeLessThan(500);
      }),
      { numRuns: 500 },
    );
  });

  test("without a way back are ignored, and change nothing", async () => {
    const { workloadId, prefix } = await setting.admit();
    setting.client.publish(`${prefix}.work.claim`, JSON.stringify({ workloadId, workerId: "w", leaseMs: 30_000 }));
    // A request on the same connection is served after it.
    await setting.ask(`${prefix}.work.start`, {});
    expect((await setting.authority.get(workloadId)).state).toBe("READY");
  });
});

describe("bounds", () => {
  test("long polls do not hold up other requests, and end with work as soon as there is some", async () => {
    const { prefix } = await setting.admit({ notBefore: Date.now() + 3_600_000 });
    const [, , tenantId, applicationId] = prefix.split(".");
    const polls = Array.from({ length: 20 }, (_, index) =>
      setting.client.request(
        `${prefix}.work.next`,
        JSON.stringify({ workerId: `w${index}`, leaseMs: 30_000, waitMs: 30_000 }),
        { timeout: 40_000 },
      ),
    );
    expect((await refusalOf(setting.ask(`${prefix}.work.start`, {})))[0]).toBe("WORKLOAD_INVALID");
    for (let index = 0; index < polls.length; index++)
      await setting.admit({ tenantId, applicationId, idempotencyKey: `poll${index}` });
    const answers = await Promise.all(polls);
    const claimed = answers.flatMap((message) => message.json<{ workloadId: string }[]>());
    expect(new Set(claimed.map(({ workloadId }) => workloadId)).size).toBe(polls.length);
  });

  test("beyond them a request is refused with 429, at once", async () => {
    const { prefix } = await setting.admit({ notBefore: Date.now() + 3_600_000 });
    await setting.withoutService(async () => {
      const small = await setting.serve(setting.authority, { limits: { waitersMax: 0 } });
      const request = { workerId: "w", leaseMs: 1000, waitMs: 30_000 };
      expect((await refusalOf(setting.ask(`${prefix}.work.next`, request)))[0]).toBe("AUTHORITY_OVERLOADED");
      expect((await setting.ask(`${prefix}.work.next`, { ...request, waitMs: 0 })).body).toEqual([]);
      await small.stop();
    });
  });

  test("an answer that no message can carry is a refusal that says so", async () => {
    const { workloadId, prefix } = await setting.admit();
    const { body } = await setting.ask(`${prefix}.work.claim`, {
      workloadId,
      workerId: "w",
      leaseMs: 60_000,
      start: true,
    });
    const fence = { workloadId, workerId: "w", claimId: body["claimId"], fencingToken: 1 };
    const bytesMax = setting.client.info?.max_payload ?? 0;
    const state = "x".repeat(Math.min(bytesMax, 4 * 1024 * 1024) - 4096);
    // Together they stay within what a workload may hold, and with what surrounds them they are more than a message takes.
    const states = [...Array.from({ length: Math.floor(bytesMax / state.length) }, () => state), "x".repeat(8000)];
    for (const each of states) {
      const answer = await setting.ask(`${prefix}.work.checkpoint`, { ...fence, state: each });
      expect(answer).toMatchObject({ error: undefined });
    }
    expect((await refusalOf(setting.ask(`${prefix}.work.context`, fence)))[0]).toBe("WORKLOAD_TOO_LARGE");
    expect((await setting.ask(`${prefix}.work.complete`, { ...fence, output: 1 })).body).toMatchObject({ output: 1 });
  });
});

describe("discovery", () => {
  const srv = async (subject: string): Promise<Record<string, unknown>> =>
    (await setting.client.request(subject, "", { timeout: 10_000 })).json();

  test("answers PING, INFO and STATS to everybody, by name and by id, as ADR-32 has it", async () => {
    const ping = await srv("$SRV.PING");
    expect(ping).toMatchObject({
      type: "io.nats.micro.v1.ping_response",
      name: "mandate",
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      metadata: { node: "node-1", mode: "open" },
    });
    const id = String(ping["id"]);
    expect(await srv("$SRV.PING.mandate")).toEqual(ping);
    expect(await srv(`$SRV.PING.mandate.${id}`)).toEqual(ping);
    const info = await srv(`$SRV.INFO.mandate.${id}`);
    expect(info).toMatchObject({ type: "io.nats.micro.v1.info_response", id });
    const endpoints = info["endpoints"] as { name: string; subject: string; queue_group: string }[];
    expect(endpoints).toContainEqual({
      name: "work-next",
      subject: "mandate.v1.*.*.work.next",
      queue_group: "mandate",
      metadata: {},
    });
    expect(endpoints).toHaveLength(servedVerbs.length);

    const before = await statsOf("work-start");
    await setting.ask("mandate.v1.acme.app.work.start", {});
    const after = await statsOf("work-start");
    expect(after.num_requests - before.num_requests).toBe(1);
    expect(after.num_errors - before.num_errors).toBe(1);
    expect(after).toMatchObject({ last_error: "WORKLOAD_INVALID", subject: "mandate.v1.*.*.work.start" });
    expect(Number.isInteger(after.processing_time) && Number.isInteger(after.average_processing_time)).toBe(true);
  });

  test("is found by the service client of another package, which checks what it is told", async () => {
    const connection = await legacy.connect({ servers: setting.urls });
    try {
      const services = connection.services.client({
        maxMessages: 1,
        maxWait: 10_000,
        strategy: legacy.RequestStrategy.Count,
      });
      const found: unknown[] = [];
      for (const answers of [services.ping("mandate"), services.info("mandate"), services.stats("mandate")])
        for await (const { name, version } of await answers) found.push([name, version]);
      expect(found).toEqual([1, 2, 3].map(() => ["mandate", "1.0.0"]));
    } finally {
      await connection.close();
    }
  });

  interface Stats {
    readonly name: string;
    readonly num_requests: number;
    readonly num_errors: number;
    readonly processing_time: number;
    readonly average_processing_time: number;
  }
  const statsOf = async (name: string): Promise<Stats> => {
    const stats = await srv("$SRV.STATS.mandate");
    expect(stats).toMatchObject({ type: "io.nats.micro.v1.stats_response", started: expect.stringMatching(/Z$/) });
    const found = (stats["endpoints"] as Stats[]).find((endpoint) => endpoint.name === name);
    assert(found !== undefined, `${name} has statistics`);
    return found;
  };

  test("measures count requests by verb and code, whatever a subject says", async () => {
    await setting.ask("mandate.v1.acme.app.some.thing", {});
    const text = await registry.metrics();
    expect(text).toMatch(/mandate_worker_requests_total\{verb="unknown",code="ROUTE_NOT_FOUND"\} \d+/);
    expect(text).not.toContain("some.thing");
    expect(text).toContain("mandate_worker_requests_under_way 0");
  });
});

describe("several nodes", () => {
  test("answer each request once, and one that stops leaves its requests to the other", async () => {
    const second = await setting.serve(await setting.addAuthority("node-2"));
    const { workloadId, prefix } = await setting.admit({ retryPolicy: { maxAttempts: 100 } });
    const body = JSON.stringify({ workerId: "w", leaseMs: 30_000, max: 100 });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => setting.client.request(`${prefix}.work.next`, body, { timeout: 10_000 })),
    );
    const claims = answers.flatMap((message) => message.json<{ workloadId: string }[]>());
    expect(claims.map((claim) => claim.workloadId)).toEqual([workloadId]);

    const waiting = Array.from({ length: 20 }, () =>
      setting.client.request(`${prefix}.work.next`, JSON.stringify({ workerId: "w", leaseMs: 1000, waitMs: 2000 }), {
        timeout: 10_000,
      }),
    );
    await setting.client.flush();
    await second.stop();
    expect((await Promise.all(waiting)).map((message) => message.json<unknown>())).toEqual(waiting.map(() => []));
    for (let index = 0; index < 20; index++)
      expect((await refusalOf(setting.ask(`${prefix}.work.start`, {})))[0]).toBe("WORKLOAD_INVALID");
  });
});

test("a node that is not ready says so at once", async () => {
  const idle = await setting.addAuthority("node-3", "idle");
  await setting.withoutService(async () => {
    const own = await setting.serve(idle);
    const reply = setting.ask("mandate.v1.acme.app.work.next", { workerId: "w", leaseMs: 1000, waitMs: 60_000 });
    expect((await refusalOf(reply))[0]).toBe("AUTHORITY_NOT_READY");
    await own.stop();
  });
});
