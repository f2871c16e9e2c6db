// Goal: leases are renewed in time, trusted no longer than they can have been granted, and given up when they are over.
// Method: the renewals of the second thread, driven with a call that answers as scripted.

import { afterEach, expect, test } from "vitest";
import { poll } from "../../cluster/poll.ts";
import { MandateError } from "../../src/core/errors.ts";
import { marginOf, trustedUntilOf, TrustTable } from "../../src/sdk/lease-trust.ts";
import type { FromRenewal, HeldLease } from "../../src/sdk/renewal-messages.ts";
import { Renewals } from "../../src/sdk/renewals.ts";
import { sharedMonotonicMs } from "../../src/sdk/shared-clock.ts";
import { problemOf } from "../../src/wire/problem.ts";

const LEASE_MS = 300;

interface Asked {
  readonly at: number;
  readonly claims: readonly { readonly claimId: string; readonly extendMs: number }[];
}

type Answer = (claimId: string) => object;

const renewed: Answer = () => ({ ok: true, claim: {}, cancellationRequested: false });
const refusal =
  (code: MandateError["code"]): Answer =>
  () => ({ ok: false, error: problemOf(new MandateError(code, "no")) });

const open: Renewals[] = [];
afterEach(() => {
  for (const renewals of open.splice(0)) renewals.end();
});

function begin(answer: Answer, delay?: Promise<void>) {
  const asked: Asked[] = [];
  const told: FromRenewal[] = [];
  const trust = TrustTable.create(4);
  const renewals = new Renewals({ leaseMs: LEASE_MS, trust, tell: (message) => told.push(message) });
  open.push(renewals);
  renewals.begin(async (_verb, args) => {
    const { claims } = args as Asked;
    asked.push({ at: sharedMonotonicMs(), claims });
    await delay;
    return claims.map(({ claimId }) => answer(claimId));
  });
  return { asked, renewals, told, trust };
}

const lease = (place: number, sentAt = sharedMonotonicMs()): HeldLease => ({
  workloadId: `workload-${place}`,
  claimId: `claim-${place}`,
  workerId: "worker",
  fencingToken: 1,
  place,
  sentAt,
});

const until = (probe: () => boolean): Promise<unknown> =>
  poll(() => (probe() ? true : undefined), { timeoutMs: 5_000, intervalMs: 2 });

test("a lease is renewed about a third of its length after it was asked for, again and again", async () => {
  const { asked, renewals } = begin(renewed);
  const from = sharedMonotonicMs();
  renewals.take({ kind: "hold", lease: lease(0, from) });
  await until(() => asked.length >= 3);
  expect((asked[0]?.at ?? 0) - from).toBeGreaterThanOrEqual(LEASE_MS / 3 - 5);
  expect((asked[0]?.at ?? 0) - from).toBeLessThan(LEASE_MS * 0.9);
  expect(asked[0]?.claims).toEqual([expect.objectContaining({ claimId: "claim-0", extendMs: LEASE_MS })]);
});

test("leases that come due together travel together", async () => {
  const { asked, renewals } = begin(renewed);
  const from = sharedMonotonicMs();
  for (const place of [0, 1, 2]) renewals.take({ kind: "hold", lease: lease(place, from + place) });
  await until(() => asked.length >= 1);
  expect(asked[0]?.claims.map(({ claimId }) => claimId)).toEqual(["claim-0", "claim-1", "claim-2"]);
});

test("trust counts from when the renewal was sent, not from when its answer came", async () => {
  const answer: { come: () => void } = { come: () => undefined };
  const { asked, renewals, told, trust } = begin(
    renewed,
    new Promise((resolve) => {
      answer.come = resolve;
    }),
  );
  renewals.take({ kind: "hold", lease: lease(0) });
  await until(() => asked.length === 1);
  const later = sharedMonotonicMs() + 50;
  await until(() => sharedMonotonicMs() >= later);
  answer.come();
  await until(() => told.length > 0);
  expect(trust.read(0)).toBeLessThanOrEqual(trustedUntilOf(asked[0]?.at ?? 0, LEASE_MS));
  expect(trust.read(0)).toBeLessThan(later + LEASE_MS - marginOf(LEASE_MS) - 40);
});

test.each(["WORKLOAD_STALE_FENCE", "WORKLOAD_LEASE_EXPIRED", "WORKLOAD_CLAIM_INVALID", "WORKLOAD_TIMED_OUT"] as const)(
  "%s ends a lease, and nothing is asked about it again",
  async (code) => {
    const { asked, renewals, told, trust } = begin(refusal(code));
    trust.write(0, 1e9);
    renewals.take({ kind: "hold", lease: lease(0, 0) });
    await until(() => told.length > 0);
    expect(told).toEqual([{ kind: "lost", place: 0, claimId: "claim-0", code }]);
    expect(trust.read(0)).toBe(0);
    expect(asked).toHaveLength(1);
  },
);

