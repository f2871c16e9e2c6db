import { expect } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import type { Claim, Workload } from "../../../src/core/workload/record.ts";
import { MandateError, type Authority, type TestCluster } from "../../../src/testing.ts";

/** What a suite of the authority runs on: a cluster of at least three nodes that a whole group of tests shares. */
export interface Stage {
  readonly cluster: TestCluster;
}

export interface FenceArguments {
  readonly workloadId: string;
  readonly claimId: string;
  readonly workerId: string;
  readonly fencingToken: number;
}

export type Changes = Readonly<Record<string, unknown>>;

export const requester = { kind: "service", id: "billing" } as const;
export const approver = { kind: "human", id: "ada" } as const;

/** How long a lease of these tests is, ms. */
export const LEASE_MS = 10_000;

let scenes = 0;

/**
 * One test's part of a shared cluster: a tenant of its own, and a stretch of time in which nothing of an earlier test is
 * still to come.
 */
export class Scene {
  readonly cluster: TestCluster;
  readonly a: Authority;
  readonly b: Authority;
  readonly c: Authority;
  readonly tenantId: string;
  readonly applicationId = "invoices";
  /** The clock's reading at the start, ms. */
  readonly start: number;
  #keys = 0;

  constructor(stage: Stage) {
    const [a, b, c] = stage.cluster.nodes;
    assert(a !== undefined && b !== undefined && c !== undefined, "the suite needs three nodes");
    scenes += 1;
    this.cluster = stage.cluster;
    this.a = a;
    this.b = b;
    this.c = c;
    this.tenantId = `tenant-${scenes}`;
    this.start = 1_000_000_000 * scenes;
    this.cluster.clock.set(this.start);
  }

  /** A request to admit plain work; each test changes what it is about. */
  request(changes: Changes = {}): Changes {
    const { tenantId, applicationId } = this;
    return {
      tenantId,
      applicationId,
      environment: "production",
      definitionId: "render",
      definitionRevision: "7",
      trigger: "nightly",
      input: { invoice: 42 },
      requestedBy: requester,
      authorization: { grantId: "grant_1", issuer: "issuer", subject: requester, tenantId, applicationId },
      idempotencyKey: `key-${(this.#keys += 1)}`,
      ...changes,
    };
  }

  async admitted(changes: Changes = {}): Promise<Workload> {
    return (await this.a.admit(this.request(changes))).workload;
  }

  claimArguments(workloadId: string, changes: Changes = {}): Changes {
    return { workloadId, workerId: "w1", capabilities: [], leaseMs: LEASE_MS, ...changes };
  }

  nextArguments(changes: Changes = {}): Changes {
    const { tenantId, applicationId } = this;
    return { tenantId, applicationId, workerId: "w1", capabilities: [], leaseMs: LEASE_MS, ...changes };
  }

  async claimed(changes: Changes = {}, claim: Changes = {}): Promise<Claim> {
    const { workloadId } = await this.admitted(changes);
    return this.a.claim(this.claimArguments(workloadId, claim));
  }

  running(changes: Changes = {}, claim: Changes = {}): Promise<Claim> {
    return this.claimed(changes, { start: true, ...claim });
  }

  completeArguments(claim: Claim, changes: Changes = {}): Changes {
    return { ...fenceOf(claim), output: { pages: 3 }, artifacts: ["a.pdf"], schemaVersion: "1", ...changes };
  }

  decideArguments(workload: Workload, changes: Changes = {}): Changes {
    const { workloadId, inputHash } = workload;
    return { workloadId, decider: approver, outcome: "approved", grantId: "grant_2", inputHash, ...changes };
  }

  /** All nodes follow the store and have seen everything. */
  async together(): Promise<void> {
    for (const node of this.cluster.nodes) await this.cluster.release(node);
  }
}

export const fenceOf = ({ workloadId, claimId, workerId, fencingToken }: Claim): FenceArguments => ({
  workloadId,
  claimId,
  workerId,
  fencingToken,
});

/** What a call was refused with; an answer fails the test. */
export async function refusal(call: Promise<unknown>): Promise<MandateError> {
  const answer = await call.then(
    (value: unknown) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in answer) expect.fail(`it was not refused: ${JSON.stringify(answer.value)}`);
  expect(answer.error).toBeInstanceOf(MandateError);
  return answer.error as MandateError;
}

/** The code of a refusal that says that nothing happened. */
export async function refusedWith(call: Promise<unknown>): Promise<string> {
  const error = await refusal(call);
  expect(error.definite).toBe(true);
  return error.code;
}

/** An answer, or the code of the refusal: for comparing what two calls came to. */
export const outcomeOf = (call: Promise<unknown>): Promise<{ readonly answer: unknown } | { readonly code: string }> =>
  call.then(
    (answer) => ({ answer }),
    (error: unknown) => ({ code: error instanceof MandateError ? error.code : String(error) }),
  );

export const eventsOf = (workload: Workload): readonly string[] => workload.history.map(({ to }) => to);
