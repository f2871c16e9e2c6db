import { fork } from "node:child_process";
import { once } from "node:events";
import { compiledProgram, profileFlags } from "./compiled.ts";
import { medianOf } from "./figures.ts";
import { shortNumber, type Section } from "./report.ts";
import { withNodes, type Bench, type Scenario } from "./scenario.ts";
import type { ViewFigures } from "./view-process.ts";

const RECORDS = 100_000;
const MEBIBYTE = 1024 * 1024;

async function loadView(bench: Bench): Promise<ViewFigures> {
  const child = fork(compiledProgram("bench/view-process"), {
    execArgv: ["--expose-gc", ...profileFlags(bench.profileTo)],
  });
  const exited = once(child, "exit");
  child.send(bench.address);
  const [figures] = (await Promise.race([once(child, "message"), exited.then(() => [])])) as [ViewFigures?];
  await exited;
  if (figures === undefined) throw new Error("the view was not loaded");
  return figures;
}

/** Records straight into the bucket; then a fresh node's view until it is current. */
export const viewLoad: Scenario = {
  name: "view-load",
  run: async (bench): Promise<Section> => {
    const count = Math.max(1000, Math.round(RECORDS * bench.scale));
    bench.say(`writing ${count} records`);
    const filled = await withNodes(bench, 0, (generator) => generator.run("fillRecords", { count }));
    if (Object.keys(filled.failures).length > 0) throw new Error(JSON.stringify(filled.failures));
    const loads: ViewFigures[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      bench.say("loading a fresh view");
      loads.push(await loadView(bench));
    }
    const elapsedMs = medianOf(loads.map((load) => load.elapsedMs));
    const records = medianOf(loads.map((load) => load.records));
    const perRecord = (bytes: (load: ViewFigures) => number): number =>
      medianOf(loads.map((load) => bytes(load) / load.records));
    const heap = perRecord(({ heapBytes }) => heapBytes);
    const buffers = perRecord(({ bufferBytes }) => bufferBytes);
    const seconds = (elapsedMs / 1000) * (RECORDS / records);
    return {
      scenario: "view-load",
      rows: [
        {
          name: `view of ${shortNumber(records)} records, per 100,000`,
          product: `${shortNumber(elapsedMs)} ms, ${shortNumber((records * 1000) / elapsedMs)} records/s`,
          raw: `${shortNumber(medianOf(loads.map(({ bareMs }) => bareMs)))} ms`,
          value: seconds,
          unit: "s",
          goal: { atMost: 6 },
          detail: { loads, filled },
        },
        {
          name: "view of 1,000,000 records, memory extrapolated",
          product: `${shortNumber(heap)} bytes of heap, ${shortNumber(buffers)} of buffers a record`,
          raw: "",
          value: ((heap + buffers) * 1_000_000) / MEBIBYTE,
          unit: "MiB",
          detail: { heap, buffers, resident: perRecord(({ residentBytes }) => residentBytes) },
        },
      ],
    };
  },
};
