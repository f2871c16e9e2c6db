import type { Entry, FollowState, Follower, Shard } from "../../src/store/store.ts";

/** Follows a shard, keeps what it is told, and lets a test wait for it without polling. */
export class Recorder {
  readonly entries: Entry[] = [];
  readonly states: FollowState[] = [];
  readonly follower: Follower;
  readonly #waiting = new Set<() => void>();

  constructor(shard: Shard, families: readonly string[]) {
    this.follower = shard.follow({
      families,
      onEntry: (entry) => {
        this.entries.push(entry);
        this.#look();
      },
      onState: (state) => {
        this.states.push(state);
        this.#look();
      },
    });
  }

  /** Resolves as soon as `holds` is true of what was recorded; a test that waits in vain runs into its time limit. */
  async until(holds: (recorder: Recorder) => boolean): Promise<void> {
    if (holds(this)) return;
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (!holds(this)) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
  }

  async current(): Promise<void> {
    await this.until(() => this.states.at(-1)?.kind === "current");
  }

  /** The values delivered for one key, in order, as text. */
  values(key: string): string[] {
    const decoder = new TextDecoder();
    return this.entries.filter((entry) => entry.key === key).map((entry) => decoder.decode(entry.value));
  }

  #look(): void {
    for (const look of this.#waiting) look();
  }
}
