/**
 * Goal: admission as contract 1.7 has it: the record that is created, the order of checks, and replays.
 * Method: one request, changed a little in each test.
 */
import { describe, expect, it } from "vitest";
import { sha256Hex } from "../../../src/base/hash.ts";
import type { Json } from "../../../src/base/json.ts";
import { admittedIdOf, decideAdmit, type AdmitRequest } from "../../../src/core/workload/admission.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import {
  accepted,
  admitted,
  answerOf,
  approve,
  cancel,
  changeOf,
  claimed,
  complete,
  fenceOf,
  refusalOf,
  refusedWith,
  requester,
  requestOf,
  rules,
  T0,
} from "./fixtures.ts";

const admit = (changes: Partial<AdmitRequest>, existing?: WorkloadRecord, now: number = T0) =>
  decideAdmit(existing, requestOf(changes), { now, rules });

describe("a created workload", () => {
  it("is READY with every default applied", () => {
    const decision = admit({});
    expect(answerOf(decision).created).toBe(true);
    expect(changeOf(decision).record).toEqual({
      contractVersion: 2,
      workloadId: expect.stringMatching(/^workload_[0-9a-f]{24}$/),
      tenantId: "acme",
      applicationId: "invoices",
      environment: "production",
      definitionId: "render",
      definitionRevision: "7",
      trigger: "nightly",
      input: { json: '{"invoice":42}' },
      inputHash: sha256Hex('{"invoice":42}'),
      requestedBy: requester,
      authorization: requestOf().authorization,
      capabilities: [],
      connectionScopes: [],
      priority: 0,
      idempotencyKey: "invoice-42",
      createdAt: T0,
      updatedAt: T0,
      state: "READY",
      history: [
        { sequence: 1, type: "workload.ready", from: "CREATED", to: "READY", actor: "authority", at: T0, evidence: {} },
      ],
      attempts: [],
      checkpoints: [],
      retryPolicy: {
        maxAttempts: 3,
        initialDelayMs: 1000,
        maxDelayMs: 300_000,
        backoff: "exponential",
        retryOn: ["timeout", "transient_connection", "worker_failure"],
      },
      timeouts: {},
      attemptCount: 0,
      retryCount: 0,
      fencingToken: 0,
      dependencies: [],
    });
  });

  it("waits for an approval when there is a policy, with the notBefore as evidence and eligibility", () => {
    const record = admitted({ approval: {}, notBefore: 5 });
    expect(record.state).toBe("AWAITING_APPROVAL");
    expect(record.history).toEqual([
      {
        sequence: 1,
        type: "workload.awaiting_approval",
        from: "CREATED",
        to: "AWAITING_APPROVAL",
        actor: "authority",
        at: T0,
        evidence: { approval: "required", notBefore: "5" },
      },
    ]);
    expect(record.notBefore).toBe(5);
    expect(record.nextAttemptAt).toBe(5);
    expect(record.approval).toEqual({ policy: { approverKinds: ["human"], approvers: [] } });
  });

  it("keeps sets sorted and without duplicates", () => {
    const record = admitted({
      capabilities: ["gpu", "cpu", "gpu"],
      connectionScopes: ["b", "a", "a"],
      retryPolicy: { retryOn: ["z", "a", "z"] },
      dependencies: [
        { workloadId: "w2" },
        { workloadId: "w1", requiredState: "FAILED" },
        { workloadId: "w2", requiredState: "SUCCEEDED" },
      ],
      approval: {
        approverKinds: ["service", "human", "human"],
        approvers: [
          { kind: "service", id: "b" },
          { kind: "human", id: "a" },
          { kind: "service", id: "b" },
        ],
      },
    });
    expect(record.capabilities).toEqual(["cpu", "gpu"]);
    expect(record.connectionScopes).toEqual(["a", "b"]);
    expect(record.retryPolicy.retryOn).toEqual(["a", "z"]);
    expect(record.dependencies).toEqual([
      { workloadId: "w1", requiredState: "FAILED" },
      { workloadId: "w2", requiredState: "SUCCEEDED" },
    ]);
    expect(record.approval?.policy).toEqual({
      approverKinds: ["human", "service"],
      approvers: [
        { kind: "human", id: "a" },
        { kind: "service", id: "b" },
      ],
    });
  });

  it("keeps a placement with every part of it, and none for one that asks for nothing", () => {
    expect(admitted({ placement: { poolId: "pool_1", affinity: { zone: "a" } } }).placement).toEqual({
      requiredLabels: {},
      affinity: { zone: "a" },
      antiAffinity: {},
      poolId: "pool_1",
    });
    expect("placement" in admitted({ placement: { requiredLabels: {} } })).toBe(false);
  });

  it("keeps a large input beside the record, and refuses one beyond the limit", () => {
    const large = "x".repeat(5000);
    const change = changeOf(admit({ input: large }));
    expect(change.record.input).toEqual({ slot: "input", bytes: 5002 });
    expect(change.payloads).toEqual([{ slot: "input", json: JSON.stringify(large) }]);
    expect(refusedWith(admit({ input: "x".repeat(4 * 1024 * 1024) }))).toBe("WORKLOAD_TOO_LARGE");
  });
});

