import { access, constants, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { NodeRefusal } from "./node-error.ts";

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

  /**
   * Makes the folder if it is not there.
   *
   * @throws NodeRefusal when it can't be made or written in: what is seen later could not be noted.
   */
  async prepare(): Promise<void> {
    if (this.#file === undefined) return;
    const directory = dirname(this.#file);
    await this.#orRefuse(async () => {
      await mkdir(directory, { recursive: true });
      await access(directory, constants.W_OK | constants.X_OK);
    });
  }

  /**
   * Notes that the store of that epoch is there, beside those that were noted before.
   *
   * @throws NodeRefusal when it can't be written.
   */
  async note(epoch: string): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    const epochs = new Set([...((await this.#epochs()) ?? []), epoch]);
    await this.#orRefuse(async () => {
      await mkdir(dirname(file), { recursive: true });
      const staged = `${file}.${process.pid}`;
      await writeFile(staged, JSON.stringify({ epochs: [...epochs] }));
      await rename(staged, file);
    });
  }

  async #orRefuse(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (thrown) {
      const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : String(thrown);
      const directory = dirname(this.#file ?? "");
      throw new NodeRefusal(
        `the state directory ${directory} can't be used (${code}); name a folder that this node may write in`,
        { cause: thrown },
      );
    }
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
