import type { FaultWeights } from "./faults/schedule.ts";
import type { SystemShape } from "./system/setting.ts";
import { allPlays, type PlayWeights } from "./traffic/plays.ts";

/** A kind of run: the system, what goes on in it, and what is done to it. */
export interface Scenario {
  /** A sentence for the person who chooses. */
  readonly doc: string;
  readonly shape: SystemShape;
  readonly plays: PlayWeights;
  readonly faults: FaultWeights;
  /** How many faults may be at work at once, and the calm between two of one lane, ms. */
  readonly faultLanes: number;
  readonly calmMs: readonly [least: number, most: number];
  /** How many plays run at once. */
  readonly trafficLanes: number;
  /** The longest break between two plays of a lane, ms. */
  readonly breakMs: number;
}

const three: SystemShape = { nodes: 3, nodesMax: 3, shards: 1, smallDisk: false };
const usual = {
  shape: three,
  plays: allPlays,
  faultLanes: 2,
  calmMs: [500, 4_000],
  trafficLanes: 8,
  breakMs: 300,
} as const;

const every: FaultWeights = {
  killNode: 3,
  stopNode: 1,
  pauseNode: 2,
  killWorker: 2,
  stopWorker: 1,
  pauseWorker: 2,
  killServer: 2,
  stopServer: 1,
  pauseServer: 2,
  killAllServers: 0.7,
  isolateServer: 3,
  cutOneWay: 1,
  cutPair: 1,
  slowRoutes: 1,
  cutClient: 2,
  loseMessages: 2,
  repeatMessages: 1,
  slowClient: 1,
  loseHttpAnswers: 2,
  shiftNodeClock: 1.5,
  shiftWorkerClock: 0.7,
  rollNodes: 0.5,
  scaleNodes: 0.5,
  deleteConsumers: 1.5,
  stepDown: 1,
  fillDisk: 0.7,
  slowDisk: 1,
};

/** Every scenario by its name. */
export const scenarios: { readonly [name: string]: Scenario } = {
  mixed: {
    ...usual,
    doc: "everything races, and everything fails",
    shape: { nodes: 3, nodesMax: 5, shards: 1, smallDisk: true },
    faults: every,
  },
  "leader-kills": {
    ...usual,
    doc: "nats-servers are killed, paused and stopped, the leaders above all, and all at once",
    faults: { killServer: 4, pauseServer: 3, stopServer: 1, killAllServers: 1, stepDown: 2, loseHttpAnswers: 1 },
    faultLanes: 1,
  },
  partitions: {
    ...usual,
    doc: "the network between the nats-servers, and to their clients, is cut in every way and heals in pieces",
    faults: {
      isolateServer: 6,
      cutOneWay: 2,
      cutPair: 2,
      slowRoutes: 1,
      cutClient: 2,
      loseMessages: 2,
      repeatMessages: 2,
    },
    calmMs: [1_000, 6_000],
  },
  clocks: {
    ...usual,
    doc: "clocks of nodes and workers are off by minutes, and step",
    faults: { shiftNodeClock: 5, shiftWorkerClock: 2, killNode: 1, pauseNode: 1, killServer: 1 },
  },
  pauses: {
    ...usual,
    doc: "nodes, workers and servers stand still for longer than a lease",
    faults: { pauseNode: 4, pauseWorker: 4, pauseServer: 3 },
    faultLanes: 3,
  },
  disk: {
    ...usual,
    doc: "a slow disk, and a full one",
    shape: { ...three, smallDisk: true },
    faults: { fillDisk: 3, slowDisk: 4, killServer: 1, loseHttpAnswers: 1 },
  },
  approvals: {
    ...usual,
    doc: "verdicts race each other, claims and the approval's deadline, while nodes fail",
    plays: { raceApproval: 6, gateWork: 3, admitOneKey: 1 },
    faults: { killNode: 2, pauseNode: 2, killServer: 1, isolateServer: 2, loseHttpAnswers: 3, cutClient: 2 },
  },
  drain: {
    ...usual,
    doc: "workers come and go: killed, stopped in order, paused, cut off",
    plays: { fillQueue: 4, disturbWork: 3, shareQueue: 2, chainWork: 1, delayWork: 1, fillSlots: 1, drainWorker: 1 },
    faults: { killWorker: 4, stopWorker: 4, pauseWorker: 3, cutClient: 3, loseMessages: 2 },
    faultLanes: 3,
  },
  rolling: {
    ...usual,
    doc: "nodes and servers are restarted in turn, as for an upgrade",
    faults: { rollNodes: 4, stopNode: 1, stopServer: 2, deleteConsumers: 2 },
    faultLanes: 1,
    calmMs: [500, 2_000],
  },
  registry: {
    ...usual,
    doc: "workers of the registry are claimed for through all nodes, superseded, resized, drained, silenced and pooled",
    shape: { nodes: 3, nodesMax: 4, shards: 1, smallDisk: false },
    plays: {
      fillSlots: 4,
      succeedWorker: 3,
      resizeWorker: 3,
      drainWorker: 3,
      silenceWorker: 2,
      sharePool: 3,
      raceEndings: 1,
      shareQueue: 1,
      fillQueue: 1,
    },
    faults: { ...every, fillDisk: 0 },
  },
  grants: {
    ...usual,
    doc: "two tenants of equal names under grants: revoked in flight, keys rotated, while nodes come and go",
    shape: { ...three, secure: true },
    plays: {},
    faults: {
      rotateKeys: 3,
      killNode: 2,
      pauseNode: 2,
      stopNode: 1,
      rollNodes: 0.5,
      cutClient: 2,
      isolateServer: 2,
      killWorker: 1,
    },
  },
  scale: {
    ...usual,
    doc: "from two nodes to five and back",
    shape: { nodes: 2, nodesMax: 5, shards: 2, smallDisk: false },
    faults: { scaleNodes: 5, killNode: 1, killServer: 1, cutClient: 1 },
  },
};
