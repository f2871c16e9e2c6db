import type { Readable } from "node:stream";

/** The whole of a stream, as long as it keeps within a bound. */
export class BoundedOutput {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  /** `onExceeded` is told once; what came beyond the bound is not kept. */
  constructor(stream: Readable, bytesMax: number, onExceeded: () => void) {
    let exceeded = false;
    stream.on("data", (chunk: Buffer) => {
      if (exceeded) return;
      this.#bytes += chunk.length;
      exceeded = this.#bytes > bytesMax;
      if (exceeded) onExceeded();
      else this.#chunks.push(chunk);
    });
    stream.on("error", () => undefined);
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

/** The end of a stream. */
export class OutputTail {
  readonly #bytesMax: number;
  #kept: Buffer = Buffer.alloc(0);
  #cut = false;

  constructor(stream: Readable, bytesMax: number) {
    this.#bytesMax = bytesMax;
    stream.on("data", (chunk: Buffer) => {
      const all = Buffer.concat([this.#kept, chunk.subarray(-bytesMax)]);
      this.#cut ||= all.length > this.#bytesMax || chunk.length > this.#bytesMax;
      this.#kept = Buffer.from(all.subarray(-this.#bytesMax));
    });
    stream.on("error", () => undefined);
  }

  /** From the first whole line on when the beginning is lost. */
  text(): string {
    const text = this.#kept.toString("utf8").toWellFormed();
    return this.#cut ? text.slice(text.indexOf("\n") + 1) : text;
  }
}

/**
 * The lines of a stream, one at a time: no more is read while the reader is busy with one. Ends with the stream, however
 * that ends. The last line needs no line end.
 *
 * @throws RangeError when a line is longer than `bytesMax`.
 */
export async function* readLines(stream: Readable, bytesMax: number): AsyncGenerator<Buffer, void> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of stream) {
      rest = Buffer.concat([rest, chunk as Buffer]);
      for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
        yield rest.subarray(0, end);
        rest = rest.subarray(end + 1);
      }
      if (rest.length > bytesMax) throw new RangeError(`a line is longer than ${bytesMax} bytes`);
    }
  } catch (thrown) {
    // A stream that is closed before its end has none to come.
    if (thrown instanceof RangeError) throw thrown;
  }
  if (rest.length > 0) yield rest;
}