describe("the identity", () => {
  const idOf = (changes: Partial<AdmitRequest>): string => admittedIdOf(requestOf(changes));

  it("is derived from the compact JSON of the scope", () => {
    const scope = '["acme","invoices","service","billing","invoice-42"]';
    expect(idOf({})).toBe(`workload_${sha256Hex(scope).slice(0, 24)}`);
  });

  it("differs with every part of the scope, however strings are cut", () => {
    const ids = [
      idOf({}),
      idOf({ tenantId: "acme2" }),
      idOf({ applicationId: "other" }),
      idOf({ requestedBy: { kind: "human", id: "billing" } }),
      idOf({ requestedBy: { kind: "service", id: "billing2" } }),
      idOf({ idempotencyKey: "invoice-43" }),
      idOf({ tenantId: 'a","b', applicationId: "c" }),
      idOf({ tenantId: "a", applicationId: 'b","c' }),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("does not depend on anything else", () => {
    expect(idOf({ input: 1, definitionId: "x", priority: 9 })).toBe(idOf({}));
  });
});

describe("the order of checks", () => {
  const foreign = { ...requestOf().authorization, tenantId: "other" };
  const secret: Json = { password: "x" };

  it("looks for secrets before values", () => {
    expect(refusedWith(admit({ input: secret, idempotencyKey: " ", authorization: foreign }))).toBe(
      "WORKLOAD_SECRET_REJECTED",
    );
  });

  it("looks at values before the grant", () => {
    expect(refusedWith(admit({ idempotencyKey: " \t", authorization: foreign }))).toBe("WORKLOAD_INVALID");
  });

  it("looks at the grant before any replay, so that a key can't fetch a workload", () => {
    expect(refusedWith(admit({ authorization: foreign }, admitted()))).toBe("WORKLOAD_UNAUTHORIZED");
  });

  it("asks that the grant binds requester, tenant and application", () => {
    const own = requestOf().authorization;
    for (const authorization of [
      { ...own, tenantId: "other" },
      { ...own, applicationId: "other" },
      { ...own, subject: { kind: "service", id: "other" } as const },
      { ...own, subject: { kind: "human", id: "billing" } as const },
    ])
      expect(refusedWith(admit({ authorization }))).toBe("WORKLOAD_UNAUTHORIZED");
  });
});

describe("bad values", () => {
  const cases: readonly (readonly [string, Partial<AdmitRequest>, string])[] = [
    ["an empty idempotency key", { idempotencyKey: "" }, "idempotencyKey"],
    ["a blank idempotency key", { idempotencyKey: " \n" }, "idempotencyKey"],
    ["a time-out of 0", { timeouts: { queueMs: 0 } }, "timeouts.queueMs"],
    ["an approval deadline without a policy", { timeouts: { approvalMs: 5 } }, "timeouts.approvalMs"],
    ["another approver kind", { approval: { approverKinds: ["human", "agent"] } }, "approval.approverKinds"],
    ["no approver kind", { approval: { approverKinds: [] } }, "approval.approverKinds"],
    [
      "an approver of a kind that is not permitted",
      {
        approval: {
          approvers: [
            { kind: "human", id: "a" },
            { kind: "service", id: "b" },
          ],
        },
      },
      "approval.approvers[1].kind",
    ],
    [
      "a quorum larger than the approvers",
      { approval: { approvers: [{ kind: "human", id: "a" }], requiredApprovals: 2 } },
      "approval.requiredApprovals",
    ],
    [
      "a dependency on itself",
      { dependencies: [{ workloadId: "w" }, { workloadId: admittedIdOf(requestOf()) }] },
      "dependencies[1].workloadId",
    ],
  ];
  for (const [what, changes, path] of cases)
    it(`refuses ${what} and names the place`, () => {
      const refusal = refusalOf(admit(changes));
      expect(refusal.code).toBe("WORKLOAD_INVALID");
      expect(refusal.details?.["paths"]).toEqual([path]);
    });

  it("does not mind a notBefore in the past", () => {
    expect(admitted({ notBefore: 1 }).nextAttemptAt).toBe(1);
  });
});

describe("a replay", () => {
  it("answers the original and commits nothing", () => {
    const original = admitted();
    const decision = admit({}, original, T0 + 999);
    expect(decision).toEqual({ ok: true, answer: { record: original, created: false } });
  });

  it("does not compare trigger, session, grant and time", () => {
    const again = admit(
      {
        trigger: "by hand",
        sessionId: "s2",
        authorization: { ...requestOf().authorization, grantId: "grant_9", revision: 4, token: "t" },
      },
      admitted({ sessionId: "s1" }),
      T0 + 5,
    );
    expect(answerOf(again).created).toBe(false);
  });

  const defaulted: readonly (readonly [string, Partial<AdmitRequest>, Partial<AdmitRequest>])[] = [
    ["defaults that are spelt out", {}, { capabilities: [], priority: 0, timeouts: {}, dependencies: [] }],
    ["a default retry policy", {}, { retryPolicy: { maxAttempts: 3, backoff: "exponential" } }],
    ["a jitter of 0", {}, { retryPolicy: { jitter: 0 } }],
    ["members that are undefined", {}, { timeouts: { queueMs: undefined }, retryPolicy: { maxAttempts: undefined } }],
    ["a quorum of one", { approval: {} }, { approval: { approverKinds: ["human"], requiredApprovals: 1 } }],
    [
      "a default required state",
      { dependencies: [{ workloadId: "a" }] },
      { dependencies: [{ workloadId: "a", requiredState: "SUCCEEDED" }] },
    ],
    ["sets in another order", { capabilities: ["a", "b"] }, { capabilities: ["b", "a", "b"] }],
    ["retryOn in another order", { retryPolicy: { retryOn: ["a", "b"] } }, { retryPolicy: { retryOn: ["b", "a"] } }],
    [
      "dependencies in another order",
      { dependencies: [{ workloadId: "a" }, { workloadId: "b" }] },
      { dependencies: [{ workloadId: "b" }, { workloadId: "a" }] },
    ],
    ["members of the input in another order", { input: { a: 1, b: 2 } }, { input: { b: 2, a: 1 } }],
    [
      "an empty placement",
      {},
      { placement: { requiredLabels: {}, affinity: {}, antiAffinity: {}, poolId: undefined } },
    ],
    [
      "labels in another order, and label sets left out",
      { placement: { affinity: { zone: "a", disk: "ssd" } } },
      { placement: { affinity: { disk: "ssd", zone: "a" }, antiAffinity: {} } },
    ],
    ["numbers of the same value", { input: [1e2, 0.5] }, { input: [100, 5e-1] }],
  ];
  for (const [what, first, second] of defaulted)
    it(`sees no difference in ${what}`, () => {
      expect(answerOf(admit(second, admitted(first))).created).toBe(false);
      expect(answerOf(admit(first, admitted(second))).created).toBe(false);
    });

  it("compares sets of an imported record as sets", () => {
    const changes = {
      capabilities: ["a", "b"],
      dependencies: [{ workloadId: "a" }, { workloadId: "b" }],
      approval: { approverKinds: ["human", "service"] },
    };
    const record = admitted(changes);
    const imported: WorkloadRecord = {
      ...record,
      contractVersion: 1,
      capabilities: ["b", "a"],
      dependencies: record.dependencies.toReversed(),
      approval: { policy: { approverKinds: ["service", "human"], approvers: [], requiredApprovals: 1 } },
    };
    expect(answerOf(admit(changes, imported)).created).toBe(false);
  });

  const others = {
    definitionId: { definitionId: "other" },
    definitionRevision: { definitionRevision: "8" },
    environment: { environment: "staging" },
    input: { input: { invoice: 43 } },
    capabilities: { capabilities: ["gpu"] },
    connectionScopes: { connectionScopes: ["db"] },
    priority: { priority: 1 },
    retryPolicy: { retryPolicy: { maxAttempts: 4 } },
    timeouts: { timeouts: { queueMs: 5 } },
    dependencies: { dependencies: [{ workloadId: "a" }] },
    notBefore: { notBefore: 7 },
    approval: { approval: {} },
    placement: { placement: { requiredLabels: { zone: "a" } } },
  } satisfies Record<string, Partial<AdmitRequest>>;
  const order = [
    "definitionId",
    "definitionRevision",
    "environment",
    "input",
    "capabilities",
    "connectionScopes",
    "priority",
    "retryPolicy",
    "timeouts",
    "dependencies",
    "notBefore",
    "approval",
    "placement",
  ];

  for (const [field, changes] of Object.entries(others))
    it(`is refused when ${field} differs, in either direction`, () => {
      for (const decision of [admit(changes, admitted()), admit({}, admitted(changes))]) {
        expect(refusedWith(decision)).toBe("IDEMPOTENCY_KEY_REUSED");
        expect(refusalOf(decision).details).toEqual({ fields: [field] });
      }
    });

  it("names every differing field in the contract's order", () => {
    const all: Partial<AdmitRequest> = Object.assign({}, ...Object.values(others));
    expect(Object.keys(others)).toEqual(order);
    expect(refusalOf(admit(all, admitted())).details).toEqual({ fields: order });
  });

  it("answers the same whatever has happened to the workload since", () => {
    const gated = admitted({ approval: {}, notBefore: T0 + 50 });
    const approved = accepted(approve(gated, T0 + 10));
    const held = claimed(approved, T0 + 60, { start: true });
    const done = accepted(complete(held, fenceOf(held), { now: T0 + 70 }));
    for (const record of [gated, approved, held, done, accepted(cancel(gated, T0 + 5))]) {
      expect(answerOf(admit({ approval: {}, notBefore: T0 + 50 }, record))).toEqual({ record, created: false });
      expect(refusalOf(admit({ approval: {} }, record)).details).toEqual({ fields: ["notBefore"] });
    }
  });
});
