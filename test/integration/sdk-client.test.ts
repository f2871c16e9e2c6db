// Goal: a client of the library gets what the authority says, without a second effect and without a gap, while nodes
// come and go. Method: two nodes on a real nats-server, stopped and started under a client that goes on.

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../../cluster/free-ports.ts";
import { poll } from "../../cluster/poll.ts";
import { MandateError } from "../../src/core/errors.ts";
import type { FollowedEvent } from "../../src/sdk/change-events.ts";
import { connect } from "../../src/sdk/client.ts";
import { scope, SdkSetting } from "./sdk-setting.ts";

let setting: SdkSetting;
beforeAll(async () => {
  setting = await SdkSetting.start(2);
});
afterAll(() => setting.close());

const request = (idempotencyKey: string = randomUUID()) => ({
  ...scope,
  environment: "test",
  definitionId: "definition",
  definitionRevision: "1",
  trigger: "test",
  input: { question: 6 },
  idempotencyKey,
});

/** The refusal of a call that must be refused. */
async function refusalOf(call: Promise<unknown>): Promise<MandateError> {
  const thrown: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof MandateError) return thrown;
  throw new TypeError("the call was not refused");
}

test("admitting the same request again answers the same workload and creates nothing", async () => {
  const first = await setting.client.admit(request("same"));
  const again = await setting.client.admit(request("same"));
  expect([first.created, again.created]).toEqual([true, false]);
  expect(again.workload.workloadId).toBe(first.workload.workloadId);
});

test("a refusal is the authority's own error, with its code and details", async () => {
  await setting.client.admit(request("reused"));
  const refusal = await refusalOf(setting.client.admit({ ...request("reused"), priority: 7 }));
  expect(refusal).toMatchObject({
    code: "IDEMPOTENCY_KEY_REUSED",
    definite: true,
    retry: false,
    details: { fields: ["priority"] },
  });
});

test.each([
  ["not a number", { value: Number.NaN }, "input.value"],
  ["negative zero", { list: [0, -0] }, "input.list[1]"],
  ["an integer beyond 2^53", { value: 2 ** 53 + 2 }, "input.value"],
  ["a date", { at: new Date(0) }, "input.at"],
])("an input that would not arrive as it is, is refused by the library: %s", async (_what, input, path) => {
  const refusal = await refusalOf(setting.client.admit({ ...request(), input }));
  expect(refusal.code).toBe("WORKLOAD_INVALID");
  expect(refusal.details).toMatchObject({ paths: [path] });
});

test("members that are undefined count as absent", async () => {
  const { workload } = await setting.client.admit({ ...request(), input: { kept: null, dropped: undefined } });
  expect(workload.input).toEqual({ kept: null });
});

test("a batch answers each item on its own, the refused one with its error", async () => {
  const answers = await setting.client.admitMany([request(), { ...request(), idempotencyKey: " " }, request()]);
  expect(answers.map(({ ok }) => ok)).toEqual([true, false, true]);
  const refused = answers[1];
  expect(refused?.ok === false && refused.error).toMatchObject({ code: "WORKLOAD_INVALID" });
});

test("a workload can be read, listed, explained and cancelled", async () => {
  const { workload } = await setting.client.admit({ ...request(), notBefore: Date.now() + 3_600_000 });
  const { workloadId } = workload;
  expect((await setting.client.get(workloadId)).state).toBe("READY");
  expect((await setting.client.explain(workloadId)).map(({ reason }) => reason)).toEqual(["time"]);
  const page = await setting.client.list({ ...scope, state: ["READY", "CANCELLED"], limit: 1000 });
  expect(page.workloads.map((listed) => listed.workloadId)).toContain(workloadId);
  expect(await setting.client.cancel(workloadId, { reason: "not wanted" })).toEqual({ state: "CANCELLED" });
  expect(await setting.client.result(workloadId)).toMatchObject({ state: "CANCELLED", settled: true });
});

test("an approver whose name no header can carry finds what waits for it, and decides once", async () => {
  const approver = connect({
    servers: setting.nodes.map(({ url }) => url),
    subject: { kind: "human", id: "Ännchen 100% 🦆" },
  });
  const { workload } = await setting.client.admit({ ...request(), approval: { approverKinds: ["human"] } });
  const { workloadId, inputHash } = workload;
  const waiting = await approver.approvals(scope);
  expect(waiting.workloads.map((waits) => waits.workloadId)).toContain(workloadId);
  const decided = await approver.decide(workloadId, { outcome: "approved", inputHash });
  expect(decided.replayed).toBe(false);
  expect(decided.decision.decidedBy).toEqual({ kind: "human", id: "Ännchen 100% 🦆" });
  expect((await approver.decide(workloadId, { outcome: "approved", inputHash })).replayed).toBe(true);
  const opposite = approver.decide(workloadId, { outcome: "rejected", reason: "no", inputHash });
  expect((await refusalOf(opposite)).code).toBe("WORKLOAD_APPROVAL_DECIDED");
});

test("a client reads its own writes at any node", async () => {
  const { workload } = await setting.client.admit(request());
  for (const { url } of setting.nodes) {
    const reader = connect({ url, subject: { kind: "service", id: "tester" } });
    expect((await reader.get(workload.workloadId)).workloadId).toBe(workload.workloadId);
  }
});

test("calls go on at the other node while one leaves, and the events of all of them arrive once and in order", async () => {
  const events: FollowedEvent[] = [];
  const ending = new AbortController();
  const following = (async () => {
    for await (const event of setting.client.events({ ...scope, signal: ending.signal })) events.push(event);
  })();
  const admitted: string[] = [];
  const admitting = (async () => {
    for (let place = 0; place < 60; place++) {
      const { workload, created } = await setting.client.admit(request());
      expect(created).toBe(true);
      admitted.push(workload.workloadId);
    }
  })();
  await poll(() => (admitted.length >= 10 ? true : undefined), { timeoutMs: 10_000, intervalMs: 1 });
  const [first] = setting.nodes;
  if (first === undefined) throw new TypeError("there are two nodes");
  await setting.dropNode(first);
  await admitting;
  await poll(() => (events.some(({ workloadId }) => workloadId === admitted.at(-1)) ? true : undefined), {
    timeoutMs: 15_000,
  });
  ending.abort();
  await following;
  const ids = events.map(({ workloadId }) => workloadId);
  const begun = admitted.findIndex((workloadId) => ids.includes(workloadId));
  expect(begun).toBeGreaterThanOrEqual(0);
  expect(ids.filter((workloadId) => admitted.includes(workloadId))).toEqual(admitted.slice(begun));
  const revisions = events.map(({ revision }) => revision);
  expect(revisions).toEqual(revisions.toSorted((left, right) => left - right));
});

test("a client that reaches nobody says so when its deadline passes, and that nothing happened", async () => {
  const [port] = await freePorts([undefined]);
  const lonely = connect({
    url: `http://127.0.0.1:${port}`,
    subject: { kind: "service", id: "tester" },
    deadlineMs: 300,
  });
  const refusal = await refusalOf(lonely.admit(request()));
  expect(refusal).toMatchObject({ code: "AUTHORITY_NOT_READY", definite: true });
});

test("an address that is none is refused at once", () => {
  expect(() => connect({ url: "not an address" })).toThrow(MandateError);
  expect(() => connect({})).toThrow(MandateError);
});
