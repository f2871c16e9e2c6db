import type { ChangeEvent } from "../authority/api.ts";
import type { HttpAuthority } from "./authority-port.ts";

/** Most events that are rendered into one chunk. */
const EVENTS_PER_CHUNK = 256;

export interface EventFeedOptions {
  readonly authority: HttpAuthority;
  /** Revisions of each shard up to which the client has everything. */
  readonly positions: readonly number[];
  readonly matches: (event: ChangeEvent) => boolean;
  readonly backlogMax: number;
  readonly keepAliveMs: number;
  /** Called once, when the feed has ended: by the client, the server, or because the client read too slowly. */
  readonly onEnd: (how: "closed" | "slow") => void;
}

/** Where a client stands, in the `id:` of its events (contract 6.2): the revision, or those of all shards with dots between. */
export const renderPositions = (positions: readonly number[]): string => positions.join(".");

/** Undoes {@link renderPositions}; `undefined` when the text is none of these. */
export function parsePositions(text: string, shards: number): readonly number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== shards || !parts.every((part) => /^\d{1,15}$/.test(part))) return undefined;
  return parts.map(Number);
}

/**
 * Committed changes as server-sent events, from where the client stands on. First the latest change of each workload
 * that it missed, then every change as it is committed. Rendered as the client reads: what it has not read yet is kept
 * up to a bound, beyond which the feed ends; the client then resumes from its last id and loses nothing but changes that
 * later ones of the same workload have replaced.
 */
export class EventFeed {
  readonly #options: EventFeedOptions;
  /** Revisions up to which everything was sent. */
  readonly #sent: number[];
  /** Revisions that the missed changes were looked up at: live ones count from there on. */
  readonly #from: readonly number[];
  #missed: readonly ChangeEvent[] = [];
  #missedSent = 0;
  #live: ChangeEvent[] = [];
  /** Revisions that live changes have come to, sent or not matching. */
  readonly #passed: number[];
  #greeting = true;
  #quiet = false;
  #ended = false;
  #wake: (() => void) | undefined;
  #unwatch: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: EventFeedOptions) {
    this.#options = options;
    this.#from = options.authority.position().map((at, shard) => Math.max(at, options.positions[shard] ?? 0));
    this.#sent = [...options.positions];
    this.#passed = [...this.#from];
  }

  /** Begins to follow. The stream is to be read, or cancelled. */
  open(): ReadableStream<Uint8Array> {
    const { authority, positions, matches, keepAliveMs } = this.#options;
    this.#unwatch = authority.watch((event) => this.#onEvent(event));
    this.#missed = authority
      .changesSince(positions, matches)
      .filter((event) => event.revision <= (this.#from[event.shard] ?? 0));
    this.#timer = setInterval(() => {
      this.#quiet = true;
      this.#wake?.();
    }, keepAliveMs);
    this.#timer.unref();
    const encoder = new TextEncoder();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          for (let text = this.#next(); ; text = this.#next()) {
            if (text !== "") return controller.enqueue(encoder.encode(text));
            if (this.#ended) return controller.close();
            await new Promise<void>((resolve) => (this.#wake = resolve));
          }
        },
        cancel: () => this.end("closed"),
      },
      { highWaterMark: 1 },
    );
  }

  /** Stops following. What was not read yet is dropped. */
  end(how: "closed" | "slow"): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#unwatch?.();
    clearInterval(this.#timer);
    this.#missed = [];
    this.#live = [];
    this.#wake?.();
    this.#options.onEnd(how);
  }

  #onEvent(event: ChangeEvent): void {
    // A view that is rebuilt goes through all changes again.
    if (this.#ended || event.revision <= (this.#passed[event.shard] ?? 0)) return;
    this.#passed[event.shard] = event.revision;
    if (!this.#options.matches(event)) return;
    if (this.#live.length >= this.#options.backlogMax) return this.end("slow");
    this.#live.push(event);
    this.#wake?.();
  }

  /** What the client gets next; empty when there is nothing yet. */
  #next(): string {
    this.#wake = undefined;
    if (this.#ended) return "";
    let text = "";
    if (this.#greeting) {
      // An id without an event: a client that sees nothing before it is cut off knows where to resume nevertheless.
      this.#greeting = false;
      text = `id: ${renderPositions(this.#sent)}\n\n`;
    }
    const missed = this.#missed.slice(this.#missedSent, this.#missedSent + EVENTS_PER_CHUNK);
    this.#missedSent += missed.length;
    for (const event of missed) text += this.#render(event);
    if (missed.length > 0 && this.#missedSent >= this.#missed.length) this.#missed = [];
    if (missed.length === 0) {
      for (const event of this.#live.splice(0, EVENTS_PER_CHUNK)) text += this.#render(event);
      if (text === "" && this.#quiet) text = this.#keepAlive();
    }
    if (text !== "") this.#quiet = false;
    return text;
  }

  #render(event: ChangeEvent): string {
    this.#sent[event.shard] = event.revision;
    return `id: ${renderPositions(this.#sent)}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  }

  /** Nothing to tell, but others' changes went by: the client need not go through them again. */
  #keepAlive(): string {
    for (const [shard, revision] of this.#passed.entries())
      this.#sent[shard] = Math.max(this.#sent[shard] ?? 0, revision);
    return `: keep-alive\nid: ${renderPositions(this.#sent)}\n\n`;
  }
}
