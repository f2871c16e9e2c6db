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
    const epochs = await this.#epochs();
    return epochs === undefined || epochs.includes(epoch);
  }

  /** Notes that the store of that epoch is there, beside those that were noted before. */
  async note(epoch: string): Promise<void> {
    if (this.#file === undefined) return;
    const epochs = new Set([...((await this.#epochs()) ?? []), epoch]);
    await mkdir(join(this.#file, ".."), { recursive: true });
    const staged = `${this.#file}.${process.pid}`;
    await writeFile(staged, JSON.stringify({ epochs: [...epochs] }));
    await rename(staged, this.#file);
  }

  /** What was noted; `undefined` when it can't be read. */
  async #epochs(): Promise<readonly unknown[] | undefined> {
    if (this.#file === undefined) return [];
    let text: string;
    try {
      text = await readFile(this.#file, "utf8");
    } catch (thrown) {
      return thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT" ? [] : undefined;
    }
    try {
      const note: unknown = JSON.parse(text);
      const epochs = typeof note === "object" && note !== null && "epochs" in note ? note.epochs : undefined;
      return Array.isArray(epochs) ? (epochs as readonly unknown[]) : undefined;
    } catch {
      return undefined;
    }
  }
}
