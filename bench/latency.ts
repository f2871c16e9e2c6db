import { medianOf } from "./figures.ts";
import { shortNumber, type Row, type Section } from "./report.ts";
import { inTurn, nextRun, withNodes, type Scenario } from "./scenario.ts";
import { ratioRow, warmUp } from "./throughput.ts";

const JOBS = 200;

/** A worker waits at one node, a job comes in at another: until it is done, against three commits one after the other. */
export const loneJob: Scenario = {
  name: "lone-job",
  run: (bench) =>
    withNodes(bench, 2, async (generator): Promise<Section> => {
      const count = Math.max(5, Math.round(JOBS * bench.scale));
      await warmUp(bench, (load) => generator.run("lives", load));
      await generator.run("loneJobs", { run: nextRun(), count: 5 });
      bench.say(`${count} lone jobs`);
      const measured = await inTurn(
        bench,
        () => generator.run("rawLives", { run: nextRun(), inFlight: 1, end: { operations: count } }),
        () => generator.run("loneJobs", { run: nextRun(), count }),
      );
      const raw = medianOf(measured.raw.map(({ p50Ms }) => p50Ms));
      const total = medianOf(measured.product.map((jobs) => jobs.total.p50Ms));
      const held = medianOf(measured.product.map((jobs) => jobs.held.p50Ms));
      const rows: Row[] = [
        {
          name: "lone job, admit to completion, p50",
          product: `${shortNumber(total)} ms (held after ${shortNumber(held)} ms)`,
          raw: `${shortNumber(raw)} ms`,
          value: total / raw,
          unit: "× raw",
          goal: { atMost: 3 },
          detail: measured,
        },
      ];
      return { scenario: "lone-job", rows };
    }),
};

/** What renewing a lease costs: one by one, and 64 in one message. */
export const heartbeats: Scenario = {
  name: "heartbeats",
  run: (bench) =>
    withNodes(bench, 1, async (generator): Promise<Section> => {
      const end = { ms: bench.seconds * 1000 };
      await warmUp(bench, (load) => generator.run("lives", load));
      const rows: Row[] = [];
      for (const inFlight of [1, 64]) {
        bench.say(`heartbeats, ${inFlight} in flight`);
        const measured = await inTurn(
          bench,
          () => generator.run("rawHeartbeats", { run: nextRun(), inFlight, end }),
          () => generator.run("heartbeats", { run: nextRun(), inFlight, end, batch: false }),
        );
        rows.push(ratioRow(`heartbeat, ${inFlight} in flight`, measured));
      }
      bench.say("heartbeats, 64 in a message");
      const measured = await inTurn(
        bench,
        () => generator.run("rawHeartbeats", { run: nextRun(), inFlight: 64, end }),
        () => generator.run("heartbeats", { run: nextRun(), inFlight: 64, end, batch: true }),
      );
      const row = ratioRow("heartbeats, 64 in a message", measured, { perOperation: 64 });
      rows.push({ ...row, product: `${row.product} a message` });
      return { scenario: "heartbeats", rows };
    }),
};
