import { sha256Hex } from "../../src/base/hash.ts";
import type { Subject } from "../../src/core/subject.ts";
import type { Draw } from "../draw.ts";
import { APPLICATIONS, RAW_CAPABILITY, TENANT } from "../system/setting.ts";
import type { WorkInput } from "../workers/setting.ts";

/** A request to admit work, as it is sent. */
export interface Admission {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly environment: string;
  readonly definitionId: string;
  readonly definitionRevision: string;
  readonly trigger: string;
  readonly input: unknown;
  readonly requestedBy: Subject;
  readonly idempotencyKey: string;
  readonly capabilities: readonly string[];
  readonly priority: number;
  readonly retryPolicy: object;
  readonly timeouts?: object;
  readonly notBefore?: number;
  readonly dependencies?: readonly object[];
  readonly approval?: object;
  readonly placement?: object;
  readonly requestId?: string;
}

export const requesters: readonly Subject[] = [
  { kind: "service", id: "orders" },
  { kind: "service", id: "billing" },
  { kind: "human", id: "ada" },
];
export const approvers: readonly Subject[] = [
  { kind: "human", id: "grace" },
  { kind: "human", id: "edsger" },
  { kind: "human", id: "barbara" },
];
export const operators: readonly Subject[] = [
  { kind: "human", id: "operator-1" },
  { kind: "human", id: "operator-2" },
];

/** The identity that an admission will have (contract 1.3): known before anybody has answered. */
export const workloadIdOf = ({ tenantId, applicationId, requestedBy, idempotencyKey }: Admission): string => {
  const scope = JSON.stringify([tenantId, applicationId, requestedBy.kind, requestedBy.id, idempotencyKey]);
  return `workload_${sha256Hex(scope).slice(0, 24)}`;
};

/** What a worker process may be asked to do, drawn at random. */
export function drawInput(draw: Draw): WorkInput {
  const ms = draw.whole(0, draw.chance(0.15) ? 2_500 : 200);
  const act = draw.weighted<WorkInput["act"]>([
    { item: "finish", weight: 5 },
    { item: "steps", weight: 3 },
    { item: "fail", weight: 3 },
    { item: "block", weight: 0.5 },
    { item: "ignore", weight: 0.5 },
  ]);
  switch (act) {
    case "steps":
      return { act, ms, steps: draw.whole(1, 3) };
    case "fail":
      return {
        act,
        ms,
        failures: draw.whole(1, 3),
        failureKind: draw.pick(["timeout", "transient_connection", "broken_input", "worker_failure"]),
        ...(draw.chance(0.3) ? { effect: draw.pick(["none", "unknown"]) } : {}),
      };
    case "block":
      return { act, ms: Math.min(ms, 400) };
    case "finish":
    case "ignore":
    case undefined:
      return { act: act ?? "finish", ms };
  }
}

const drawRetries = (draw: Draw): object => ({
  maxAttempts: draw.whole(1, 4),
  initialDelayMs: draw.whole(0, 300),
  maxDelayMs: draw.whole(300, 1_500),
  backoff: draw.pick(["fixed", "exponential"]),
  ...(draw.chance(0.2) ? { retryOn: draw.chance(0.5) ? [] : ["timeout"] } : {}),
});

/** A request with a key that no other has; `rest` replaces what is drawn. */
export function drawAdmission(draw: Draw, key: string, rest: Partial<Admission> = {}): Admission {
  return {
    tenantId: TENANT,
    applicationId: draw.pick(APPLICATIONS),
    environment: "test",
    definitionId: draw.pick(["invoice", "shipment", "refund"]),
    definitionRevision: "1",
    trigger: "chaos",
    input: drawInput(draw),
    requestedBy: draw.pick(requesters) ?? { kind: "service", id: "orders" },
    idempotencyKey: key,
    capabilities: draw.chance(0.2) ? ["gpu"] : [],
    priority: draw.chance(0.3) ? draw.whole(-2, 5) : 0,
    retryPolicy: drawRetries(draw),
    ...rest,
  };
}

/** Work that only the raw workers take. */
export const drawRawAdmission = (draw: Draw, key: string, rest: Partial<Admission> = {}): Admission =>
  drawAdmission(draw, key, {
    capabilities: [RAW_CAPABILITY],
    input: { note: draw.word() },
    retryPolicy: { maxAttempts: 3, initialDelayMs: 0, maxDelayMs: 200, backoff: "fixed" },
    ...rest,
  });
