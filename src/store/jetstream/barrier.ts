import type { Requests } from "./requests.ts";
import { acknowledgedRevision } from "./acknowledgement.ts";
import { RenderedHeaders, headerLine } from "./headers.ts";

const BARRIER_TTL_SECONDS = 60;
const BARRIER_TIMEOUT_MS = 1500;

/**
 * Writes that mark a moment: whatever was acknowledged before a barrier was asked for has a lower revision than the
 * barrier. Its acknowledgement is never a lie, since only a majority can give it, so a snapshot that holds it is newer
 * than the question. Callers that come while one is under way share the next.
 */
export class Barriers {
  readonly key: string;
  readonly #requests: Requests;
  readonly #subject: string;
  readonly #headers = new RenderedHeaders(headerLine("Nats-TTL", `${BARRIER_TTL_SECONDS}s`));
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<number> | undefined;

  constructor(requests: Requests, options: { readonly prefix: string; readonly key: string }) {
    this.#requests = requests;
    this.key = options.key;
    this.#subject = options.prefix + options.key;
  }

  /**
   * The revision of a barrier that is written after this call.
   *
   * @throws RequestFailure or StoreUnavailable when it could not be written for sure.
   */
  raise(): Promise<number> {
    if (this.#next !== undefined) return this.#next;
    const next = this.#running.then(() => {
      this.#next = undefined;
      const written = this.#write();
      this.#running = written.catch(() => undefined);
      return written;
    });
    this.#next = next;
    return next;
  }

  async #write(): Promise<number> {
    const answer = await this.#requests.one(this.#subject, "", {
      headers: this.#headers,
      timeoutMs: BARRIER_TIMEOUT_MS,
    });
    return acknowledgedRevision(answer);
  }
}
