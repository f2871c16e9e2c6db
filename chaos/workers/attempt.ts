import { sha256Hex } from "../../src/base/hash.ts";
import type { Json } from "../../src/base/json.ts";
import { WorkloadFailure } from "../../src/sdk/workload-failure.ts";
import { pause } from "../../src/sdk/backoff.ts";
import type { Recorder } from "../recorder.ts";
import type { WorkerSetting, WorkInput } from "./setting.ts";

/** What is needed to write down an attempt. */
export interface Held {
  readonly workloadId: string;
  readonly workerId: string;
  readonly fencingToken: number;
}

/** The id of the claim that a token stands for (contract 1.3): a handler is not told it. */
export const claimIdOf = ({ workloadId, fencingToken, workerId }: Held): string =>
  `claim_${sha256Hex(`${workloadId}:${fencingToken}:${workerId}`).slice(0, 20)}`;

/** Notes when the work of an attempt really begins and ends in this process. */
export class AttemptNotes {
  readonly #recorder: Recorder;
  readonly #worker: string;

  constructor(recorder: Recorder, worker: string) {
    this.#recorder = recorder;
    this.#worker = worker;
  }

  note(event: "handed" | "began" | "ended" | "abandoned", held: Held): void {
    const { workloadId, workerId, fencingToken } = held;
    this.#recorder.work({
      event,
      worker: this.#worker,
      workerId,
      workloadId,
      claimId: claimIdOf(held),
      fencingToken,
    });
  }
}

const isInput = (input: Json): boolean =>
  typeof input === "object" && input !== null && "act" in input && "ms" in input;

/** The input as a workload of this harness has it; anything else asks for nothing but an end. */
export const readInput = (input: Json): WorkInput =>
  isInput(input) ? (input as unknown as WorkInput) : { act: "finish", ms: 0 };

/** What the work itself may do, whichever way its worker was made. */
export interface WorkTools {
  readonly attempt: number;
  readonly fencingToken: number;
  readonly signal: AbortSignal;
  readonly checkpoint: (state: Json) => Promise<unknown>;
}

/** Does what the input asks for. Throws a WorkloadFailure when it asks for one. */
export async function doWork(input: WorkInput, tools: WorkTools, setting: WorkerSetting): Promise<Json> {
  const { attempt, fencingToken, signal } = tools;
  const output = { attempt, fencingToken, by: setting.name };
  if (setting.finishing) return output;
  if (input.act === "block") {
    const until = performance.now() + input.ms;
    while (performance.now() < until);
    return output;
  }
  const patience = input.act === "ignore" ? undefined : signal;
  const steps = input.act === "steps" ? (input.steps ?? 1) : 0;
  for (let step = 0; step < steps; step++) {
    await pause(input.ms / (steps + 1), patience);
    if (signal.aborted) break;
    await tools.checkpoint({ step, attempt });
  }
  await pause(input.ms / (steps + 1), patience);
  if (patience?.aborted === true) throw signal.reason;
  if (input.act === "fail" && attempt <= (input.failures ?? 1))
    throw new WorkloadFailure(
      input.failureKind ?? "timeout",
      `asked to fail, attempt ${attempt}`,
      input.effect === undefined ? {} : { effect: input.effect },
    );
  return output;
}
