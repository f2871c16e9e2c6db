// Goal: calls are repeated when that may help and stop when the outcome is definite, and never claim more than is known.
// Method: scripted outcomes of tries, one after the other.

import { expect, test } from "vitest";
import { MandateError } from "../../src/core/errors.ts";
import { persist, type TryOutcome } from "../../src/sdk/persistence.ts";

const refused = (code: MandateError["code"]): TryOutcome<string> => ({
  kind: "refused",
  error: new MandateError(code, "no"),
});
const lost = (sent: boolean): TryOutcome<string> => ({ kind: "lost", sent, cause: "cut" });
const answered: TryOutcome<string> = { kind: "answered", answer: "done" };

/** Makes tries that go as scripted, the last one for ever. */
function script(...outcomes: readonly TryOutcome<string>[]): {
  attempt: () => Promise<TryOutcome<string>>;
  tries: () => number;
} {
  let place = 0;
  return {
    attempt: async () => outcomes[Math.min(place++, outcomes.length - 1)] ?? answered,
    tries: () => place,
  };
}

const changing = { deadlineMs: 5_000, changes: true };

test.each([
  ["a lost answer", lost(true)],
  ["a node that is not ready", refused("AUTHORITY_NOT_READY")],
  ["a node with too much to do", refused("AUTHORITY_OVERLOADED")],
  ["a store that is away", refused("WORKLOAD_STORAGE_FAILURE")],
  ["an unknown outcome", refused("WORKLOAD_OUTCOME_UNKNOWN")],
  ["a contended record", refused("WORKLOAD_CONFLICT")],
])("%s is tried again", async (_what, outcome) => {
  const { attempt, tries } = script(outcome, answered);
  expect(await persist(attempt, changing)).toBe("done");
  expect(tries()).toBe(2);
});

test.each([
  "WORKLOAD_INVALID",
  "WORKLOAD_STALE_FENCE",
  "WORKLOAD_NOT_YET_ELIGIBLE",
  "WORKLOAD_APPROVAL_PENDING",
] as const)("%s is thrown as it came, at once", async (code) => {
  const { attempt, tries } = script(refused(code));
  await expect(persist(attempt, changing)).rejects.toMatchObject({ code });
  expect(tries()).toBe(1);
});

test("a bug of the server is not waited out", async () => {
  const { attempt, tries } = script(refused("INTERNAL_ERROR"));
  await expect(persist(attempt, changing)).rejects.toMatchObject({ code: "INTERNAL_ERROR" });
  expect(tries()).toBe(3);
});

test("at the deadline a call that may have landed is unknown, even if the last word was a refusal", async () => {
  const { attempt } = script(lost(true), refused("AUTHORITY_NOT_READY"));
  await expect(persist(attempt, { deadlineMs: 150, changes: true })).rejects.toMatchObject({
    code: "WORKLOAD_OUTCOME_UNKNOWN",
    definite: false,
  });
});

test("at the deadline a call that reached nobody surely did not happen", async () => {
  const { attempt } = script(lost(false));
  await expect(persist(attempt, { deadlineMs: 150, changes: true })).rejects.toMatchObject({
    code: "AUTHORITY_NOT_READY",
    definite: true,
  });
});

test("a read is never unknown", async () => {
  const { attempt } = script(lost(true));
  await expect(persist(attempt, { deadlineMs: 150, changes: false })).rejects.toMatchObject({
    code: "AUTHORITY_NOT_READY",
  });
});

test("the server's wish to be left alone is honoured", async () => {
  const wish: TryOutcome<string> = {
    kind: "refused",
    error: new MandateError("AUTHORITY_OVERLOADED", "no"),
    retryAfterMs: 300,
  };
  const from = performance.now();
  await persist(script(wish, answered).attempt, changing);
  expect(performance.now() - from).toBeGreaterThanOrEqual(290);
});

test("other servers are asked at once, whatever the first one wishes", async () => {
  const wish: TryOutcome<string> = {
    kind: "refused",
    error: new MandateError("AUTHORITY_NOT_READY", "no"),
    retryAfterMs: 3_000,
  };
  const from = performance.now();
  await persist(script(wish, wish, answered).attempt, { ...changing, alternatives: 2 });
  expect(performance.now() - from).toBeLessThan(1_000);
});

test("an abort ends the repeating with the caller's own reason", async () => {
  const { attempt } = script(lost(true));
  const reason = new RangeError("enough");
  await expect(persist(attempt, { ...changing, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});

test("an answer that arrives after the abort is not thrown away", async () => {
  const ending = new AbortController();
  const attempt = async (): Promise<TryOutcome<string>> => {
    ending.abort();
    return answered;
  };
  expect(await persist(attempt, { ...changing, signal: ending.signal })).toBe("done");
});
