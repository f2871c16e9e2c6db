import { execFile } from "node:child_process";
import { copyFile, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { authorityProgram } from "../../cluster/authority-program.ts";
import { CURRENT_KEY } from "./issuer.ts";

const run = promisify(execFile);

async function mandate(...args: readonly string[]): Promise<string> {
  const { program, arguments: before } = authorityProgram();
  return (await run(program, [...before, ...args])).stdout;
}

/** The keys of a run in secure mode, made with the product's own commands: private ones with the issuer, public ones with the nodes. */
export class KeyDesk {
  /** The issuer's folder: see `Issuer`. */
  readonly folder: string;
  #made = 0;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Makes the first key. */
  static async open(folder: string): Promise<KeyDesk> {
    const desk = new KeyDesk(folder);
    await mkdir(desk.published, { recursive: true });
    await desk.publish();
    await desk.use();
    return desk;
  }

  /** Where nodes find the public keys. */
  get published(): string {
    return join(this.folder, "public");
  }

  /** Makes another key and publishes it. Nothing is signed by it yet. */
  async publish(): Promise<void> {
    this.#made += 1;
    const file = join(this.folder, `${this.#name}.json`);
    await mandate("keys", "new", "--out", file);
    const staged = join(this.folder, "public.new");
    await writeFile(staged, await mandate("keys", "jwks", file));
    await rename(staged, join(this.published, `${this.#name}.json`));
  }

  /** From now on grants are signed by the newest key. */
  async use(): Promise<void> {
    const staged = join(this.folder, `${CURRENT_KEY}.new`);
    await copyFile(join(this.folder, `${this.#name}.json`), staged);
    await rename(staged, join(this.folder, CURRENT_KEY));
  }

  /** Takes all keys but the newest away: what they signed is good no more. */
  async retire(): Promise<void> {
    for (const name of await readdir(this.published))
      if (name !== `${this.#name}.json`) await rm(join(this.published, name));
  }

  get #name(): string {
    return `key-${this.#made}`;
  }
}
