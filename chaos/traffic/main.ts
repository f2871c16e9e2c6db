/**
 * The requesters, approvers, operators and raw workers of a run, as a process of its own to which no fault is done: what
 * they saw is never lost. It plays until its control file says that the end has come.
 */
import { readFileSync } from "node:fs";
import { Draw } from "../draw.ts";
import { pause } from "../../src/sdk/backoff.ts";
import { Recorder } from "../recorder.ts";
import { RunClock } from "../run-clock.ts";
import { readSetting } from "../system/program.ts";
import { TENANT } from "../system/setting.ts";
import { HttpCaller } from "./http-caller.ts";
import { plays, type PlayName } from "./plays.ts";
import { RawWorker } from "./raw-worker.ts";
import type { TrafficControl, TrafficSetting } from "./setting.ts";
import { Stage } from "./stage.ts";
import { Targets } from "./targets.ts";

const CONTROL_MS = 150;
/** Plays under way when the end comes have so long to be done, ms. */
const FINISH_MS = 30_000;

const setting = readSetting() as TrafficSetting;
const clock = new RunClock(setting.clock);
const recorder = new Recorder(setting.record, clock);
const draw = new Draw(setting.seed).child("traffic");
const ending = new AbortController();
const http = new HttpCaller(recorder);
const targets = new Targets(http, { draw: draw.child("targets"), front: setting.front, ending: ending.signal });

function readControl(): void {
  try {
    const control = JSON.parse(readFileSync(setting.control, "utf8")) as TrafficControl;
    targets.setNodes(control.nodes);
    if (control.ending) ending.abort();
  } catch {
    // It is being written at this moment; the next look finds it whole.
  }
}

async function playLane(index: number, raw: readonly RawWorker[]): Promise<void> {
  const own = draw.child(`lane-${index}`);
  const names = Object.keys(setting.weights) as PlayName[];
  const choices = names.map((item) => ({ item, weight: setting.weights[item] ?? 0 }));
  for (let turn = 0; !ending.signal.aborted; turn++) {
    const name = own.weighted(choices);
    if (name === undefined) return;
    const stage = new Stage({
      name: `${name}-${index}-${turn}`,
      draw: own.child(`turn-${turn}`),
      http,
      targets,
      raw,
      clock,
      ending: ending.signal,
    });
    await plays[name](stage);
    await pause(own.share() * setting.breakMs, ending.signal);
  }
}

readControl();
const looking = setInterval(readControl, CONTROL_MS);
const raw = await Promise.all(
  setting.raw.map(({ name, servers }) =>
    RawWorker.open({ name, servers, tenantId: TENANT, draw: draw.child(name), recorder, ending: ending.signal }),
  ),
);
const lanes = Promise.all(Array.from({ length: setting.lanes }, (_, index) => playLane(index, raw)));
const patience = new Promise<void>((resolve) => {
  ending.signal.addEventListener("abort", () => void pause(FINISH_MS).then(resolve), { once: true });
});
await Promise.race([lanes, patience]);
clearInterval(looking);
http.close();
await Promise.race([Promise.all(raw.map((worker) => worker.close())), pause(2_000)]);
process.exit(0);
