import { execFile } from "node:child_process";
import { mkdir, statfs } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

const SIZE_BYTES = 2 * 1024 ** 3;
/** So little is left when it is full that hardly a record fits; a little more each time that the server was quicker. */
const LEFT_BYTES = [4_096, 16_384, 65_536, 262_144] as const;

/**
 * A file system of its own for one server's data, in memory, that can be made full at any moment by shrinking it to what
 * it holds. Only root may mount one.
 */
export class SmallDisk {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /** Mounts it; `undefined`, with the reason told, where that can't be. */
  static async make(path: string, say: (text: string) => void): Promise<SmallDisk | undefined> {
    await mkdir(path, { recursive: true });
    try {
      await run("mount", ["-t", "tmpfs", "-o", `size=${SIZE_BYTES}`, "mandate-chaos", path]);
      return new SmallDisk(path);
    } catch (thrown) {
      say(`no full-disk faults: ${thrown instanceof Error ? thrown.message.trim() : String(thrown)}`);
      return undefined;
    }
  }

  /** Nothing more fits from now on. Throws when the server writes more quickly than its disk can be made small. */
  async fill(): Promise<void> {
    let refused: unknown;
    for (const left of LEFT_BYTES) {
      const { blocks, bfree, bsize } = await statfs(this.#path);
      try {
        await this.#resize((blocks - bfree) * bsize + left);
        return;
      } catch (thrown) {
        // It holds more by now than the size that was asked for.
        refused = thrown;
      }
    }
    throw refused;
  }

  /** There is room again. */
  release(): Promise<void> {
    return this.#resize(SIZE_BYTES);
  }

  /** Takes it away, with all that it holds. */
  async remove(): Promise<void> {
    await run("umount", ["-l", this.#path]).catch(() => undefined);
  }

  async #resize(bytes: number): Promise<void> {
    await run("mount", ["-o", `remount,size=${bytes}`, this.#path]);
  }
}
