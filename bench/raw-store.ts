import { nuid } from "@nats-io/nats-core";
import type { NatsConnection } from "@nats-io/nats-core";
import { OPERATIONS_HEADER, RenderedHeaders, headerLine, provenanceLines } from "../src/store/jetstream/headers.ts";
import type { RecordedCommit } from "./recorded-commits.ts";

const TIMEOUT_MS = 10_000;

interface Acknowledgement {
  readonly seq?: number;
  readonly error?: { readonly err_code: number; readonly description: string };
}

/** A write that the server refused. */
class RawRefusal extends Error {
  override readonly name = "RawRefusal";
  readonly code: string;

  constructor(error: Acknowledgement["error"]) {
    super(error?.description ?? "an answer that says nothing");
    this.code = `raw ${error?.err_code ?? "unknown"}`;
  }
}

/** A text of exactly this length that ends with the id. */
const padded = (front: string, id: string, length: number): string => {
  const fill = length - front.length - id.length;
  return fill <= 0 ? front + id : front + "0".repeat(fill) + id;
};

/**
 * The floor: the same messages as the product's, written by nothing but the client library. No rules, no checks, no
 * resolution of what went wrong. Headers are put together as cheaply as the store does it.
 */
export class RawStore {
  readonly #connection: NatsConnection;
  readonly #prefix: string;
  readonly #own = nuid.next().slice(-4);
  #counter = 0;

  /** `prefix`: what stands before a key in a subject. */
  constructor(connection: NatsConnection, prefix: string) {
    this.#connection = connection;
    this.#prefix = prefix;
  }

  /**
   * Writes a commit under a name of one's own: its first message guarded by `revision` (0: absent), any further one by
   * its absence, each under a key that no other has. Answers the first message's revision.
   */
  async write(commit: RecordedCommit, name: string, revision: number): Promise<number> {
    const id = `${this.#own}${(this.#counter++).toString(36)}`;
    const count = commit.length;
    const batch = count === 1 ? "" : headerLine("Nats-Batch-Id", nuid.next());
    for (let index = 0; index < count; index++) {
      const message = commit[index];
      if (message === undefined) continue;
      const place = count === 1 ? "" : batch + headerLine("Nats-Batch-Sequence", index + 1);
      const end = count > 1 && index === count - 1 ? headerLine("Nats-Batch-Commit", 1) : "";
      const headers = new RenderedHeaders(
        headerLine("Nats-Expected-Last-Subject-Sequence", index === 0 ? revision : 0) +
          headerLine("Nats-Msg-Id", padded("", `${id}.${index}`, message.idLength)) +
          message.lines +
          place +
          end,
      );
      const key =
        index === 0 ? padded("z.", name, message.keyLength) : padded("z.", `${name}.${id}`, message.keyLength);
      const subject = this.#prefix + key;
      if (index < count - 1) {
        this.#connection.publish(subject, message.data, { headers });
        continue;
      }
      return (await this.#acknowledged(subject, message.data, headers)) - count + 1;
    }
    throw new RangeError("a commit has messages");
  }

  /** Creates entries in one batch, as if each had been committed once. */
  async create(entries: readonly { readonly key: string; readonly value: Uint8Array }[]): Promise<void> {
    const batch = headerLine("Nats-Batch-Id", nuid.next());
    for (const [index, { key, value }] of entries.entries()) {
      const last = index === entries.length - 1;
      const headers = new RenderedHeaders(
        headerLine("Nats-Expected-Last-Subject-Sequence", 0) +
          headerLine(OPERATIONS_HEADER, `:1:${this.#own}${index.toString(36)}`) +
          provenanceLines({ action: "admit", node: "bench", tenant: "bench", application: "orders" }) +
          batch +
          headerLine("Nats-Batch-Sequence", index + 1) +
          (last ? headerLine("Nats-Batch-Commit", 1) : ""),
      );
      if (!last) this.#connection.publish(this.#prefix + key, value, { headers });
      else await this.#acknowledged(this.#prefix + key, value, headers);
    }
  }

  async #acknowledged(subject: string, data: Uint8Array, headers: RenderedHeaders): Promise<number> {
    const answer = await this.#connection.request(subject, data, { headers, timeout: TIMEOUT_MS });
    const { seq, error } = answer.json<Acknowledgement>();
    if (error !== undefined || seq === undefined) throw new RawRefusal(error);
    return seq;
  }
}
