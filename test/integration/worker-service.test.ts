/**
 * Goal: any NATS client in any language is a worker: the whole life of a claim, in JSON and msgpack, with refusals that
 * every client can read, and never beyond the scope that the subject names.
 * Method: a real nats-server with the store on it; driven by the present client, by the legacy package and by a bare TCP
 * socket that speaks the protocol by hand.
 */
import { headers, type Msg } from "@nats-io/nats-core";
import { Packr, Unpackr } from "msgpackr";
import * as legacy from "nats";
import { once } from "node:events";
import { connect as connectSocket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { poll } from "../../cluster/poll.ts";
import { assert } from "../../src/base/assert.ts";
import { refusalOf, WorkerSetting } from "./worker-setting.ts";

let setting: WorkerSetting;

beforeAll(async () => {
  setting = await WorkerSetting.start();
});
afterAll(() => setting.close());

describe("the life of a claim", () => {
  test("in JSON, every verb in turn", async () => {
    const { workloadId, prefix } = await setting.admit({ retryPolicy: { initialDelayMs: 0, retryOn: ["oops"] } });
    const next = await setting.ask(`${prefix}.work.next`, { workerId: "w1", max: 5, leaseMs: 30_000, requestId: "n1" });
    expect(next).toMatchObject({ status: undefined, error: undefined });
    const [claim] = next.body as unknown as Record<string, unknown>[];
    expect(claim).toMatchObject({ workloadId, workerId: "w1", fencingToken: 1 });
    const repeated = await setting.ask(`${prefix}.work.next`, {
      workerId: "w1",
      max: 5,
      leaseMs: 30_000,
      requestId: "n1",
    });
    expect(repeated.body).toEqual(next.body);
    const fence = { workloadId, workerId: "w1", claimId: claim?.["claimId"], fencingToken: 1 };
    expect((await setting.ask(`${prefix}.work.start`, fence)).body).toMatchObject({ workloadId, fencingToken: 1 });
    expect((await setting.ask(`${prefix}.work.heartbeat`, { ...fence, extendMs: 60_000 })).body).toMatchObject({
      cancellationRequested: false,
      claim: { workloadId },
    });
    expect((await setting.ask(`${prefix}.work.checkpoint`, { ...fence, state: { at: 1 } })).body).toMatchObject({
      sequence: 1,
      state: { at: 1 },
    });
    expect(
      (await setting.ask(`${prefix}.work.context`, { ...fence, secretReferences: ["secret://a"] })).body,
    ).toMatchObject({
      input: { size: 3 },
      checkpoints: [{ state: { at: 1 } }],
      secretReferences: ["secret://a"],
    });
    const failed = { ...fence, kind: "oops", error: "it broke" };
    expect((await setting.ask(`${prefix}.work.fail`, failed)).body).toEqual({ state: "READY" });
    expect((await setting.ask(`${prefix}.work.fail`, failed)).body).toEqual({ state: "READY" });

    const again = await setting.ask(`${prefix}.work.claim`, {
      workloadId,
      workerId: "w2",
      leaseMs: 30_000,
      start: true,
    });
    const second = { workloadId, workerId: "w2", claimId: again.body["claimId"], fencingToken: 2 };
    expect(await refusalOf(setting.ask(`${prefix}.work.complete`, { ...fence, output: 1 }))).toEqual([
      "WORKLOAD_STALE_FENCE",
      undefined,
    ]);
    expect((await setting.ask(`${prefix}.work.complete`, { ...second, output: { done: true } })).body).toMatchObject({
      workloadId,
      output: { done: true },
    });
    expect((await setting.authority.get(workloadId)).state).toBe("SUCCEEDED");
  });

  test("of a worker of the registry, from its registration to its drain", async () => {
    const { workloadId, prefix } = await setting.admit();
    const described = { name: "press", runtime: "process", version: "1", concurrency: 1, incarnation: "one" };
    const registered = await setting.ask(`${prefix}.worker.register`, described);
    expect(registered.body).toMatchObject({ created: true, worker: { lifecycle: "REGISTERED" } });
    const { workerId } = registered.body["worker"] as { readonly workerId: string };
    const self = { workerId, incarnation: "one" };
    const told = { ...self, version: "1", capabilityVersion: 0, timestamp: Date.now() };
    const heard = await setting.ask(`${prefix}.worker.heartbeat`, { ...told, health: "HEALTHY" });
    expect(heard.body).toMatchObject({ worker: { lifecycle: "READY" }, stopClaims: [] });
    const next = await setting.ask(`${prefix}.work.next`, { ...self, leaseMs: 30_000, start: true });
    const [claim] = next.body as unknown as Record<string, unknown>[];
    expect(claim).toMatchObject({ workloadId, workerId });
    const { claimId, fencingToken, capabilities } = claim ?? {};
    const asked = { workloadId, workerId, claimId, fencingToken, capabilities };
    expect((await setting.ask(`${prefix}.claim.validate`, asked)).body).toEqual({ valid: true });
    const reconciled = await setting.ask(`${prefix}.worker.reconcile`, {
      ...told,
      knownClaims: ["claim_old", claimId],
    });
    expect(reconciled.body).toMatchObject({ fencedClaims: ["claim_old"], authoritativeClaims: [{ claimId }] });
    const late = await setting.ask(`${prefix}.worker.heartbeat`, { ...told, incarnation: "none", health: "HEALTHY" });
    expect([late.status, late.error]).toEqual(["409", "WORKER_SUPERSEDED"]);
    expect((await setting.ask(`${prefix}.worker.drain`, self)).body).toMatchObject({ lifecycle: "DRAINING" });
    await setting.ask(`${prefix}.work.complete`, { workloadId, workerId, claimId, fencingToken, output: 1 });
    const after = await setting.ask(`${prefix}.claim.validate`, asked);
    expect([after.status, after.error]).toEqual(["409", "MESH_STALE_FENCE"]);
  });

  test("in msgpack, answered in kind, refusals too", async () => {
    const { workloadId, prefix } = await setting.admit();
    const packr = new Packr({ useRecords: false });
    const unpackr = new Unpackr({ useRecords: false });
    const type = headers();
    type.set("Content-Type", "application/msgpack");
    const packed = async (verb: string, value: unknown): Promise<readonly [Msg, unknown]> => {
      const message = await setting.client.request(`${prefix}.${verb}`, packr.pack(value), {
        headers: type,
        timeout: 10_000,
      });
      expect(message.headers?.get("Content-Type")).toBe("application/msgpack");
      return [message, unpackr.unpack(message.data)];
    };
    const [, claims] = await packed("work.next", { workerId: "w", leaseMs: 30_000, start: true, requestId: undefined });
    const [claim] = claims as { claimId: string; fencingToken: number }[];
    const fence = { workloadId, workerId: "w", claimId: claim?.claimId, fencingToken: claim?.fencingToken };
    const odd = { text: "a\u0000😀", list: [1, -1, 1.5, null, true], at: 1_700_000_000_000 };
    const [, checkpoint] = await packed("work.checkpoint", { ...fence, state: odd });
    expect(checkpoint).toMatchObject({ state: odd });
    const [message, problem] = await packed("work.complete", { ...fence, fencingToken: 99, output: 1 });
    expect(message.headers?.get("Nats-Service-Error")).toBe("WORKLOAD_STALE_FENCE");
    expect(message.headers?.get("Nats-Service-Error-Code")).toBe("409");
    expect(problem).toMatchObject({ code: "WORKLOAD_STALE_FENCE", definite: true });
    const [, result] = await packed("work.complete", { ...fence, output: odd });
    expect(result).toMatchObject({ output: odd });
    expect((await setting.authority.get(workloadId)).result?.output).toEqual(odd);
  });

  test("cancellation is learnt of by heartbeat, of many claims at once, and confirmed", async () => {
    const { workloadId, prefix } = await setting.admit();
    const { body } = await setting.ask(`${prefix}.work.claim`, {
      workloadId,
      workerId: "w",
      leaseMs: 30_000,
      start: true,
    });
    const fence = { workloadId, workerId: "w", claimId: body["claimId"], fencingToken: 1 };
    await setting.authority.cancel({ workloadId, actor: "x" });
    const beats = await setting.ask(`${prefix}.work.heartbeat`, {
      claims: [
        { ...fence, extendMs: 30_000 },
        { ...fence, fencingToken: 2, extendMs: 30_000 },
        { ...fence, extendMs: 0 },
      ],
    });
    expect(beats.body).toMatchObject([
      { ok: true, cancellationRequested: true },
      { ok: false, error: { code: "WORKLOAD_STALE_FENCE", status: 409 } },
      { ok: false, error: { code: "WORKLOAD_INVALID", details: { paths: ["extendMs"] } } },
    ]);
    expect(await refusalOf(setting.ask(`${prefix}.work.heartbeat`, { claims: 7 }))).toEqual(["WORKLOAD_INVALID", [""]]);
    expect(await refusalOf(setting.ask(`${prefix}.work.heartbeat`, { claims: [], extendMs: 1 }))).toEqual([
      "WORKLOAD_INVALID",
      ["extendMs"],
    ]);
    expect((await setting.ask(`${prefix}.work.confirm-cancel`, fence)).body).toEqual({ state: "CANCELLED" });
  });

  test("driven by the legacy client", async () => {
    const { workloadId, prefix } = await setting.admit();
    const connection = await legacy.connect({ servers: setting.urls });
    setting.onClose(() => connection.close());
    const codec = legacy.JSONCodec<Record<string, unknown>>();
    const call = async (verb: string, value: Record<string, unknown>): Promise<Record<string, unknown>> => {
      const message = await connection.request(`${prefix}.${verb}`, codec.encode(value), { timeout: 10_000 });
      expect(message.headers?.get("Nats-Service-Error") ?? "").toBe("");
      return codec.decode(message.data);
    };
    const [claim] = (await call("work.next", { workerId: "old", leaseMs: 30_000 })) as unknown as {
      claimId: string;
      fencingToken: number;
    }[];
    assert(claim !== undefined, "the work is claimed");
    const fence = { workloadId, workerId: "old", claimId: claim.claimId, fencingToken: claim.fencingToken };
    await call("work.start", fence);
    await call("work.heartbeat", { ...fence, extendMs: 30_000 });
    await call("work.complete", { ...fence, output: "done" });
    expect((await setting.authority.get(workloadId)).result?.output).toBe("done");
    const refused = await connection.request(`${prefix}.work.start`, codec.encode(fence), { timeout: 10_000 });
    expect(refused.headers?.get("Nats-Service-Error-Code")).toBe("409");
  });

  test("driven by a bare socket", async () => {
    const { workloadId, prefix } = await setting.admit();
    const port = Number(new URL(setting.urls[0] ?? "").port);
    const socket = connectSocket({ host: "127.0.0.1", port });
    setting.onClose(() => Promise.resolve(void socket.destroy()));
    let received = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => (received += String(chunk)));
    await once(socket, "connect");
    socket.write('CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB box.* 1\r\nPING\r\n');
    let requests = 0;
    const call = async (verb: string, value: unknown): Promise<Record<string, unknown>> => {
      const box = `box.${requests++}`;
      const payload = JSON.stringify(value);
      socket.write(`PUB ${prefix}.${verb} ${box} ${Buffer.byteLength(payload)}\r\n${payload}\r\n`);
      const answer = new RegExp(`^MSG ${box.replace(".", "\\.")} 1 (\\d+)\r\n`, "m");
      const found = await poll(
        () => {
          const match = answer.exec(received);
          if (match === null) return undefined;
          const from = match.index + match[0].length;
          const length = Number(match[1]);
          return received.length >= from + length ? received.slice(from, from + length) : undefined;
        },
        { timeoutMs: 10_000 },
      );
      assert(found !== undefined, `no answer in ${received}`);
      return JSON.parse(found) as Record<string, unknown>;
    };
    const claim = await call("work.claim", { workloadId, workerId: "bare", leaseMs: 30_000, start: true });
    const fence = { workloadId, workerId: "bare", claimId: claim["claimId"], fencingToken: claim["fencingToken"] };
    await call("work.complete", { ...fence, output: [1, 2] });
    expect((await setting.authority.get(workloadId)).result?.output).toEqual([1, 2]);
    socket.write(`PUB ${prefix}.work.start box.refused 2\r\n{}\r\n`);
    const refused = await poll(
      () => /^HMSG box\.refused 1 [^]*Nats-Service-Error-Code: ?400\r\n[^]*\}\r\n/m.exec(received)?.[0],
      {
        timeoutMs: 10_000,
      },
    );
    expect(refused).toMatch(/Nats-Service-Error: ?WORKLOAD_INVALID/);
  });
});

