import { assert } from "../../base/assert.ts";
import { monotonicMs } from "../../base/clock.ts";
import { Resolution } from "../resolution.ts";
import type { AttemptReply, ResolutionStep } from "../resolution.ts";
import { StoreUnavailable } from "../store.ts";
import type { Commit, CommitOutcome } from "../store.ts";
import { attemptCommit } from "./attempt.ts";
import type { StoreConnection } from "./connection.ts";
import { Departures } from "./departures.ts";
import { pause, repeatDelayMs } from "./pause.ts";
import { prepareCommit } from "./prepared-commit.ts";
import type { PreparedCommit } from "./prepared-commit.ts";
import type { Reader } from "./reader.ts";

const COMMIT_DEADLINE_MS = 10_000;
/** An answer that takes longer than this will hardly come; the repeat finds out. */
const ATTEMPT_TIMEOUT_MS = 2000;
/** Not worth an attempt: it would end in doubt almost surely. */
const ATTEMPT_LEAST_MS = 5;

/** What a commit took, for metrics. */
export interface CommitReport {
  readonly outcome: CommitOutcome["kind"];
  readonly attempts: number;
  readonly elapsedMs: number;
}

export interface CommitterOptions {
  readonly prefix: string;
  readonly carrierKey: string;
  readonly reader: Reader;
  readonly onCommitted: (revision: number) => void;
  readonly onReport: ((report: CommitReport) => void) | undefined;
}

/**
 * Commits to one shard until the outcome is known (contract 5.3). The first attempt is all there is to a good day. Else
 * the identical commit is repeated and looked for, as {@link Resolution} says, until there is proof or the deadline passes.
 */
export class Committer {
  readonly #connection: StoreConnection;
  readonly #options: CommitterOptions;
  readonly #departures = new Departures();

  constructor(connection: StoreConnection, options: CommitterOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** Never rejects. */
  async commit(commit: Commit, deadlineMs = COMMIT_DEADLINE_MS): Promise<CommitOutcome> {
    assert(commit.puts.length > 0, "a commit has a put");
    const startedAt = monotonicMs();
    const prepared = prepareCommit(commit, {
      prefix: this.#options.prefix,
      carrierKey: this.#options.carrierKey,
      messageBytesMax: this.#connection.messageBytesMax,
    });
    if (typeof prepared === "string") return { kind: "unacceptable", cause: prepared };
    const run = new Run(this.#connection, this.#options.reader, {
      commit,
      prepared,
      departures: this.#departures,
      end: startedAt + deadlineMs,
    });
    const outcome = await run.untilKnown();
    if (outcome.kind === "committed") for (const revision of outcome.revisions) this.#options.onCommitted(revision);
    this.#options.onReport?.({
      outcome: outcome.kind,
      attempts: run.attempts,
      elapsedMs: monotonicMs() - startedAt,
    });
    return outcome;
  }
}

/** One commit on its way. */
class Run {
  attempts = 0;
  readonly #connection: StoreConnection;
  readonly #reader: Reader;
  readonly #commit: Commit;
  readonly #prepared: PreparedCommit;
  readonly #departures: Departures;
  readonly #end: number;

  constructor(
    connection: StoreConnection,
    reader: Reader,
    what: {
      readonly commit: Commit;
      readonly prepared: PreparedCommit;
      readonly departures: Departures;
      readonly end: number;
    },
  ) {
    this.#connection = connection;
    this.#reader = reader;
    this.#commit = what.commit;
    this.#prepared = what.prepared;
    this.#departures = what.departures;
    this.#end = what.end;
  }

  async untilKnown(): Promise<CommitOutcome> {
    const first = await this.#attempt();
    if (first.kind === "stored") return { kind: "committed", revisions: first.revisions };
    const resolution = new Resolution(this.#commit);
    let step = resolution.onReply(first);
    while (step.next !== "answer") {
      await pause(Math.min(repeatDelayMs(step.failures), Math.max(0, this.#leftMs())));
      if (this.#connection.closed || this.#leftMs() < ATTEMPT_LEAST_MS) return resolution.onDeadline();
      step =
        step.next === "attempt" ? resolution.onReply(await this.#attempt()) : await this.#look(resolution, step.fresh);
    }
    return step.outcome;
  }

  async #attempt(): Promise<AttemptReply> {
    if (!this.#connection.connected && !(await this.#connection.whenConnected(this.#leftMs())))
      return { kind: "unreached", cause: "not connected" };
    return this.#departures.through(() => this.#send());
  }

  async #send(): Promise<AttemptReply> {
    // What is sent while there is no connection would be taken by the client, and lost or sent later.
    if (!this.#connection.connected) return { kind: "unreached", cause: "not connected" };
    const leftMs = this.#leftMs();
    if (leftMs < ATTEMPT_LEAST_MS) return { kind: "unreached", cause: "no time left" };
    this.attempts += 1;
    return attemptCommit(this.#connection, this.#prepared, Math.min(ATTEMPT_TIMEOUT_MS, leftMs));
  }

  async #look(resolution: Resolution, fresh: boolean): Promise<ResolutionStep> {
    try {
      const entries = await this.#reader.read(resolution.keys(), {
        fresh,
        deadlineMs: this.#leftMs(),
      });
      return resolution.onSnapshot(entries, fresh);
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      return resolution.onReadFailed(thrown.message);
    }
  }

  #leftMs(): number {
    return this.#end - monotonicMs();
  }
}
