/**
 * The callers of a run in secure mode, as a process of its own to which no fault is done: requesters, approvers, workers and
 * those who revoke, of two tenants that name everything alike. It plays until its control file says that the end has come.
 */
import { readFileSync } from "node:fs";
import { pause } from "../../src/sdk/backoff.ts";
import { Draw } from "../draw.ts";
import { Recorder } from "../recorder.ts";
import { RunClock } from "../run-clock.ts";
import { Issuer } from "../system/issuer.ts";
import { readSetting } from "../system/program.ts";
import { Party } from "./grants/party.ts";
import { grantPlays } from "./grants/plays.ts";
import { GrantStage } from "./grants/stage.ts";
import { HttpCaller } from "./http-caller.ts";
import { connectRaw } from "./raw-worker.ts";
import type { TrafficControl, TrafficSetting } from "./setting.ts";
import { Targets } from "./targets.ts";

const CONTROL_MS = 150;
/** Plays under way when the end comes have so long to be done, ms. */
const FINISH_MS = 30_000;

const setting = readSetting() as TrafficSetting;
const { tenants = [], folder = "" } = setting.secure ?? {};
const draw = new Draw(setting.seed).child("traffic");
const ending = new AbortController();
const http = new HttpCaller(new Recorder(setting.record, new RunClock(setting.clock)));
const targets = new Targets(http, { draw: draw.child("targets"), front: setting.front, ending: ending.signal });
const parties = tenants.map((tenant) => new Party(tenant, new Issuer(folder)));

function readControl(): void {
  try {
    const control = JSON.parse(readFileSync(setting.control, "utf8")) as TrafficControl;
    targets.setNodes(control.nodes);
    if (control.ending) ending.abort();
  } catch {
    // It is being written at this moment; the next look finds it whole.
  }
}

readControl();
const looking = setInterval(readControl, CONTROL_MS);
const nats = await Promise.all(setting.raw.map(connectRaw));

async function playLane(index: number): Promise<void> {
  const lane = draw.child(`lane-${index}`);
  for (let turn = 0; !ending.signal.aborted; turn++) {
    const [own, other] = lane.shuffled(parties);
    const play = lane.weighted(grantPlays.map((item) => ({ item, weight: item.weight })));
    if (own === undefined || other === undefined || play === undefined) return;
    const name = `${play.name}-${index}-${turn}`;
    const stage = { name, draw: lane.child(`turn-${turn}`), http, targets, nats, own, other, ending: ending.signal };
    await play.item(new GrantStage(stage));
    await pause(lane.share() * setting.breakMs, ending.signal);
  }
}

const lanes = Promise.all(Array.from({ length: setting.lanes }, (_, index) => playLane(index)));
const patience = new Promise<void>((resolve) => {
  ending.signal.addEventListener("abort", () => void pause(FINISH_MS).then(resolve), { once: true });
});
await Promise.race([lanes, patience]);
clearInterval(looking);
http.close();
await Promise.race([Promise.all(nats.map((connection) => connection.close())), pause(2_000)]);
process.exit(0);
