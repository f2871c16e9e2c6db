import { closedLoop, type Figures, type LoopEnd } from "./figures.ts";
import type { RawStore } from "./raw-store.ts";
import type { RecordedCommit } from "./recorded-commits.ts";
import { keyOf } from "./sample-work.ts";

/** The commits of one piece of work, as they were recorded. */
export interface RecordedLife {
  readonly admit: RecordedCommit;
  readonly claim: RecordedCommit;
  /** A claim whose request can be repeated. */
  readonly claimRequested: RecordedCommit;
  readonly heartbeat: RecordedCommit;
  readonly complete: RecordedCommit;
  /** By a worker of the registry: with its slot. */
  readonly claimRegistered: RecordedCommit;
  readonly completeRegistered: RecordedCommit;
}

export interface Load {
  /** Tells this load's keys from all others'. */
  readonly run: string;
  readonly inFlight: number;
  readonly end: LoopEnd;
}

/** Three phases over the same work: all is admitted, then all is claimed, then all is completed. */
export interface Phases {
  readonly admit: Figures;
  readonly claim: Figures;
  readonly complete: Figures;
}

export async function rawPhases(
  raw: RawStore,
  life: RecordedLife,
  load: Load & { readonly requested: boolean },
): Promise<Phases> {
  const revisions: number[] = [];
  const admit = await closedLoop(load, async (_, index) => {
    revisions[index] = await raw.write(life.admit, keyOf(load.run, index), 0);
  });
  const phase = (commit: RecordedCommit): Promise<Figures> =>
    closedLoop({ inFlight: load.inFlight, end: { operations: revisions.length } }, async (_, index) => {
      revisions[index] = await raw.write(commit, keyOf(load.run, index), revisions[index] ?? 0);
    });
  const claim = await phase(load.requested ? life.claimRequested : life.claim);
  return { admit, claim, complete: await phase(life.complete) };
}

/** The floor of a whole life: three commits of one key, one after the other. */
export const rawLives = (raw: RawStore, life: RecordedLife, load: Load): Promise<Figures> =>
  closedLoop(load, async (_, index) => {
    const name = keyOf(load.run, index);
    const admitted = await raw.write(life.admit, name, 0);
    await raw.write(life.complete, name, await raw.write(life.claim, name, admitted));
  });

/** The same with the commits of a worker of the registry. */
export const rawRegisteredLives = (raw: RawStore, life: RecordedLife, load: Load): Promise<Figures> =>
  rawLives(raw, { ...life, claim: life.claimRegistered, complete: life.completeRegistered }, load);

/** Writes each lane's own key over and over, as heartbeats do. */
export async function rawHeartbeats(raw: RawStore, life: RecordedLife, load: Load): Promise<Figures> {
  const revisions = await Promise.all(
    Array.from({ length: load.inFlight }, (_, lane) => raw.write(life.claim, keyOf(load.run, lane), 0)),
  );
  return closedLoop(load, async (lane) => {
    revisions[lane] = await raw.write(life.heartbeat, keyOf(load.run, lane), revisions[lane] ?? 0);
  });
}
