import type { Draw } from "../draw.ts";
import type { Outcome } from "../history.ts";
import { pause } from "../../src/sdk/backoff.ts";
import type { HttpCall, HttpCaller, HttpTarget } from "./http-caller.ts";

/** How long an unknown outcome is asked after at other nodes. */
const SETTLE_MS = 25_000;

/** Refusals that pass by themselves: the same call may be made again. */
const passing = new Set([
  "AUTHORITY_NOT_READY",
  "AUTHORITY_OVERLOADED",
  "WORKLOAD_STORAGE_FAILURE",
  "WORKLOAD_OUTCOME_UNKNOWN",
  "WORKLOAD_CONFLICT",
  "INTERNAL_ERROR",
]);

/** Whether a call with this outcome need not be repeated. */
export const isFinal = (outcome: Outcome): boolean =>
  outcome.kind === "acknowledged" || (outcome.kind === "refused" && !passing.has(outcome.code));

/** Where callers may go; which of them run changes while the run goes on. */
export class Targets {
  readonly #draw: Draw;
  readonly #caller: HttpCaller;
  readonly #ending: AbortSignal;
  readonly #front: HttpTarget;
  #nodes: readonly HttpTarget[] = [];

  constructor(
    caller: HttpCaller,
    options: { readonly draw: Draw; readonly front: string; readonly ending: AbortSignal },
  ) {
    this.#caller = caller;
    this.#draw = options.draw;
    this.#ending = options.ending;
    this.#front = { node: undefined, url: options.front };
  }

  setNodes(nodes: readonly HttpTarget[]): void {
    this.#nodes = nodes;
  }

  /** A node directly, or the front. */
  any(other?: HttpTarget): HttpTarget {
    if (this.#nodes.length === 0 || this.#draw.chance(0.3)) return this.#front;
    const rest = this.#nodes.filter(({ url }) => url !== other?.url);
    return this.#draw.pick(rest) ?? this.#front;
  }

  /**
   * Makes a call and repeats it, with the same requestId at another node, until its outcome is final. The last outcome
   * when that does not come in time or the traffic ends.
   */
  async settle(call: HttpCall, first = this.any()): Promise<Outcome> {
    const deadline = performance.now() + SETTLE_MS;
    let target = first;
    for (let tries = 0; ; tries++) {
      const outcome = await this.#caller.call(call, target);
      if (isFinal(outcome) || performance.now() > deadline || this.#ending.aborted) return outcome;
      await pause(Math.min(1_000, 30 * 2 ** tries) * (0.5 + this.#draw.share()), this.#ending);
      target = this.any(target);
    }
  }
}
