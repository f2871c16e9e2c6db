/** The work that is measured with: an order to render, of a size that is common. */

export const scope = { tenantId: "bench", applicationId: "orders" } as const;

/** Who asks, as `X-Mandate-Subject` has it. */
export const requester = { kind: "service", id: "bench-requester" } as const;

export const capabilities = ["render"] as const;

export const leaseMs = 120_000;

/** Requests that differ by their idempotency key alone, so that all records have one size. */
export const admissionOf = (idempotencyKey: string, queue = "orders"): Readonly<Record<string, unknown>> => ({
  tenantId: scope.tenantId,
  applicationId: queue,
  environment: "production",
  definitionId: "invoice.render",
  definitionRevision: "2024-11-07.3",
  trigger: "api",
  input: {
    order: "7f3b9a52-6d0e-4b37-9a4e-0f6b1f1f6c11",
    customer: { id: 481_516, name: "Ursula Example", locale: "de-AT" },
    lines: [
      { article: "A-1001", quantity: 3, cents: 1_999 },
      { article: "B-2044", quantity: 1, cents: 12_950 },
      { article: "C-0007", quantity: 12, cents: 249 },
    ],
    deliver: { format: "pdf", to: "archive/2024/invoices" },
  },
  capabilities: [...capabilities],
  idempotencyKey,
});

/** What work.next is asked, but for the worker's id. */
export const claimNextOf = (
  workerId: string,
  rest: { readonly waitMs?: number; readonly requestId?: string; readonly max?: number } = {},
): Readonly<Record<string, unknown>> => ({
  workerId,
  capabilities: [...capabilities],
  max: 1,
  waitMs: 0,
  leaseMs,
  start: true,
  ...rest,
});

/** A worker of the registry that does one thing at a time. */
export const registrationOf = (name: string): Readonly<Record<string, unknown>> => ({
  name,
  runtime: "process",
  version: "1",
  concurrency: 1,
  heartbeatTimeoutMs: 3_600_000,
  declaredCapabilities: [...capabilities],
});

/** What makes a worker READY once it is registered. Heard once, it is for as long as a bench runs. */
export const firstBeatOf = (worker: {
  readonly workerId: string;
  readonly capabilityVersion: number;
  readonly lastSeen: number;
}): Readonly<Record<string, unknown>> => ({
  workerId: worker.workerId,
  version: "1",
  capabilityVersion: worker.capabilityVersion,
  health: "HEALTHY",
  timestamp: worker.lastSeen,
});

/** What a worker needs to remember of a claim. */
export interface HeldClaim {
  readonly workloadId: string;
  readonly claimId: string;
  readonly workerId: string;
  readonly fencingToken: number;
}

export const fenceOf = ({ workloadId, claimId, workerId, fencingToken }: HeldClaim): HeldClaim => ({
  workloadId,
  claimId,
  workerId,
  fencingToken,
});

export const completionOf = (claim: HeldClaim): Readonly<Record<string, unknown>> => ({
  ...fenceOf(claim),
  output: { document: "archive/2024/invoices/481516-0007.pdf", pages: 2, bytes: 48_213, checksum: "a3f1c2d4e5b60718" },
  artifacts: ["archive/2024/invoices/481516-0007.pdf"],
});

/** Keys of one length that no other run uses. */
export const keyOf = (run: string, index: number): string => `${run}-${index.toString(36).padStart(7, "0")}`;
