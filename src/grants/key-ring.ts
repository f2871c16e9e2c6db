import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../base/log.ts";
import { err, ok, type Result } from "../base/result.ts";
import { sha256Hex } from "../base/hash.ts";
import { keysByKid, readKeyFile, renderJwks, type PublicKey } from "./public-keys.ts";

/** How often the files are looked at, ms. */
const LOOK_EVERY_MS = 1_000;

/** The keys can't be used as they are; the message names the file and the reason, never a key. */
export class KeyRingError extends Error {
  override readonly name = "KeyRingError";
}

interface Loaded {
  readonly keys: ReadonlyMap<string, PublicKey>;
  /** Of everything that was read: unchanged files need no second look. */
  readonly digest: string;
  /** Nothing has this path. */
  readonly missing: boolean;
}

const isMissing = (thrown: unknown): boolean =>
  thrown instanceof Error && "code" in thrown && (thrown.code === "ENOENT" || thrown.code === "ENOTDIR");

/** The key files of a path: the file itself, or every `*.json` and `*.jwk` of a folder. */
async function filesOf(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await readdir(path)).filter((name) => /\.(?:json|jwks?)$/.test(name) && !name.startsWith("."));
  return names.sort().map((name) => join(path, name));
}

async function load(path: string): Promise<Result<Loaded, string>> {
  const found: PublicKey[] = [];
  const texts: string[] = [];
  let missing = false;
  try {
    for (const file of await filesOf(path)) {
      const bytes = await readFile(file);
      texts.push(file, bytes.toString("latin1"));
      const read = await readKeyFile(bytes);
      if (!read.ok) return err(`${file} ${read.error}`);
      found.push(...read.value);
    }
  } catch (thrown) {
    // What is gone holds no keys; it is looked for again.
    if (!isMissing(thrown)) return err(`${path} can't be read`);
    if (texts.length > 0) return err(`${path} changed while it was read`);
    missing = true;
  }
  const keys = keysByKid(found);
  return keys.ok ? ok({ keys: keys.value, digest: sha256Hex(JSON.stringify(texts)), missing }) : keys;
}

/**
 * The keys that grants are verified with, as files say it now: several at once, looked at every second, so that a key is
 * added or taken away without a restart. A key whose file is gone, or holds it no more, verifies nothing from then on.
 * Files that can't be read or understood change nothing: the keys stay as they were, and the log says why.
 */
export class KeyRing {
  readonly #path: string;
  readonly #log: Log;
  readonly #listeners = new Set<() => void>();
  #loaded: Loaded;
  #fault: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #loading: Promise<void> = Promise.resolve();

  private constructor(options: { readonly path: string; readonly log: Log }, loaded: Loaded) {
    this.#path = options.path;
    this.#log = options.log;
    this.#loaded = loaded;
  }

  /**
   * Reads the keys, and goes on looking at them until {@link close}.
   *
   * @throws KeyRingError when there is none, or a file is not good.
   */
  static async open(options: {
    readonly path: string;
    readonly log: Log;
    readonly everyMs?: number;
  }): Promise<KeyRing> {
    const loaded = await load(options.path);
    if (!loaded.ok) throw new KeyRingError(loaded.error);
    if (loaded.value.keys.size === 0)
      throw new KeyRingError(`${options.path} ${loaded.value.missing ? "does not exist" : "holds no key"}`);
    const ring = new KeyRing(options, loaded.value);
    options.log.info({ kids: [...loaded.value.keys.keys()] }, "grants are verified with these keys");
    ring.#timer = setInterval(() => void ring.reload(), options.everyMs ?? LOOK_EVERY_MS);
    ring.#timer.unref();
    return ring;
  }

  /** The key of a name, as long as it is in the files. */
  find(kid: string): PublicKey | undefined {
    return this.#loaded.keys.get(kid);
  }

  /** The public keys, as anybody may know them (RFC 7517). */
  jwks(): string {
    return renderJwks([...this.#loaded.keys.values()]);
  }

  /** Told whenever the keys have become others. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Looks at the files now; fulfilled when what they say counts. Never rejects. */
  reload(): Promise<void> {
    this.#loading = this.#loading.then(() => this.#look());
    return this.#loading;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const loaded = await load(this.#path);
    if (!loaded.ok) {
      if (loaded.error !== this.#fault)
        this.#log.error({ reason: loaded.error }, "the key files are not good: the keys stay as they were");
      this.#fault = loaded.error;
      return;
    }
    const wasFaulty = this.#fault !== undefined;
    this.#fault = undefined;
    if (loaded.value.digest === this.#loaded.digest) {
      if (wasFaulty) this.#log.info({}, "the key files are good again: the keys are the same");
      return;
    }
    this.#loaded = loaded.value;
    const kids = [...loaded.value.keys.keys()];
    if (kids.length === 0) this.#log.warn({}, "no key is left: every grant is refused");
    else this.#log.info({ kids }, "the keys have changed");
    for (const listener of this.#listeners) listener();
  }
}
