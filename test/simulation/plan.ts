import { admittedIdOf } from "../../src/core/workload/admission.ts";
import type { Draw } from "./world.ts";
import { START } from "./world.ts";

/** Applications that share the authorities; with several shards they live in different ones. */
export const scopes = [
  { tenantId: "acme", applicationId: "invoices" },
  { tenantId: "acme", applicationId: "mail" },
  { tenantId: "umbrella", applicationId: "invoices" },
] as const;
export const requester = { kind: "service", id: "billing" } as const;
export const approvers = ["ada", "bob", "cy"] as const;

/** A piece of work that somebody is going to admit, in two variants under one key. */
export interface Piece {
  readonly workloadId: string;
  readonly scope: (typeof scopes)[number];
  readonly gated: boolean;
  /** The work that must be dead before this may run. */
  readonly mourned: string | undefined;
  readonly variants: readonly [Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>];
}

const maybe = <Value>(draw: Draw, probability: number, value: () => Value): Value | undefined =>
  draw.chance(probability) ? value() : undefined;

function policiesOf(draw: Draw): Readonly<Record<string, unknown>> {
  const gated = draw.chance(0.3);
  const timeouts = {
    queueMs: maybe(draw, 0.1, () => draw.between(5000, 60_000)),
    claimMs: maybe(draw, 0.2, () => draw.between(500, 5000)),
    executionMs: maybe(draw, 0.3, () => draw.between(1000, 15_000)),
    heartbeatMs: maybe(draw, 0.2, () => draw.between(1000, 6000)),
    overallMs: maybe(draw, 0.1, () => draw.between(10_000, 90_000)),
    approvalMs: gated ? maybe(draw, 0.4, () => draw.between(500, 20_000)) : undefined,
  };
  // Some die of their first failure, and may be re-armed the more often.
  const retriedShare = draw.pick([0, 0.8, 0.8]);
  const retryOn = ["timeout", "worker_failure", "transient_connection"].filter(() => draw.chance(retriedShare));
  return {
    retryPolicy: {
      maxAttempts: draw.between(1, 4),
      initialDelayMs: draw.pick([0, 10, 700]),
      maxDelayMs: 3000,
      backoff: draw.pick(["fixed", "exponential"]),
      retryOn,
    },
    timeouts: Object.fromEntries(Object.entries(timeouts).filter(([, value]) => value !== undefined)),
    ...(gated ? { approval: { approverKinds: ["human"] } } : {}),
  };
}

/** Work of every kind, some of it depending on other. */
export function planPieces(draw: Draw): readonly Piece[] {
  const pieces: Piece[] = [];
  const count = draw.between(4, 12);
  for (let index = 0; index < count; index++) {
    const policies = policiesOf(draw);
    const scope = draw.chance(0.6) ? scopes[0] : draw.pick(scopes);
    const siblings = pieces.filter((piece) => piece.scope === scope);
    const earlier = siblings.length > 0 && draw.chance(0.35) ? [draw.pick(siblings)] : [];
    const dependencies = earlier.map(({ workloadId }) => ({
      workloadId,
      requiredState: draw.pick(["SUCCEEDED", "DEAD_LETTER"]),
    }));
    const first = {
      ...scope,
      environment: "production",
      definitionId: "render",
      definitionRevision: "1",
      input: draw.chance(0.2) ? "x".repeat(5000) : { invoice: index },
      requestedBy: requester,
      authorization: { grantId: "g", issuer: "issuer", subject: requester, ...scope },
      idempotencyKey: `key-${index}`,
      priority: draw.between(0, 2),
      capabilities: draw.chance(0.2) ? ["gpu"] : [],
      ...(draw.chance(0.2) ? { notBefore: START + draw.between(0, 40_000) } : {}),
      ...(dependencies.length === 0 ? {} : { dependencies }),
      ...policies,
    };
    pieces.push({
      workloadId: admittedIdOf(first),
      scope,
      gated: "approval" in policies,
      mourned: dependencies.find(({ requiredState }) => requiredState === "DEAD_LETTER")?.workloadId,
      variants: [first, { ...first, definitionRevision: "2" }],
    });
  }
  return pieces;
}
