import type { Log } from "../base/log.ts";
import type { Projection } from "../store/projection/projection.ts";
import type { Records } from "./records.ts";

/** How many workloads one check compares. */
const SAMPLE_SIZE = 8;

/**
 * Compares a few workloads of the view with the store (contract 5.4). The view may be a moment behind: only what it
 * should have known by its own cursor is a divergence. It is counted, logged, and mended by what was read.
 */
export class Sampling {
  readonly #options: {
    readonly projection: Projection;
    readonly records: Records;
    readonly random: () => number;
    readonly log: Log;
  };
  #divergences = 0;

  constructor(options: {
    readonly projection: Projection;
    readonly records: Records;
    readonly random: () => number;
    readonly log: Log;
  }) {
    this.#options = options;
  }

  /** How many divergences were found since the start. */
  get divergences(): number {
    return this.#divergences;
  }

  /** Runs one check. Fails when the store gives no answer. */
  async check(): Promise<void> {
    const { projection, records, random, log } = this.#options;
    for (const workloadId of projection.index.sample(SAMPLE_SIZE, random)) {
      const seen = projection.index.get(workloadId);
      if (seen === undefined) continue;
      const cursor = projection.position()[seen.shard] ?? 0;
      const resets = projection.resets();
      const shard = records.shard(seen.shard);
      let stored = (await shard.read([seen.key])).get(seen.key);
      // A server that was deposed may answer from before the workload was there.
      if (stored === undefined) stored = (await shard.read([seen.key], { fresh: true })).get(seen.key);
      // A view that was begun anew in the meantime has forgotten what it knew.
      if (projection.resets() !== resets) continue;
      const known = projection.index.get(workloadId)?.revision ?? 0;
      if (stored !== undefined && (stored.revision <= known || stored.revision > cursor)) continue;
      this.#divergences++;
      log.error({ workloadId, known, stored: stored?.revision ?? 0, cursor }, "the view differs from the store");
      await records.fresh(workloadId, { scope: undefined }).catch(() => undefined);
    }
  }
}
