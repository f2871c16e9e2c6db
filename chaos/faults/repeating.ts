/** Something that is done over and over while a fault lasts. */
export class Repeating {
  readonly #ending = new AbortController();
  readonly #running: Promise<void>;

  /** Begins at once; `step` is done again as soon as it has been done. */
  constructor(step: () => Promise<void>) {
    this.#running = this.#run(step);
  }

  /** Answers when the last step has been done. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }

  async #run(step: () => Promise<void>): Promise<void> {
    while (!this.#ending.signal.aborted) await step();
  }
}
