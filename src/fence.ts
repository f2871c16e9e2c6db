/**
 * For resources that workers write to. A worker that was paused, cut off or replaced may still believe in its claim; the
 * one thing that stops its late write is a resource that remembers the highest fencing token it has seen and refuses a
 * lower one (contract 1.8). Needs nothing but this file.
 *
 * Tokens count the claims of one workload. They say nothing between two workloads: what several workloads write to keeps
 * a token for each of them.
 */

/**
 * Whether a write with this token may happen where `stored` is the highest token seen so far, `undefined` for none. The
 * same token is accepted again: its holder may write as often as it likes. What is no whole number from 1 is not accepted.
 * Store the token in the same atomic step as the write.
 */
export const acceptsToken = (stored: number | undefined, token: number): boolean =>
  Number.isSafeInteger(token) && token >= 1 && (stored === undefined || token >= stored);

/** Why a {@link Fence} refuses. */
export type FenceRefusal = "STALE_TOKEN" | "INVALID_TOKEN" | "FENCE_FULL";

/** A write that must not happen. */
export class FenceError extends Error {
  override readonly name = "FenceError";
  readonly reason: FenceRefusal;
  readonly resource: string;
  readonly token: number;
  /** The highest token that was seen, if one was. */
  readonly stored: number | undefined;

  constructor(
    reason: FenceRefusal,
    message: string,
    facts: { readonly resource: string; readonly token: number; readonly stored: number | undefined },
  ) {
    super(message);
    this.reason = reason;
    this.resource = facts.resource;
    this.token = facts.token;
    this.stored = facts.stored;
  }
}

export interface FenceOptions {
  /** How many resources are remembered. Default 10,000. */
  readonly resourcesMax?: number;
}

const RESOURCES_MAX = 10_000;

/**
 * The fence of resources that live in this process, such as a device or a file that it alone writes. Check and write in
 * the same turn of the event loop, with no `await` between: what comes between could be a newer writer.
 *
 * It never forgets by itself, since a forgotten token would let a stale writer in: when `resourcesMax` are known, new ones
 * are refused until {@link Fence.forget} makes room. It forgets everything with its process; a resource that outlives the
 * process must keep its token where it keeps its data.
 */
export class Fence {
  readonly #highest = new Map<string, number>();
  readonly #resourcesMax: number;

  constructor(options: FenceOptions = {}) {
    this.#resourcesMax = options.resourcesMax ?? RESOURCES_MAX;
  }

  /** How many resources it knows. */
  get size(): number {
    return this.#highest.size;
  }

  /**
   * Lets a write pass, and remembers its token.
   *
   * @throws FenceError `STALE_TOKEN` when a higher token was seen, `INVALID_TOKEN` for what is no whole number from 1,
   * `FENCE_FULL` for a new resource when there is no room. The write must not happen then.
   */
  check(resource: string, token: number): void {
    const stored = this.#highest.get(resource);
    const facts = { resource, token, stored };
    if (!acceptsToken(undefined, token))
      throw new FenceError(
        "INVALID_TOKEN",
        `${String(token)} is no fencing token: it is no whole number from 1`,
        facts,
      );
    if (!acceptsToken(stored, token))
      throw new FenceError("STALE_TOKEN", `token ${token} is stale: ${resource} has seen ${stored}`, facts);
    if (stored === undefined && this.#highest.size >= this.#resourcesMax)
      throw new FenceError("FENCE_FULL", `${this.#resourcesMax} resources are known; forget some first`, facts);
    this.#highest.set(resource, token);
  }

  /** Forgets a resource that nobody can write to any more. Its next writer is believed, whatever its token. */
  forget(resource: string): void {
    this.#highest.delete(resource);
  }
}
