import { Generator } from "./generator.ts";
import type { GeneratorSetting } from "./generator-process.ts";
import { startNodes, stopNodes, type Node } from "./nodes.ts";
import type { RecordedLife } from "./raw-load.ts";
import type { Section } from "./report.ts";
import type { StoreAddress } from "./store-access.ts";

/** What every scenario is given. */
export interface Bench {
  readonly address: StoreAddress;
  readonly life: RecordedLife;
  /** The ids of the servers' processes. */
  readonly serverPids: readonly number[];
  readonly seconds: number;
  /** How often product and floor are measured in turn; the middle one counts. */
  readonly rounds: number;
  /** How many records, jobs and pieces of work the counted scenarios use, as a share of the full size. */
  readonly scale: number;
  /** Folder for CPU profiles of nodes and generators. */
  readonly profileTo: string | undefined;
  say(line: string): void;
}

export interface Scenario {
  readonly name: string;
  run(bench: Bench): Promise<Section>;
}

let runs = 0;
const process36 = process.pid.toString(36);

/** A name that no other load has had: five characters, so that all keys are of one length. */
export const nextRun = (): string => `${process36}${(runs++).toString(36)}`.slice(-5).padStart(5, "0");

/** Starts nodes and a generator, and ends them whatever happens. */
export async function withNodes<Answer>(
  bench: Bench,
  count: number,
  use: (generator: Generator, nodes: readonly Node[]) => Promise<Answer>,
): Promise<Answer> {
  const nodes = count === 0 ? [] : await startNodes(bench.address, count, bench.profileTo);
  try {
    const setting: GeneratorSetting = { address: bench.address, life: bench.life, urls: nodes.map(({ url }) => url) };
    const generator = await Generator.start(setting, bench.profileTo);
    try {
      return await use(generator, nodes);
    } finally {
      await generator.stop();
    }
  } finally {
    await stopNodes(nodes);
  }
}

/** One after the other, floor first, as often as the bench has rounds. */
export async function inTurn<Raw, Product>(
  bench: Bench,
  raw: () => Promise<Raw>,
  product: () => Promise<Product>,
): Promise<{ readonly raw: readonly Raw[]; readonly product: readonly Product[] }> {
  const results = { raw: [] as Raw[], product: [] as Product[] };
  for (let round = 0; round < bench.rounds; round++) {
    results.raw.push(await raw());
    results.product.push(await product());
  }
  return results;
}
