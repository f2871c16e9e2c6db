import { sha256Hex } from "../base/hash.ts";
import type { Result } from "../base/result.ts";
import type { Refusal } from "../core/errors.ts";
import type { KeyRing } from "./key-ring.ts";
import { TOKEN_BYTES_MAX } from "./token-format.ts";
import { verifyToken, type SignedGrant } from "./verify-token.ts";

/** Most tokens whose signatures are remembered as good. */
const REMEMBERED_MAX = 4_096;

/** A grant, and whether the keys that it was verified by are still in the ring. */
export type Verified = Result<SignedGrant & { keysStand(): boolean }, Refusal>;

/**
 * Verifies tokens by a key ring, and remembers those that are good by their digest (contract 4.2). What is remembered is
 * what was signed and nothing else: time, revocation and reach are decided anew at every call. A change of the keys
 * forgets everything.
 */
export class GrantVerifier {
  readonly #keys: KeyRing;
  readonly #rememberedMax: number;
  readonly #good = new Map<string, Verified>();
  #generation = 0;

  constructor(keys: KeyRing, rememberedMax: number = REMEMBERED_MAX) {
    this.#keys = keys;
    this.#rememberedMax = rememberedMax;
    keys.onChange(() => {
      this.#generation += 1;
      this.#good.clear();
    });
  }

  /** The grant of a token; never rejects. */
  async verify(token: string): Promise<Verified> {
    // What is longer than any grant is refused before it costs anything, its digest either.
    const digest = token.length > TOKEN_BYTES_MAX ? "" : sha256Hex(token);
    const known = this.#good.get(digest);
    if (known !== undefined) {
      // The one that was used last is forgotten last.
      this.#good.delete(digest);
      this.#good.set(digest, known);
      return known;
    }
    const generation = this.#generation;
    const used = new Map<string, string | undefined>();
    const verified = await verifyToken(token, (kid) => {
      const key = this.#keys.find(kid);
      used.set(kid, key?.jwk.x);
      return key;
    });
    if (!verified.ok) return verified;
    // The keys changed meanwhile: what was good by the old ones counts no more.
    if (generation !== this.#generation) return this.verify(token);
    const keysStand = (): boolean => [...used].every(([kid, x]) => this.#keys.find(kid)?.jwk.x === x);
    const good: Verified = { ok: true, value: { ...verified.value, keysStand } };
    this.#remember(digest, good);
    return good;
  }

  /** How many tokens are remembered. */
  get remembered(): number {
    return this.#good.size;
  }

  #remember(digest: string, verified: Verified): void {
    const oldest = this.#good.size >= this.#rememberedMax ? this.#good.keys().next().value : undefined;
    if (oldest !== undefined) this.#good.delete(oldest);
    this.#good.set(digest, verified);
  }
}
