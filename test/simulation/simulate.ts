import { boundaryError } from "../../src/authority/failures.ts";
import { MandateError } from "../../src/core/errors.ts";
import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import { nextDeadline } from "../../src/core/workload/deadlines.ts";
import { settledStates } from "../../src/core/workload/states.ts";
import { approving, operating, requesting, reviving, working, type Actor } from "./actors.ts";
import { disturbing, mend } from "./disturbing.ts";
import { readHistory, type History } from "./history.ts";
import { judgeGrace, judgeLateWrites } from "./judge-grace.ts";
import { judgeHistory } from "./judge-history.ts";
import { judgeRefusals } from "./judge-refusals.ts";
import { judgeWishes } from "./judge-wishes.ts";
import { planPieces, type Piece } from "./plan.ts";
import { World } from "./world.ts";

/** How long things go wrong, and how long they are well at most afterwards, virtual ms. */
const SAFETY_MS = 40_000;
const LIVENESS_MS = 300_000;

export interface Report {
  readonly seed: number;
  /** A digest of everything that was committed. */
  readonly hash: string;
  readonly commits: number;
  readonly wishes: number;
  readonly tries: number;
  /** How many workloads ended in each state. */
  readonly ends: Readonly<Record<string, number>>;
  /** What is wrong; empty when the run was sound. */
  readonly faults: readonly string[];
}

/** Who acts in a run, on what, and who judges it beside those who judge every run. */
export interface Script {
  readonly actors: readonly Actor[];
  readonly plan: (world: World) => readonly Piece[];
  readonly judge: (world: World, history: History) => readonly string[];
}

/** Workers that are not in the registry: whatever they do bears a mark of its own, so that everything they were told can be judged. */
const usual: Script = {
  actors: [requesting, requesting, working, working, working, working, approving, operating, reviving],
  plan: ({ draw }) => planPieces(draw),
  judge: ({ ledger }, history) => judgeWishes(ledger.wishes, history),
};

/** Runs one seed: a phase in which everything goes wrong, then one in which nothing does, then the judgement. */
export async function simulate(seed: number, script: Script = usual): Promise<Report> {
  const world = new World(seed);
  const pieces = script.plan(world);
  const { actors } = script;
  const running = actors.map((actor) => actor(world, pieces));
  const trouble = disturbing(world);
  await world.queue.advance(SAFETY_MS);
  world.phase = "liveness";
  mend(world);
  const end = world.queue.now() + LIVENESS_MS;
  do await world.queue.advance(5000);
  while (world.queue.now() < end && !isAtRest(recordsOf(world)));
  world.phase = "over";
  await world.queue.settle(Promise.all([...running, trouble]), 120_000);
  await world.queue.advance(10_000);
  const history = readHistory(world.committed());
  const faults = [
    ...judgeHistory(history),
    ...script.judge(world, history),
    ...judgeRefusals(world.ledger.wishes, history),
    ...judgeGrace(world, history),
    ...judgeLateWrites(world, history),
    ...judgeRest(recordsOf(world)),
    ...(await judgeViews(world, history)),
  ];
  for (const { node } of world.slots) await world.queue.settle(node.authority.close(), 120_000);
  return reportOf(world, history, faults);
}

const recordsOf = (world: World): readonly WorkloadRecord[] =>
  [...readHistory(world.committed()).versions.values()].flatMap((versions) => versions.at(-1)?.record ?? []);

/** Work that may rest as it is: it has ended, or waits for other work that will never be as it needs it. */
function mayRest(record: WorkloadRecord, records: readonly WorkloadRecord[]): boolean {
  if (settledStates.includes(record.state)) return true;
  if (record.state !== "READY" || nextDeadline(record) !== undefined) return false;
  return record.dependencies.some(({ workloadId, requiredState }) => {
    const other = records.find((candidate) => candidate.workloadId === workloadId);
    return other !== undefined && other.state !== requiredState && mayRest(other, records);
  });
}

const isAtRest = (records: readonly WorkloadRecord[]): boolean => records.every((record) => mayRest(record, records));

const judgeRest = (records: readonly WorkloadRecord[]): readonly string[] =>
  records
    .filter((record) => !mayRest(record, records))
    .map(({ workloadId, state }) => `${workloadId} never came to its end: it is ${state}`);

/** Every view shows what the log holds. */
async function judgeViews(world: World, history: History): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const { node, nodeId } of world.slots) {
    const { ready, reasons } = node.readiness();
    if (!ready) {
      faults.push(`${nodeId} is not ready in the end: ${reasons.join("; ")}`);
      continue;
    }
    const page = await world.queue.settle(node.authority.page({}, { limit: 1000 }).catch(boundaryError));
    if (page instanceof MandateError) {
      faults.push(`${nodeId} can't show what there is: ${page.code}, ${page.message}`);
      continue;
    }
    const seen = new Map(page.answer.workloads.map((workload) => [workload.workloadId, workload]));
    for (const [workloadId, versions] of history.versions) {
      const wanted = versions.at(-1)?.record;
      const shown = seen.get(workloadId);
      if (shown?.updatedAt !== wanted?.updatedAt || shown?.history.length !== wanted?.history.length)
        faults.push(`${nodeId} shows ${workloadId} as ${shown?.state}, and it is ${wanted?.state}`);
    }
    if (seen.size !== history.versions.size) faults.push(`${nodeId} shows ${seen.size} of ${history.versions.size}`);
    const counted = [...node.authority.counts().values()].reduce((sum, count) => sum + count, 0);
    if (counted !== history.versions.size) faults.push(`${nodeId} counts ${counted} of ${history.versions.size}`);
    if (node.authority.divergences() > 0) faults.push(`${nodeId} found its view to differ from the log`);
  }
  return faults;
}

function reportOf(world: World, history: History, faults: readonly string[]): Report {
  const ends: Record<string, number> = {};
  for (const { state } of recordsOf(world)) ends[state] = (ends[state] ?? 0) + 1;
  const { wishes } = world.ledger;
  return {
    seed: world.seed,
    hash: history.hash,
    commits: history.commits,
    wishes: wishes.length,
    tries: wishes.reduce((sum, { tries }) => sum + tries.length, 0),
    ends,
    faults,
  };
}
