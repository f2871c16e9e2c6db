import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
// Outside this repository: from "mandate/fence".
import { acceptsToken } from "../src/fence.ts";

/**
 * A NATS key-value bucket that refuses stale workers: a value carries the fencing token that wrote it, and is replaced
 * only at the revision at which that token was read. When another writer comes between, the bucket refuses the revision,
 * and the writer looks again: then it sees the newer token and gives up, or wins over an older one.
 */

interface Stored {
  readonly fencingToken: number;
  readonly value: unknown;
}

const isWrongRevision = (thrown: unknown): boolean =>
  thrown instanceof JetStreamApiError && thrown.code === JetStreamApiCodes.StreamWrongLastSequence;

/**
 * Writes a value. `false`: a newer holder of the work has written the key; nothing was changed.
 *
 * Deleting the key forgets its token. Purge it only when nobody can hold the work any more; until then write an empty
 * value in its place.
 *
 * @throws what the client throws when the bucket does not answer. The write may have happened then; repeating it with the
 * same token is safe.
 */
export async function putFenced(bucket: KV, key: string, write: Stored): Promise<boolean> {
  for (;;) {
    const entry = await bucket.get(key);
    const stored = entry?.operation === "PUT" ? entry.json<Stored>().fencingToken : undefined;
    if (!acceptsToken(stored, write.fencingToken)) return false;
    try {
      const text = JSON.stringify(write);
      if (entry === null) await bucket.create(key, text);
      else await bucket.update(key, text, entry.revision);
      return true;
    } catch (thrown) {
      if (!isWrongRevision(thrown)) throw thrown;
    }
  }
}
