import type { Draw } from "../draw.ts";
import type { System } from "../system/system.ts";

/** What faults are made of: the system, and a draw. */
export interface World {
  readonly system: System;
  readonly draw: Draw;
}

/** A fault that can be made now: what it does, to whom, and how it is undone. */
export interface PlannedFault {
  readonly fault: string;
  readonly target: string;
  /** Names of what it touches: no other fault touches any of them meanwhile. */
  readonly locks: readonly string[];
  /** From its beginning to its end, ms. */
  readonly lastMs: number;
  /** Makes it; answers what is worth recording. */
  begin(): Promise<unknown>;
  /** Undoes it. Called once, whatever became of {@link begin}. */
  end(): Promise<unknown>;
}

/** Draws a fault of one kind; `undefined` when there is nobody to do it to. */
export type Planner = (world: World) => Promise<PlannedFault | undefined> | PlannedFault | undefined;
