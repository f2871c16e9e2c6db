import type { Writable } from "node:stream";

const FRAMES = ["|", "/", "-", "\\"];
const FRAME_MS = 120;

/**
 * A line that tells what is going on while one waits: on a terminal it moves and is replaced, elsewhere each step is a
 * line of its own.
 */
export class ProgressLine {
  readonly #out: Writable & { readonly isTTY?: boolean };
  #timer: NodeJS.Timeout | undefined;
  #step = "";
  #since = 0;
  #frame = 0;

  constructor(out: Writable & { readonly isTTY?: boolean }) {
    this.#out = out;
  }

  /** A new step begins. */
  step(text: string): void {
    if (text === this.#step) return;
    this.#step = text;
    this.#since = performance.now();
    if (this.#out.isTTY !== true) {
      this.#out.write(`${text} …\n`);
      return;
    }
    this.#timer ??= setInterval(() => this.#draw(), FRAME_MS);
    this.#draw();
  }

  /** Something that stays on the screen. */
  say(text: string): void {
    this.#clear();
    this.#out.write(`${text}\n`);
    if (this.#timer !== undefined) this.#draw();
  }

  /** Waiting is over. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#step = "";
    this.#clear();
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const seconds = Math.floor((performance.now() - this.#since) / 1000);
    this.#out.write(`\r\u001b[K${FRAMES[this.#frame]} ${this.#step} … ${seconds > 0 ? `${seconds} s` : ""}`);
  }

  #clear(): void {
    if (this.#out.isTTY === true) this.#out.write("\r\u001b[K");
  }
}
