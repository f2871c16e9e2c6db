import type { ShownWorker } from "./history.ts";
import { pause } from "../src/sdk/backoff.ts";
import { headersOf, type Observer } from "./system/observers.ts";
import { TRAFFIC_RUNTIME } from "./system/setting.ts";

/** A worker in a list, as far as the end of a run looks at it. */
interface Listed {
  readonly workerId: string;
  readonly runtime: string;
  readonly lifecycle: string;
  readonly capacity: { readonly concurrency: number };
  readonly claims: readonly string[];
  readonly incarnation: { readonly number: number };
}

const READ_MS = 20_000;

async function listWorkers(url: string, observers: readonly Observer[]): Promise<readonly Listed[]> {
  const found: Listed[] = [];
  for (const observer of observers) {
    const { tenantId, applicationId } = observer;
    let after: string | undefined;
    do {
      const rest = after === undefined ? {} : { after };
      const query = new URLSearchParams({ tenantId, applicationId, limit: "500", ...rest });
      const response = await fetch(`${url}/v1/workers?${query.toString()}`, {
        headers: headersOf(observer),
        signal: AbortSignal.timeout(READ_MS),
      });
      if (!response.ok) throw new RangeError(`workers were answered ${response.status}: ${await response.text()}`);
      const page = (await response.json()) as { readonly workers: readonly Listed[]; readonly after?: string };
      found.push(...page.workers);
      after = page.after;
    } while (after !== undefined);
  }
  return found;
}

/** Waits, `withinMs` at most, until every worker of the traffic has been given up: nobody speaks for them any more. */
export async function settleWorkers(url: string, observers: readonly Observer[], withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (performance.now() < deadline) {
    const open = await listWorkers(url, observers).then(
      (workers) =>
        workers.filter(({ runtime, lifecycle }) => runtime === TRAFFIC_RUNTIME && lifecycle !== "OFFLINE").length,
      () => undefined,
    );
    if (open === 0) return;
    await pause(500);
  }
}

/** The workers that a node shows. Asked again while it is not ready. */
export async function shownWorkers(
  url: string,
  observers: readonly Observer[],
): Promise<{ readonly [workerId: string]: ShownWorker }> {
  const deadline = performance.now() + READ_MS;
  for (;;)
    try {
      const workers = await listWorkers(url, observers);
      return Object.fromEntries(
        workers.map(({ workerId, lifecycle, capacity, claims, incarnation }) => [
          workerId,
          { lifecycle, concurrency: capacity.concurrency, claims, incarnation: incarnation.number },
        ]),
      );
    } catch (thrown) {
      if (performance.now() > deadline) throw thrown;
      await pause(500);
    }
}
