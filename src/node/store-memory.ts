import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * What a node remembers of its store over restarts: that it has seen it. A node that has never makes an empty store in
 * the place of one that is missing (contract 5.6).
 */
export class StoreMemory {
  readonly #file: string | undefined;

  /** Without a directory nothing is remembered. */
  constructor(directory: string | undefined) {
    this.#file = directory === undefined ? undefined : join(directory, "store-seen.json");
  }

  /** Where it is noted. */
  get file(): string | undefined {
    return this.#file;
  }

  /** Whether this node has seen the store of that epoch. A note that can't be read counts as seen: nothing is made then. */
  async hasSeen(epoch: string): Promise<boolean> {
    if (this.#file === undefined) return false;
    let text: string;
    try {
      text = await readFile(this.#file, "utf8");
    } catch (thrown) {
      return !(thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT");
    }
    try {
      const note: unknown = JSON.parse(text);
      const seen = typeof note === "object" && note !== null && "epochs" in note ? note.epochs : undefined;
      return !Array.isArray(seen) || seen.includes(epoch);
    } catch {
      return true;
    }
  }

  /** Notes that the store of that epoch is there. */
  async note(epoch: string): Promise<void> {
    if (this.#file === undefined) return;
    await mkdir(join(this.#file, ".."), { recursive: true });
    const staged = `${this.#file}.${process.pid}`;
    await writeFile(staged, JSON.stringify({ epochs: [epoch] }));
    await rename(staged, this.#file);
  }
}
