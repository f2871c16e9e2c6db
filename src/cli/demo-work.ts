import { setTimeout as delay } from "node:timers/promises";
import type { Json } from "../base/json.ts";
import type { Work } from "../sdk/work-context.ts";
import { WorkloadFailure } from "../sdk/workload-failure.ts";

/** Whose the sample work is. */
export const demoScope = { tenantId: "demo", applicationId: "shop" } as const;

/** How many steps of a second the long piece takes. */
export const COUNT_STEPS = 60;

const member = (value: Json | undefined, name: string): Json | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as { readonly [key: string]: Json })[name]
    : undefined;

/** Counts in steps of a second and commits each, so that whoever takes over goes on where this worker stopped. */
async function count(work: Work): Promise<Json> {
  const last = member(work.checkpoints.at(-1)?.state, "step");
  const begunAt = typeof last === "number" ? last : 0;
  for (let step = begunAt + 1; step <= COUNT_STEPS; step++) {
    await delay(1_000, undefined, { signal: work.signal });
    await work.checkpoint({ step });
  }
  return { steps: COUNT_STEPS, attempt: work.attempt, begunAt };
}

/** Fails twice in a way that is worth trying again, then succeeds. */
async function flaky(work: Work): Promise<Json> {
  await delay(200, undefined, { signal: work.signal });
  if (work.attempt < 3)
    throw new WorkloadFailure("transient_connection", `the supplier did not answer (attempt ${work.attempt})`, {
      effect: "none",
    });
  return { attempts: work.attempt };
}

async function brief(work: Work, text: string): Promise<Json> {
  await delay(200, undefined, { signal: work.signal });
  return { done: text, subject: member(work.input, "subject") ?? null };
}

/** Does the sample work: the input says which kind it is. */
export async function doDemoWork(work: Work): Promise<Json> {
  const kind = member(work.input, "kind");
  switch (typeof kind === "string" ? kind : "") {
    case "plain":
      return brief(work, "the order is checked");
    case "delayed":
      return brief(work, "the reminder is sent");
    case "dependent":
      return brief(work, "the invoice is written");
    case "gated":
      return brief(work, "the money is paid back");
    case "flaky":
      return flaky(work);
    case "long":
      return count(work);
    default:
      throw new WorkloadFailure("unknown_kind", "the input names no kind of sample work", { effect: "none" });
  }
}