describe("the subject", () => {
  test("is the scope: nothing outside it is reached, and a message can't name another", async () => {
    const { workloadId, prefix } = await setting.admit();
    const request = { workloadId, workerId: "w", leaseMs: 1000 };
    expect((await refusalOf(setting.ask("mandate.v1.acme.elsewhere.work.claim", request)))[0]).toBe(
      "WORKLOAD_NOT_FOUND",
    );
    expect((await refusalOf(setting.ask("mandate.v1.other.app0.work.claim", request)))[0]).toBe("WORKLOAD_NOT_FOUND");
    for (const verb of ["work.next", "work.claim"])
      expect(await refusalOf(setting.ask(`${prefix}.${verb}`, { ...request, tenantId: "other" }))).toEqual([
        "WORKLOAD_UNAUTHORIZED",
        ["tenantId"],
      ]);
    const [, , tenantId, applicationId] = prefix.split(".");
    const same = await setting.ask(`${prefix}.work.claim`, { ...request, tenantId, applicationId });
    expect(same.body).toMatchObject({ workloadId });
  });

  test("of the answer is a place for answers: no node writes to the store or asks anything for somebody else", async () => {
    const { prefix } = await setting.admit();
    const heard: string[] = [];
    for (const pattern of ["$KV.>", "$JS.API.STREAM.PURGE.>", "mandate.v1.other.>"])
      setting.client.subscribe(pattern, { callback: (_error, message) => void heard.push(message.subject) });
    await setting.client.flush();
    const forged = [
      "$KV.mandate_worker_0.w.x",
      "$JS.API.STREAM.PURGE.KV_x",
      "mandate.v1.other.app.work.start",
      "$SRV.x",
    ];
    for (const reply of forged) {
      setting.client.publish(`${prefix}.work.start`, "{}", { reply });
      setting.client.publish("$SRV.INFO", "", { reply });
    }
    await refusalOf(setting.ask(`${prefix}.work.start`, {}));
    await setting.client.request("$SRV.PING", "");
    expect(heard.filter((subject) => forged.includes(subject))).toEqual([]);
  });

  test("carries any identifier, encoded", async () => {
    const scope = { tenantId: "a.b *>", applicationId: "ü😀" };
    const { workloadId } = await setting.admit({
      ...scope,
    });
    const subject = "mandate.v1.a=2Eb=20=2A=3E.=C3=BC=F0=9F=98=80.work.next";
    const { body } = await setting.ask(subject, { workerId: "w", leaseMs: 1000, ...scope });
    expect(body).toMatchObject([{ workloadId }]);
  });

  test.each([
    ["mandate.v1.a=2e.app.work.next", "WORKLOAD_INVALID"],
    ["mandate.v1.a=41.app.work.next", "WORKLOAD_INVALID"],
    ["mandate.v1.a.b=.work.start", "WORKLOAD_INVALID"],
    ["mandate.v1.a.b.work", "ROUTE_NOT_FOUND"],
    ["mandate.v1.a.b.work.next.more", "ROUTE_NOT_FOUND"],
    ["mandate.v1.a.b.worker.remove", "ROUTE_NOT_FOUND"],
    ["mandate.v1.a.b.worker.recover", "ROUTE_NOT_FOUND"],
    ["mandate.v1.a.b.claim.renew", "ROUTE_NOT_FOUND"],
    ["mandate.v1.a.b.__proto__", "ROUTE_NOT_FOUND"],
    ["mandate.v1.a.b.constructor", "ROUTE_NOT_FOUND"],
  ])("%s is refused with %s", async (subject, code) => {
    expect((await refusalOf(setting.ask(subject, { workerId: "w", leaseMs: 1000 })))[0]).toBe(code);
  });
});
