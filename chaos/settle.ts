import { settledStates, workloadStates } from "../src/core/workload/states.ts";
import type { ViewLine } from "./history.ts";
import { pause } from "../src/sdk/backoff.ts";
import type { Recorder } from "./recorder.ts";
import type { ChaosNode } from "./system/nodes.ts";
import { headersOf, type Observer } from "./system/observers.ts";
import type { System } from "./system/system.ts";
import { shownWorkers } from "./settle-registry.ts";
import { HttpCaller } from "./traffic/http-caller.ts";

/** A workload in a list, as far as the end of a run looks at it. */
interface Listed {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly workloadId: string;
  readonly state: string;
  readonly inputHash: string;
  readonly history: readonly unknown[];
}

const READ_MS = 20_000;
const openStates = workloadStates.filter((state) => !settledStates.includes(state));
/** Both of those that a policy may name, so that any policy can be satisfied. */
const sweepers = [
  { kind: "human", id: "grace" },
  { kind: "human", id: "edsger" },
] as const;

/** A node, and who asks it. */
interface Place {
  readonly url: string;
  readonly observers: readonly Observer[];
}

async function listAll(
  { url, observers }: Place,
  query: string,
  minRevision?: string,
): Promise<{ readonly workloads: readonly Listed[]; readonly revision: string | undefined }> {
  const found: Listed[] = [];
  let revision: string | undefined;
  for (const observer of observers) {
    let cursor: string | undefined;
    do {
      const rest = cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const path = `/v1/workloads?tenantId=${observer.tenantId}&applicationId=${observer.applicationId}&limit=500${query}${rest}`;
      const response = await fetch(`${url}${path}`, {
        headers: {
          ...headersOf(observer),
          ...(minRevision === undefined ? {} : { "mandate-min-revision": minRevision }),
        },
        signal: AbortSignal.timeout(READ_MS),
      });
      if (!response.ok) throw new RangeError(`${path} was answered ${response.status}: ${await response.text()}`);
      const page = (await response.json()) as { readonly workloads: readonly Listed[]; readonly cursor?: string };
      found.push(...page.workloads);
      revision ??= response.headers.get("mandate-revision") ?? undefined;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
  return { workloads: found, revision };
}

/** Approves whatever waits for it, so that everything can come to its end. */
async function approveWaiting(
  caller: HttpCaller,
  { url, observers }: Place,
  waiting: readonly Listed[],
): Promise<void> {
  for (const { workloadId, inputHash, ...owner } of waiting)
    for (const subject of sweepers) {
      const body = { outcome: "approved", inputHash, requestId: `sweep-${workloadId}-${subject.id}` };
      const observer = observers.find(
        ({ tenantId, applicationId }) => tenantId === owner.tenantId && applicationId === owner.applicationId,
      );
      const token = observer?.tokenOf(`${subject.kind}:${subject.id}`);
      const call = {
        call: "decide",
        subject,
        method: "POST",
        path: `/v1/workloads/${workloadId}/decision`,
        body,
        arguments: { workloadId, decider: subject, ...body },
        timeoutMs: 10_000,
        ...(token === undefined ? {} : { token }),
      } as const;
      await caller.call(call, { node: undefined, url });
    }
}

/**
 * Waits, `withinMs` at most, until nothing is left that anything will still happen to by itself; what waits for an approval
 * is approved. Answers what has not settled by then.
 */
export async function settleAll(
  system: System,
  recorder: Recorder,
  withinMs: number,
): Promise<readonly { readonly workloadId: string; readonly state: string }[]> {
  const place = { url: system.nodes.front.url, observers: system.observers };
  const caller = new HttpCaller(recorder);
  const query = openStates.map((state) => `&state=${state}`).join("");
  const deadline = performance.now() + withinMs;
  try {
    for (;;) {
      const open = await listAll(place, query).then(
        ({ workloads }) => workloads,
        () => undefined,
      );
      if (open?.length === 0) return [];
      if (performance.now() > deadline) return open ?? [];
      await approveWaiting(
        caller,
        place,
        (open ?? []).filter(({ state }) => state === "AWAITING_APPROVAL"),
      );
      await pause(500);
    }
  } finally {
    caller.close();
  }
}

/** {@link listAll}, asked again while the node is not ready: a loaded machine may hold it up once more after all is well. */
async function listInTime(...asked: Parameters<typeof listAll>): ReturnType<typeof listAll> {
  const deadline = performance.now() + READ_MS;
  for (;;)
    try {
      return await listAll(...asked);
    } catch (thrown) {
      if (performance.now() > deadline) throw thrown;
      await pause(500);
    }
}

/** What every node shows in the end, none of it older than what the others show. */
export async function readViews(
  nodes: readonly ChaosNode[],
  observers: readonly Observer[],
  recorder: Recorder,
): Promise<void> {
  const revisions = new Map<string, string | undefined>();
  for (const { name, process } of nodes)
    revisions.set(name, (await listInTime({ url: process.url, observers }, "&state=CREATED")).revision);
  const newest = [...revisions.values()].filter((revision) => revision !== undefined && /^\d+$/.test(revision));
  const minRevision = newest.sort((left, right) => Number(right) - Number(left))[0];
  for (const { name, process } of nodes) {
    const { workloads } = await listInTime({ url: process.url, observers }, "", minRevision);
    const view: ViewLine = {
      line: "view",
      node: name,
      at: recorder.clock.now(),
      workloads: Object.fromEntries(
        workloads.map(({ workloadId, state, history }) => [workloadId, { state, events: history.length }]),
      ),
      workers: await shownWorkers(process.url, observers),
    };
    recorder.write(view);
  }
}
