import type { Draw } from "../draw.ts";
import { pause } from "../../src/sdk/backoff.ts";
import type { Recorder } from "../recorder.ts";
import type { System } from "../system/system.ts";
import type { PlannedFault, Planner } from "./fault.ts";
import { rotateKeys } from "./keys.ts";
import * as network from "./network.ts";
import * as nodes from "./nodes.ts";
import * as processes from "./processes.ts";
import * as store from "./store.ts";

/** Every kind of fault by its name. */
export const planners = {
  killNode: processes.killNode,
  stopNode: processes.stopNode,
  pauseNode: processes.pauseNode,
  killWorker: processes.killWorker,
  stopWorker: processes.stopWorker,
  pauseWorker: processes.pauseWorker,
  killServer: processes.killServer,
  stopServer: processes.stopServer,
  pauseServer: processes.pauseServer,
  killAllServers: processes.killAllServers,
  isolateServer: network.isolateServer,
  cutOneWay: network.cutOneWay,
  cutPair: network.cutPair,
  slowRoutes: network.slowRoutes,
  cutClient: network.cutClient,
  loseMessages: network.loseMessages,
  repeatMessages: network.repeatMessages,
  slowClient: network.slowClient,
  loseHttpAnswers: network.loseHttpAnswers,
  shiftNodeClock: nodes.shiftNodeClock,
  shiftWorkerClock: nodes.shiftWorkerClock,
  rollNodes: nodes.rollNodes,
  scaleNodes: nodes.scaleNodes,
  deleteConsumers: store.deleteConsumers,
  stepDown: store.stepDown,
  fillDisk: store.fillDisk,
  slowDisk: store.slowDisk,
  rotateKeys,
} as const satisfies { readonly [name: string]: Planner };

export type FaultName = keyof typeof planners;
export type FaultWeights = { readonly [Name in FaultName]?: number };

export interface ScheduleOptions {
  readonly system: System;
  readonly draw: Draw;
  readonly recorder: Recorder;
  readonly weights: FaultWeights;
  /** How many faults may be at work at once. */
  readonly lanes: number;
  /** Between two faults of a lane, ms. */
  readonly calmMs: readonly [least: number, most: number];
  readonly say: (text: string) => void;
}

/** Makes faults until it is told to stop; every one that was begun is ended. */
export class FaultSchedule {
  readonly #options: ScheduleOptions;
  readonly #taken = new Set<string>();
  readonly #ending = new AbortController();
  readonly #lanes: Promise<unknown>;
  /** How often each was made. */
  readonly counts = new Map<string, number>();

  constructor(options: ScheduleOptions) {
    this.#options = options;
    this.#lanes = Promise.all(
      Array.from({ length: options.lanes }, (_, index) => this.#lane(options.draw.child(`faults-${index}`))),
    );
  }

  /** Heals everything; answers when all is healed. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#lanes;
  }

  async #lane(draw: Draw): Promise<void> {
    const { weights, system, calmMs, say } = this.#options;
    const { signal } = this.#ending;
    const names = Object.keys(weights) as FaultName[];
    const choices = names.map((item) => ({ item, weight: weights[item] ?? 0 }));
    while (!signal.aborted) {
      await pause(draw.whole(...calmMs), signal);
      const name = draw.weighted(choices);
      if (signal.aborted || name === undefined) return;
      const planner: Planner = planners[name];
      const planned = await planner({ system, draw });
      if (planned === undefined || planned.locks.some((lock) => this.#taken.has(lock))) continue;
      for (const lock of planned.locks) this.#taken.add(lock);
      try {
        await this.#make(planned, signal);
      } catch (thrown) {
        say(
          `fault ${planned.fault} at ${planned.target}: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
        );
      } finally {
        for (const lock of planned.locks) this.#taken.delete(lock);
      }
    }
  }

  async #make(planned: PlannedFault, signal: AbortSignal): Promise<void> {
    const { recorder } = this.#options;
    const { fault, target } = planned;
    recorder.fault({ fault, target, phase: "begin" });
    this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
    let details: unknown;
    try {
      details = await planned.begin();
      await pause(planned.lastMs, signal);
    } finally {
      await planned.end();
      recorder.fault({ fault, target, phase: "end", ...(details === undefined ? {} : { details }) });
    }
  }
}
