/** This many commits are under way before any has to wait. */
const FEW = 8;
/** The longest that one is held back, ms. */
const HOLD_MAX_MS = 10;

/**
 * Lets commits leave together when there are many. The servers of a replicated stream take what arrives at once in one
 * round of their log, with one write to each disk; what trickles in costs them a round each. So while more than a few
 * are under way, the next ones wait for each other: until they are as many as those under way, or those are few again,
 * or {@link HOLD_MAX_MS} have passed. A commit that is alone, or one of a few, never waits.
 *
 * It changes when something is sent, never what: each commit is still a message, and has an answer, of its own.
 */
export class Departures {
  #waiting: (() => void)[] = [];
  #underWay = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Calls `send` when it is its turn; answers what it answers, and fails as it fails. */
  through<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    if (this.#waiting.length === 0 && this.#underWay < FEW) {
      this.#underWay += 1;
      return this.#run(send);
    }
    return new Promise<void>((leave) => {
      this.#waiting.push(leave);
      this.#look();
    }).then(() => this.#run(send));
  }

  async #run<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    try {
      return await send();
    } finally {
      this.#underWay -= 1;
      if (this.#waiting.length > 0) this.#look();
    }
  }

  #look(): void {
    if (this.#underWay < FEW || this.#waiting.length >= this.#underWay) this.#release();
    else this.#timer ??= setTimeout(() => this.#release(), HOLD_MAX_MS);
  }

  #release(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const leaving = this.#waiting;
    this.#waiting = [];
    this.#underWay += leaving.length;
    for (const leave of leaving) leave();
  }
}
