import { medianOf, type Figures } from "./figures.ts";
import type { Node } from "./nodes.ts";
import { shortNumber, type Goal, type Row, type Section } from "./report.ts";
import { nextRun, withNodes, type Bench, type Scenario } from "./scenario.ts";
import type { Generator } from "./generator.ts";

const WORKLOADS = 1000;
const WORKERS = 16;
const goal: Goal = { atMost: 1 };

interface Drain {
  readonly figures: Figures;
  readonly committed: number;
  readonly refused: number;
}

async function claimCommits(nodes: readonly Node[]): Promise<{ committed: number; refused: number }> {
  const counts = await Promise.all(nodes.map((node) => node.commits()));
  const sum = (outcome: string): number =>
    counts.reduce((total, count) => total + (count.get(`claim ${outcome}`) ?? 0), 0);
  return { committed: sum("committed"), refused: sum("refused") };
}

async function drain(bench: Bench, generator: Generator, nodes: readonly Node[]): Promise<Drain> {
  const run = nextRun();
  const queue = { name: `drain-${run}`, run, size: Math.max(20, Math.round(WORKLOADS * bench.scale)) };
  await generator.run("fillQueue", queue);
  const before = await claimCommits(nodes);
  const figures = await generator.run("drainQueue", { ...queue, workers: WORKERS });
  const after = await claimCommits(nodes);
  return {
    figures,
    committed: after.committed - before.committed,
    refused: after.refused - before.refused,
  };
}

/** Nodes that drain one queue of equals at once: how often they want the same piece of work. */
export const conflicts: Scenario = {
  name: "conflicts",
  run: async (bench): Promise<Section> => {
    const rows: Row[] = [];
    for (const count of [1, 2, 4]) {
      bench.say(`${count} nodes drain one queue`);
      const drains = await withNodes(bench, count, async (generator, nodes) => {
        await drain(bench, generator, nodes);
        const measured: Drain[] = [];
        for (let round = 0; round < bench.rounds; round++) measured.push(await drain(bench, generator, nodes));
        return measured;
      });
      const committed = drains.reduce((total, one) => total + one.committed, 0);
      const refused = drains.reduce((total, one) => total + one.refused, 0);
      rows.push({
        name: `conflicts, ${count} ${count === 1 ? "node" : "nodes"}, ${WORKERS} workers`,
        product: `${refused} of ${committed}; ${shortNumber(medianOf(drains.map(({ figures }) => figures.perSecond)))}/s`,
        raw: "",
        value: (100 * refused) / Math.max(1, committed),
        unit: "%",
        ...(count === 4 ? { goal } : {}),
        detail: drains,
      });
    }
    return { scenario: "conflicts", rows };
  },
};
