import { setTimeout as delay } from "node:timers/promises";
import { monotonicMs } from "../src/base/clock.ts";

/**
 * Asks again and again until the probe answers something other than `undefined`, and hands that on; `undefined` when
 * `timeoutMs` passed first. The probe is asked at least once, and never twice at a time.
 */
export async function poll<Value>(
  probe: () => Promise<Value | undefined> | Value | undefined,
  options: { readonly timeoutMs: number; readonly intervalMs?: number },
): Promise<Value | undefined> {
  const deadline = monotonicMs() + options.timeoutMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (monotonicMs() >= deadline) return undefined;
    await delay(options.intervalMs ?? 20);
  }
}
