import type { Outcome } from "../../history.ts";
import { TENANT } from "../../system/setting.ts";
import type { HttpCall } from "../http-caller.ts";
import { operators } from "../requests.ts";
import type { Play, Stage } from "../stage.ts";
import { admitWork, drawWorker, enlist, labour } from "./registry.ts";

interface Owner {
  readonly tenantId: string;
  readonly applicationId: string;
}

function callPool(
  stage: Stage,
  call: string,
  what: { readonly path: string; readonly query?: Owner; readonly body: object },
): Promise<Outcome> {
  const query = what.query === undefined ? "" : `?${new URLSearchParams({ ...what.query }).toString()}`;
  const body = { ...what.body, requestId: stage.requestId() };
  const made: HttpCall = {
    call,
    subject: stage.draw.pick(operators) ?? { kind: "human", id: "operator-1" },
    method: "POST",
    path: `${what.path}${query}`,
    body,
    timeoutMs: 4_000,
  };
  const [, , , poolId] = what.path.split("/");
  const named = what.query === undefined ? {} : { ...what.query, poolId };
  return stage.targets.settle({ ...made, arguments: { ...named, ...body } });
}

/** The id of a pool that was created, or found to be there. */
function poolIdIn(outcome: Outcome): string | undefined {
  const told =
    outcome.kind === "acknowledged" ? outcome.answer : outcome.kind === "refused" ? outcome.details : undefined;
  return (told as { readonly poolId?: string } | undefined)?.poolId;
}

/** Workers share a pool with a limit below what they have room for, while its members and its limit change. */
export const sharePool: Play = async (stage) => {
  const { draw } = stage;
  const first = drawWorker(stage, { concurrency: 2 });
  const { applicationId } = first;
  const workers = [first, drawWorker(stage, { concurrency: 2, applicationId })];
  const connections = stage.someRaw(4);
  const [raw] = connections;
  if (raw === undefined) return;
  const enlisted = await Promise.all(workers.map((worker) => enlist(worker, raw)));
  if (!enlisted.every(Boolean)) return;
  const owner = { tenantId: TENANT, applicationId };
  const workerIds = workers.map(({ workerId }) => workerId);
  const name = stage.key();
  const create = (maxConcurrency: number): Promise<Outcome> =>
    callPool(stage, "createPool", { path: "/v1/pools", body: { ...owner, name, workerIds, maxConcurrency } });
  const poolId = poolIdIn(await create(draw.whole(1, 2)));
  if (poolId === undefined) return;
  // Who is in no pool may not take it: it must end by itself when the play is over.
  const rest = { placement: { poolId }, timeouts: { overallMs: draw.whole(4_000, 9_000) } };
  const workloadIds = await admitWork(stage, applicationId, { count: draw.whole(3, 6), rest });
  const operate = async (): Promise<void> => {
    await stage.pause(draw.whole(50, 600));
    const on = { query: owner, body: {} };
    if (draw.chance(0.5)) {
      await callPool(stage, "deletePool", { path: `/v1/pools/${poolId}/remove`, ...on });
      await stage.pause(draw.whole(0, 300));
      await create(1);
      return;
    }
    const members = `/v1/pools/${poolId}/members`;
    await callPool(stage, "changePool", { path: members, query: owner, body: { remove: [first.workerId] } });
    await stage.pause(draw.whole(0, 400));
    await callPool(stage, "changePool", { path: members, query: owner, body: { add: [first.workerId] } });
  };
  const hands = connections.map((own, index) =>
    labour(stage, workers[index % workers.length] ?? first, { raw: own, rounds: 4, workloadIds }),
  );
  await Promise.all([...hands, operate()]);
};
