import { pause } from "../../src/sdk/backoff.ts";
import type { Recorder } from "../recorder.ts";

/** A process that can be ended and started again, as `cluster/` makes them. */
export interface Unit {
  readonly name: string;
  readonly running: boolean;
  readonly exited: Promise<unknown> | undefined;
  start(): Promise<unknown>;
  kill(signal: NodeJS.Signals): Promise<unknown>;
  pause(): Promise<void>;
  resume(): void;
}

const RESTART_MS = 500;
const START_TRIES_MAX = 20;

/**
 * A process that is kept running, as an operator's supervisor would: when it ends and nobody asked for it, that is
 * recorded and it is started again.
 */
export class Kept {
  readonly name: string;
  readonly #unit: Unit;
  readonly #recorder: Recorder;
  #wanted = false;
  /** Counts starts, so that the end of an earlier process is not taken for that of the present one. */
  #generation = 0;
  /** How often it ended though nobody asked for it. */
  unexpectedEnds = 0;

  constructor(unit: Unit, recorder: Recorder) {
    this.name = unit.name;
    this.#unit = unit;
    this.#recorder = recorder;
  }

  /** Whether it is meant to run. */
  get wanted(): boolean {
    return this.#wanted;
  }

  /** Starts it if it does not run; tries again while the machine does not let it. */
  async up(): Promise<void> {
    if (this.#wanted) return;
    this.#wanted = true;
    await this.#start();
  }

  /** Ends it, and lets it be. Answers when it has ended; a paused one is killed at once by SIGKILL alone. */
  async down(signal: NodeJS.Signals, graceMs = 15_000): Promise<void> {
    this.#wanted = false;
    const timer = setTimeout(() => void this.#unit.kill("SIGKILL"), graceMs);
    await this.#unit.kill(signal);
    clearTimeout(timer);
  }

  pause(): Promise<void> {
    return this.#unit.pause();
  }

  resume(): void {
    this.#unit.resume();
  }

  async #start(): Promise<void> {
    const generation = ++this.#generation;
    for (let tries = 1; this.#wanted && generation === this.#generation; tries++) {
      try {
        await this.#unit.start();
        void this.#watch(generation);
        return;
      } catch (thrown) {
        if (tries >= START_TRIES_MAX) throw thrown;
        await pause(RESTART_MS);
      }
    }
  }

  async #watch(generation: number): Promise<void> {
    const exit = await this.#unit.exited;
    if (!this.#wanted || generation !== this.#generation) return;
    this.unexpectedEnds += 1;
    this.#recorder.fault({ fault: "ended-by-itself", target: this.name, phase: "begin", details: exit });
    await pause(RESTART_MS);
    if (!this.#wanted || generation !== this.#generation) return;
    await this.#start();
    this.#recorder.fault({ fault: "ended-by-itself", target: this.name, phase: "end" });
  }
}
