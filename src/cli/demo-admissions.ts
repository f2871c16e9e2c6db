import type { Workload } from "../core/workload/record.ts";
import type { AdmitRequest } from "../sdk/answers.ts";
import type { Client } from "../sdk/client.ts";
import { demoScope } from "./demo-work.ts";

/** The sample work of one start. */
export interface DemoWorkloads {
  readonly plain: Workload;
  readonly delayed: Workload;
  readonly dependent: Workload;
  readonly flaky: Workload;
  readonly long: Workload;
  readonly gated: Workload;
}

export type DemoKind = keyof DemoWorkloads;

/** How long the delayed piece sleeps, ms. */
export const DELAY_MS = 15_000;

/** In whose name the sample work is admitted, and who may approve the gated piece. */
export const demoRequester = { kind: "service", id: "demo" } as const;
export const demoApprover = { kind: "human", id: "alice" } as const;

/** Admits one piece of each kind. `round` tells the pieces of different starts apart. */
export async function admitDemo(client: Client, round: string): Promise<DemoWorkloads> {
  const admit = async (kind: DemoKind, input: object, more: Partial<AdmitRequest> = {}): Promise<Workload> => {
    const { workload } = await client.admit({
      ...demoScope,
      environment: "local",
      definitionId: `demo.${kind}`,
      definitionRevision: "1",
      trigger: "mandate up",
      input: { kind, ...input },
      idempotencyKey: `${round}-${kind}`,
      ...more,
    });
    return workload;
  };
  const plain = await admit("plain", { subject: "order 1001" });
  const [delayed, dependent, flaky, long, gated] = await Promise.all([
    admit("delayed", { subject: "customer 7" }, { notBefore: Date.now() + DELAY_MS }),
    admit("dependent", { subject: "order 1001" }, { dependencies: [{ workloadId: plain.workloadId }] }),
    admit("flaky", { subject: "supplier 3" }, { retryPolicy: { initialDelayMs: 1_000 } }),
    admit("long", { subject: "stock" }, { retryPolicy: { maxAttempts: 20 } }),
    admit("gated", { subject: "order 1001", cents: 4_999 }, { approval: { approverKinds: ["human"] } }),
  ]);
  return { plain, delayed, dependent, flaky, long, gated };
}
