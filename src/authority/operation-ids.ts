import { createHash } from "node:crypto";

/**
 * Operation ids (contract 5.3). With a requestId they begin with a mark derived from the caller and the requestId, so
 * that a repeated request meets its own earlier commit in the ring of the record; the rest tells decisions apart.
 * `<mark>:<reference>:<nonce>`: the reference says what the operation did (see `Change.reference`).
 */
export class OperationIds {
  readonly #nonce: string;
  #counter = 0;

  /** `nonce`: unique to this process, at most 12 characters of [A-Za-z0-9_-]. */
  constructor(nonce: string) {
    this.#nonce = nonce;
  }

  /** A fresh id; with a mark when the request can be repeated. */
  next(mark: string | undefined, reference: number): string {
    const own = `${this.#nonce}${(this.#counter++).toString(36)}`;
    return `${mark ?? ""}:${reference}:${own}`;
  }
}

/** The mark of a request: 96 bits of a hash over who asks and what it calls its request; none of one without an id. */
export const markOf = (caller: string, call: string, requestId: string | undefined): string | undefined =>
  requestId === undefined
    ? undefined
    : createHash("sha256")
        .update(JSON.stringify([caller, call, requestId]))
        .digest("base64url")
        .slice(0, 16);

/** What an earlier try of the same request did, by the ring of the record; `undefined` when it did nothing that is still remembered. */
export function findReference(operations: readonly string[], mark: string): number | undefined {
  const found = operations.findLast((operation) => operation.startsWith(`${mark}:`));
  return found === undefined ? undefined : Number(found.split(":")[1]);
}
