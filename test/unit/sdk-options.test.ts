/**
 * Goal: what a caller of the library hands in is taken exactly or refused by name, before anything is sent; no length of
 * time turns into its opposite.
 * Method: options and arguments alone; nothing listens anywhere.
 */
import { nkeys } from "@nats-io/nats-core";
import { describe, expect, test } from "vitest";
import { MandateError } from "../../src/core/errors.ts";
import type { Subject } from "../../src/core/subject.ts";
import { pause } from "../../src/sdk/backoff.ts";
import { connect } from "../../src/sdk/client.ts";
import { loginOptions } from "../../src/sdk/nats-login.ts";
import { checkWorkerOptions } from "../../src/sdk/worker-options.ts";

const url = "http://127.0.0.1:9";

/** Code and paths of what was thrown. */
async function refusalOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (thrown) {
    if (thrown instanceof MandateError) return [thrown.code, thrown.details?.["paths"]];
    throw thrown;
  }
  return undefined;
}

describe("a client", () => {
  const subjectOf = (id: string): Subject => ({ kind: "human", id });

  test.each([
    ["deadlineMs", { deadlineMs: Number.NaN }],
    ["deadlineMs", { deadlineMs: -1 }],
    ["tryTimeoutMs", { tryTimeoutMs: Number.NaN }],
    ["tryTimeoutMs", { tryTimeoutMs: 0 }],
    ["tryTimeoutMs", { tryTimeoutMs: 1.5 }],
    ["tryTimeoutMs", { tryTimeoutMs: Number.POSITIVE_INFINITY }],
    ["tryTimeoutMs", { tryTimeoutMs: 2 ** 31 }],
    ["subject.id", { subject: subjectOf("\ud800") }],
    ["subject.id", { subject: subjectOf("a\r\nb") }],
    ["subject.id", { subject: subjectOf("") }],
  ])("is refused with a bad %s: %j", async (path, options) =>
    expect(await refusalOf(() => connect({ url, ...options }))).toEqual(["WORKLOAD_INVALID", [path]]),
  );

  test.each(["", ".", "..", "\ud800", "a\u0000b", "x".repeat(513)])("refuses the id %j by name", async (id) => {
    const client = connect({ url, deadlineMs: 0 });
    const calls = [() => client.get(id), () => client.cancel(id), () => client.result(id), () => client.explain(id)];
    for (const call of calls) expect(await refusalOf(call)).toEqual(["WORKLOAD_INVALID", ["workloadId"]]);
  });

  test("refuses a filter that can't be sent exactly", async () => {
    const client = connect({ url, deadlineMs: 0 });
    const refused = [() => client.list({ tenantId: "\udfff" }), () => client.approvals({ tenantId: "\udfff" })];
    for (const call of refused) expect(await refusalOf(call)).toEqual(["WORKLOAD_INVALID", ["tenantId"]]);
    expect(await refusalOf(() => client.list({ createdFrom: Number.NaN }))).toEqual([
      "WORKLOAD_INVALID",
      ["createdFrom"],
    ]);
  });
});

describe("a worker", () => {
  const options = { servers: ["127.0.0.1:4222"], tenantId: "t", applicationId: "a", name: "n", handler: () => null };

  test.each([
    ["graceMs", { graceMs: Number.NaN }],
    ["graceMs", { graceMs: -1 }],
    ["leaseMs", { leaseMs: Number.POSITIVE_INFINITY, waitMs: 0 }],
    ["waitMs", { waitMs: Number.NaN }],
    ["tenantId", { tenantId: "\ud800" }],
    ["login.nkeySeed", { login: { nkeySeed: "SUhunter2" } }],
    ["login.credentials", { login: { credentials: "hunter2" } }],
    ["login.inboxPrefix", { login: { inboxPrefix: "_INBOX.>" } }],
  ])("is refused with a bad %s: %j", async (path, change) => {
    const refusal = refusalOf(() => checkWorkerOptions({ ...options, ...change }));
    expect(await refusal).toEqual(["WORKLOAD_INVALID", [path]]);
  });

  test("is told of a bad key without the key", () => {
    expect(() => checkWorkerOptions({ ...options, login: { nkeySeed: "SUhunter2" } })).toThrow(/^(?!.*hunter2).*seed/);
  });

  test("awaits its answers where its key may listen, and where it is told to", () => {
    const worker = { tenantId: "t", applicationId: "a.b", name: "n" };
    const nkeySeed = new TextDecoder().decode(nkeys.createUser().getSeed());
    expect(loginOptions({}, worker).inboxPrefix).toBeUndefined();
    expect(loginOptions({ nkeySeed }, worker).inboxPrefix).toBe("_INBOX.t.a=2Eb.n");
    expect(loginOptions({ nkeySeed, inboxPrefix: "_I" }, worker).inboxPrefix).toBe("_I");
    expect(JSON.stringify(loginOptions({ nkeySeed }, worker))).not.toContain(nkeySeed);
  });

  test("may be given all the time in the world to end", () => {
    expect(checkWorkerOptions({ ...options, graceMs: Number.POSITIVE_INFINITY }).graceMs).toBe(
      Number.POSITIVE_INFINITY,
    );
  });
});

test("a pause that is longer than a timer can be is not over at once", async () => {
  const ending = new AbortController();
  let over = false;
  const waiting = pause(Number.POSITIVE_INFINITY, ending.signal).then(() => (over = true));
  await pause(20);
  expect(over).toBe(false);
  ending.abort();
  await waiting;
});
