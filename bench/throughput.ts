import { medianOf, type Figures } from "./figures.ts";
import type { Phases } from "./raw-load.ts";
import { shortNumber, type Goal, type Row, type Section } from "./report.ts";
import { inTurn, nextRun, withNodes, type Bench, type Scenario } from "./scenario.ts";

const describe = (figures: readonly Figures[]): string =>
  `${shortNumber(medianOf(figures.map(({ perSecond }) => perSecond)))}/s, ${shortNumber(medianOf(figures.map(({ p50Ms }) => p50Ms)))} ms`;

/** The product's throughput as a share of the floor's, round by round; the middle one. */
export function ratioRow(
  name: string,
  measured: { readonly raw: readonly Figures[]; readonly product: readonly Figures[] },
  options: { readonly goal?: Goal; readonly perOperation?: number } = {},
): Row {
  const { perOperation = 1, goal } = options;
  const ratios = measured.product.map(
    ({ perSecond }, round) => (perSecond * perOperation) / (measured.raw[round]?.perSecond ?? Number.NaN),
  );
  return {
    name,
    product: describe(measured.product),
    raw: describe(measured.raw),
    value: medianOf(ratios),
    unit: "× raw",
    detail: { ...measured, ratios },
    ...(goal === undefined ? {} : { goal }),
  };
}

const phaseNames = ["admit", "claim", "complete"] as const;
const phaseTitles = { admit: "admit", claim: "claim+start", complete: "complete" } as const;

const phaseRows = (
  label: string,
  measured: { readonly raw: readonly Phases[]; readonly product: readonly Phases[] },
): readonly Row[] =>
  phaseNames.map((phase) =>
    ratioRow(`${phaseTitles[phase]}, ${label}`, {
      raw: measured.raw.map((phases) => phases[phase]),
      product: measured.product.map((phases) => phases[phase]),
    }),
  );

const lifecycleGoal: Goal = { atLeast: 0.5 };

/** Through the doors: admission over HTTP, the rest over NATS, one node. */
export const throughput: Scenario = {
  name: "throughput",
  run: (bench) =>
    withNodes(bench, 1, async (generator): Promise<Section> => {
      const rows: Row[] = [];
      const end = { ms: bench.seconds * 1000 };
      await warmUp(bench, async (load) => {
        await generator.run("rawLives", load);
        await generator.run("lives", load);
      });
      for (const inFlight of [1, 64]) {
        const load = (): { run: string; inFlight: number; end: typeof end; requested: boolean } => ({
          run: nextRun(),
          inFlight,
          end,
          requested: false,
        });
        bench.say(`phases, ${inFlight} in flight`);
        const phases = await inTurn(
          bench,
          () => generator.run("rawPhases", load()),
          () => generator.run("phases", load()),
        );
        rows.push(...phaseRows(`${inFlight} in flight`, phases));
        bench.say(`lifecycle, ${inFlight} in flight`);
        const lives = await inTurn(
          bench,
          () => generator.run("rawLives", load()),
          () => generator.run("lives", load()),
        );
        rows.push(ratioRow(`lifecycle, ${inFlight} in flight`, lives, { goal: lifecycleGoal }));
      }
      return { scenario: "throughput", rows };
    }),
};

/** The authority called in its own process: what the doors add is the difference to the above. */
export const direct: Scenario = {
  name: "direct",
  run: (bench) =>
    withNodes(bench, 0, async (generator): Promise<Section> => {
      const rows: Row[] = [];
      const end = { ms: bench.seconds * 1000 };
      await warmUp(bench, async (load) => {
        await generator.run("rawLives", load);
        await generator.run("directLives", load);
      });
      for (const inFlight of [1, 64]) {
        const load = (): { run: string; inFlight: number; end: typeof end; requested: boolean } => ({
          run: nextRun(),
          inFlight,
          end,
          requested: false,
        });
        bench.say(`direct, ${inFlight} in flight`);
        const phases = await inTurn(
          bench,
          () => generator.run("rawPhases", load()),
          () => generator.run("directPhases", load()),
        );
        rows.push(...phaseRows(`in process, ${inFlight} in flight`, phases));
        const lives = await inTurn(
          bench,
          () => generator.run("rawLives", load()),
          () => generator.run("directLives", load()),
        );
        rows.push(ratioRow(`lifecycle, in process, ${inFlight} in flight`, lives));
      }
      return { scenario: "direct", rows };
    }),
};

/** What it costs that a repeated work.next gets the same answer: a second message in the same batch. */
export const requestIds: Scenario = {
  name: "request-ids",
  run: (bench) =>
    withNodes(bench, 1, async (generator): Promise<Section> => {
      const end = { ms: bench.seconds * 1000 };
      await warmUp(bench, async (load) => {
        await generator.run("lives", load);
      });
      const rows: Row[] = [];
      for (const inFlight of [1, 64]) {
        bench.say(`requestId, ${inFlight} in flight`);
        const measure = async (requested: boolean): Promise<Figures> =>
          (await generator.run("phases", { run: nextRun(), inFlight, end, requested })).claim;
        const floor = await generator.run("rawPhases", { run: nextRun(), inFlight, end, requested: true });
        const measured = await inTurn(
          bench,
          () => measure(false),
          () => measure(true),
        );
        const row = ratioRow(`work.next with requestId, ${inFlight} in flight`, measured);
        rows.push({
          ...row,
          raw: `without: ${row.raw}`,
          unit: "× without",
          detail: { with: measured.product, without: measured.raw, floor: floor.claim },
        });
      }
      return { scenario: "request-ids", rows };
    }),
};

/** Runs everything once, so that no figure holds the cost of compiling it. */
export async function warmUp(
  bench: Bench,
  run: (load: { readonly run: string; readonly inFlight: number; readonly end: { ms: number } }) => Promise<void>,
): Promise<void> {
  bench.say("warming up");
  await run({ run: nextRun(), inFlight: 32, end: { ms: Math.min(2000, bench.seconds * 1000) } });
}