test("a node that is not ready is asked again soon, and the trust stays what it was", async () => {
  const { asked, renewals, told, trust } = begin(refusal("AUTHORITY_NOT_READY"));
  trust.write(0, 12_345);
  renewals.take({ kind: "hold", lease: lease(0, 0) });
  await until(() => asked.length >= 3);
  expect(told).toEqual([]);
  expect(trust.read(0)).toBe(12_345);
});

test("answers that take longer than a request is given before the next still renew, and requests don't pile up", async () => {
  const leaseMs = 1_200;
  const answerMs = 450;
  const told: FromRenewal[] = [];
  let asked = 0;
  const renewals = new Renewals({ leaseMs, trust: TrustTable.create(1), tell: (message) => told.push(message) });
  open.push(renewals);
  renewals.begin(async (_verb, args, { tryTimeoutMs = 0 }) => {
    asked++;
    const end = sharedMonotonicMs() + Math.min(answerMs, tryTimeoutMs);
    await until(() => sharedMonotonicMs() >= end);
    if (tryTimeoutMs < answerMs) throw new MandateError("WORKLOAD_OUTCOME_UNKNOWN", "no answer in time");
    return (args as Asked).claims.map(({ claimId }) => renewed(claimId));
  });
  const from = sharedMonotonicMs();
  renewals.take({ kind: "hold", lease: lease(0, from) });
  await until(() => told.length >= 4);
  expect(told.slice(0, 4).map(({ kind }) => kind)).toEqual(["renewed", "renewed", "renewed", "renewed"]);
  expect(asked).toBeLessThan((sharedMonotonicMs() - from) / (leaseMs / 6));
});

test("a renewal that is asked for while one is under way waits for that one's answer", async () => {
  const leaseMs = 1_500;
  const asked: number[] = [];
  const told: FromRenewal[] = [];
  const renewals = new Renewals({ leaseMs, trust: TrustTable.create(1), tell: (message) => told.push(message) });
  open.push(renewals);
  renewals.begin((_verb, args) => {
    asked.push(sharedMonotonicMs());
    const { claims } = args as Asked;
    // The first request gets no answer.
    return asked.length === 1 ? new Promise(() => undefined) : Promise.resolve(claims.map(() => renewed("claim-0")));
  });
  renewals.take({ kind: "hold", lease: lease(0) });
  await until(() => asked.length === 1);
  for (let time = 0; time < 10; time++) renewals.take({ kind: "renew-now", place: 0, claimId: "claim-0" });
  await until(() => told.length > 0);
  expect(asked).toHaveLength(2);
  expect((asked[1] ?? 0) - (asked[0] ?? 0), "ms of patience").toBeGreaterThanOrEqual(240);
});

test.each([
  { name: "renewed", answer: renewed },
  { name: "refused", answer: refusal("WORKLOAD_CLAIM_INVALID") },
])("an answer about a lease that was $name says nothing of the next one in its place", async ({ answer }) => {
  const come: (() => void)[] = [];
  const { asked, renewals, told, trust } = begin(answer, new Promise((resolve) => come.push(resolve)));
  trust.write(0, 1_000);
  renewals.take({ kind: "hold", lease: lease(0, 0) });
  await until(() => asked.length === 1);
  // The other thread has given the place to another claim; its message is still under way.
  trust.write(0, 2_000);
  for (const now of come) now();
  await until(() => told.length > 0);
  expect(told).toHaveLength(1);
  expect(trust.read(0)).toBe(2_000);
});

test("a request to cancel is told once", async () => {
  const { asked, renewals, told } = begin(() => ({ ok: true, claim: {}, cancellationRequested: true }));
  renewals.take({ kind: "hold", lease: lease(0, 0) });
  await until(() => asked.length >= 3);
  expect(told.filter(({ kind }) => kind === "cancel")).toHaveLength(1);
});

test("a released lease is renewed no more, nor is its place taken for the next one's", async () => {
  const { asked, renewals } = begin(renewed);
  renewals.take({ kind: "hold", lease: lease(0) });
  renewals.take({ kind: "release", place: 0, claimId: "claim-0" });
  renewals.take({ kind: "hold", lease: { ...lease(0), claimId: "claim-next" } });
  renewals.take({ kind: "release", place: 0, claimId: "claim-0" });
  await until(() => asked.length >= 1);
  expect(asked[0]?.claims.map(({ claimId }) => claimId)).toEqual(["claim-next"]);
});
