import { admitOneKey, chainWork, delayWork, fillQueue } from "./plays/admissions.ts";
import { gateWork, raceApproval } from "./plays/approvals.ts";
import { disturbWork, raceEndings, raceExpiry } from "./plays/holders.ts";
import { sharePool } from "./plays/pools.ts";
import { rearmWork, shareQueue, shareResult } from "./plays/queues.ts";
import { drainWorker, fillSlots, resizeWorker, silenceWorker, succeedWorker } from "./plays/registry.ts";
import type { Play } from "./stage.ts";

/** Every play by its name, and how often it is drawn beside the others. */
export const plays = {
  admitOneKey,
  fillQueue,
  delayWork,
  chainWork,
  raceApproval,
  gateWork,
  raceEndings,
  raceExpiry,
  disturbWork,
  shareQueue,
  rearmWork,
  shareResult,
  fillSlots,
  succeedWorker,
  resizeWorker,
  drainWorker,
  silenceWorker,
  sharePool,
} as const satisfies { readonly [name: string]: Play };

export type PlayName = keyof typeof plays;

/** How often each play is drawn; what is left out, not at all. */
export type PlayWeights = { readonly [Name in PlayName]?: number };

export const allPlays: PlayWeights = {
  admitOneKey: 3,
  fillQueue: 2,
  delayWork: 1,
  chainWork: 1,
  raceApproval: 2,
  gateWork: 1,
  raceEndings: 3,
  raceExpiry: 2,
  disturbWork: 1,
  shareQueue: 1,
  rearmWork: 1,
  shareResult: 1,
  fillSlots: 1,
  succeedWorker: 1,
  resizeWorker: 0.7,
  drainWorker: 0.7,
  silenceWorker: 0.5,
  sharePool: 0.7,
};
