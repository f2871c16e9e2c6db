import { medianOf, type Figures } from "./figures.ts";
import type { Generator } from "./generator.ts";
import { processorTimeOf } from "./processor-time.ts";
import type { Load, Phases } from "./raw-load.ts";
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

const phaseTitles = { admit: "admit", claim: "claim+start", complete: "complete" } as const;

const phaseRows = (
  label: string,
  measured: { readonly raw: readonly Phases[]; readonly product: readonly Phases[] },
): readonly Row[] =>
  (["admit", "claim", "complete"] as const).map((phase) =>
    ratioRow(`${phaseTitles[phase]}, ${label}`, {
      raw: measured.raw.map((phases) => phases[phase]),
      product: measured.product.map((phases) => phases[phase]),
    }),
  );

type PhaseLoad = Load & { readonly requested: boolean };

/** A load of the bench's length under a name of its own. */
const loadOf = (bench: Bench, inFlight: number, requested = false): PhaseLoad => ({
  run: nextRun(),
  inFlight,
  end: { ms: bench.seconds * 1000 },
  requested,
});

/** Runs everything once, so that no figure holds the cost of compiling it. */
export async function warmUp(bench: Bench, run: (load: Load) => Promise<unknown>): Promise<void> {
  bench.say("warming up");
  await run({ run: nextRun(), inFlight: 32, end: { ms: Math.min(15_000, bench.seconds * 5000) } });
}

type Timed = { readonly answer: Figures; readonly usedMs: Readonly<Record<string, number>> };

/** Processor time of one life on each side, over all processes that take part. */
function processorRow(
  label: string,
  measured: { readonly raw: readonly Timed[]; readonly product: readonly Timed[] },
): Row {
  const perLife = (timed: readonly Timed[], name: string): number =>
    medianOf(timed.map(({ answer, usedMs }) => (usedMs[name] ?? 0) / Math.max(1, answer.operations)));
  const sides = (timed: readonly Timed[], names: readonly string[]): { text: string; total: number } => ({
    text: names.map((name) => `${name} ${shortNumber(perLife(timed, name))}`).join(", "),
    total: names.reduce((total, name) => total + perLife(timed, name), 0),
  });
  const product = sides(measured.product, ["node", "servers", "client"]);
  const raw = sides(measured.raw, ["servers", "client"]);
  return {
    name: `processor ms of a life, ${label}`,
    product: product.text,
    raw: raw.text,
    value: product.total / raw.total,
    unit: "× raw",
    detail: { raw: measured.raw.map(({ usedMs }) => usedMs), product: measured.product.map(({ usedMs }) => usedMs) },
  };
}

async function lives(
  bench: Bench,
  generator: Generator,
  of: { nodePids: readonly number[]; inFlight: number },
): Promise<readonly Row[]> {
  const { inFlight } = of;
  const label = `${inFlight} in flight`;
  bench.say(`lifecycle, ${label}`);
  const pids = { node: of.nodePids, servers: bench.serverPids, client: [generator.pid] };
  const timed = await inTurn(
    bench,
    () => processorTimeOf(pids, () => generator.run("rawLives", loadOf(bench, inFlight))),
    () => processorTimeOf(pids, () => generator.run("lives", loadOf(bench, inFlight))),
  );
  const figures = {
    raw: timed.raw.map(({ answer }) => answer),
    product: timed.product.map(({ answer }) => answer),
  };
  return [ratioRow(`lifecycle, ${label}`, figures, { goal: { atLeast: 0.5 } }), processorRow(label, timed)];
}

/** Through the doors: admission over HTTP, the rest over NATS, one node. */
export const throughput: Scenario = {
  name: "throughput",
  run: (bench) =>
    withNodes(bench, 1, async (generator, nodes): Promise<Section> => {
      const rows: Row[] = [];
      await warmUp(bench, async (load) => {
        await generator.run("rawLives", load);
        await generator.run("lives", load);
      });
      for (const inFlight of [1, 64]) {
        bench.say(`phases, ${inFlight} in flight`);
        const phases = await inTurn(
          bench,
          () => generator.run("rawPhases", loadOf(bench, inFlight)),
          () => generator.run("phases", loadOf(bench, inFlight)),
        );
        rows.push(...phaseRows(`${inFlight} in flight`, phases));
        rows.push(...(await lives(bench, generator, { nodePids: nodes.map(({ pid }) => pid), inFlight })));
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
      await warmUp(bench, async (load) => {
        await generator.run("rawLives", load);
        await generator.run("directLives", load);
      });
      for (const inFlight of [1, 64]) {
        const label = `in process, ${inFlight} in flight`;
        bench.say(label);
        const phases = await inTurn(
          bench,
          () => generator.run("rawPhases", loadOf(bench, inFlight)),
          () => generator.run("directPhases", loadOf(bench, inFlight)),
        );
        rows.push(...phaseRows(label, phases));
        const whole = await inTurn(
          bench,
          () => generator.run("rawLives", loadOf(bench, inFlight)),
          () => generator.run("directLives", loadOf(bench, inFlight)),
        );
        rows.push(ratioRow(`lifecycle, ${label}`, whole));
      }
      return { scenario: "direct", rows };
    }),
};

/** What a worker's slot costs: a life with it beside one without, and beside the floor that writes the same bytes. */
export const registry: Scenario = {
  name: "registry",
  run: (bench) =>
    withNodes(bench, 1, async (generator): Promise<Section> => {
      const rows: Row[] = [];
      await warmUp(bench, async (load) => {
        await generator.run("rawRegisteredLives", load);
        await generator.run("registeredLives", load);
      });
      for (const inFlight of [1, 64]) {
        bench.say(`workers of the registry, ${inFlight} in flight`);
        const floor = await inTurn(
          bench,
          () => generator.run("rawRegisteredLives", loadOf(bench, inFlight)),
          () => generator.run("registeredLives", loadOf(bench, inFlight)),
        );
        rows.push(ratioRow(`lifecycle with slots, ${inFlight} in flight`, floor, { goal: { atLeast: 0.5 } }));
        const beside = await inTurn(
          bench,
          () => generator.run("lives", loadOf(bench, inFlight)),
          () => generator.run("registeredLives", loadOf(bench, inFlight)),
        );
        const row = ratioRow(`lifecycle with slots, ${inFlight} in flight`, beside);
        rows.push({ ...row, raw: `without: ${row.raw}`, unit: "× without" });
      }
      return { scenario: "registry", rows };
    }),
};

/** What it costs that a repeated work.next gets the same answer: a second message in the same batch. */
export const requestIds: Scenario = {
  name: "request-ids",
  run: (bench) =>
    withNodes(bench, 1, async (generator): Promise<Section> => {
      const rows: Row[] = [];
      await warmUp(bench, (load) => generator.run("lives", load));
      for (const inFlight of [1, 64]) {
        bench.say(`requestId, ${inFlight} in flight`);
        const claims = async (requested: boolean): Promise<Figures> =>
          (await generator.run("phases", loadOf(bench, inFlight, requested))).claim;
        const floor = await generator.run("rawPhases", loadOf(bench, inFlight, true));
        const measured = await inTurn(
          bench,
          () => claims(false),
          () => claims(true),
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
